#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResponseStream {
    /// The body, byte by byte.
    public struct Bytes: AsyncSequence, Sendable {
        /// A byte of the body.
        public typealias Element = UInt8
        let chunks: Chunks

        /// One pass over what is left of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks.makeAsyncIterator()) }

        /// Reads the bytes: most calls take one from the piece at hand and do not suspend.
        public struct Iterator: AsyncIteratorProtocol {
            private var chunks: Chunks.Iterator
            private var bytes: [UInt8] = []
            private var index = 0

            init(chunks: Chunks.Iterator) { self.chunks = chunks }

            /// The next byte; nil at the end.
            public mutating func next() async throws(NetworkError) -> UInt8? {
                if index == bytes.count {
                    guard let chunk = try await chunks.next() else { return nil }
                    bytes = Array(chunk)
                    index = 0
                }
                defer { index += 1 }
                return bytes[index]
            }

            /// The next byte; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> UInt8? {
                try await next()
            }
        }
    }

    /// The body as lines of text.
    public struct Lines: AsyncSequence, Sendable {
        /// A line, without its end.
        public typealias Element = String
        let chunks: Chunks

        /// One pass over what is left of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks.makeAsyncIterator()) }

        /// Reads the lines.
        public struct Iterator: AsyncIteratorProtocol {
            private var chunks: Chunks.Iterator
            private var splitter: LineSplitter
            private var isAtEnd = false

            init(chunks: Chunks.Iterator) {
                self.chunks = chunks
                splitter = LineSplitter(limit: chunks.source.lineLimit)
            }

            /// The next line; nil at the end.
            public mutating func next() async throws(NetworkError) -> String? {
                while true {
                    if let line = splitter.next(isAtEnd: isAtEnd) { return line }
                    if splitter.isTooLong { throw chunks.source.refuseLine() }
                    if isAtEnd { return nil }
                    if let chunk = try await chunks.next() { splitter.add(chunk) } else { isAtEnd = true }
                }
            }

            /// The next line; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> String? {
                try await next()
            }
        }
    }
}

/// Finds lines in pieces of text, wherever the pieces are cut. Pure.
struct LineSplitter {
    private static let lineFeed: UInt8 = 10
    private static let carriageReturn: UInt8 = 13

    private let limit: Int
    private var bytes: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Up to where was looked.
    private var seen = 0
    /// Whether the next line, all of which need not be there, has more bytes than the limit. No line follows it.
    private(set) var isTooLong = false

    init(limit: Int = .max) { self.limit = limit }

    mutating func add(_ chunk: some Sequence<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            seen -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// The next whole line; at the end also what is left without one.
    mutating func next(isAtEnd: Bool) -> String? {
        if isTooLong { return nil }
        while seen < bytes.count {
            let byte = bytes[seen]
            if byte == Self.lineFeed { return take(upTo: seen, next: seen + 1) }
            if byte == Self.carriageReturn {
                // CR at the very end may be half of a CRLF.
                if seen + 1 == bytes.count, !isAtEnd { return nil }
                let isPair = seen + 1 < bytes.count && bytes[seen + 1] == Self.lineFeed
                return take(upTo: seen, next: seen + (isPair ? 2 : 1))
            }
            seen += 1
        }
        if seen - start > limit { isTooLong = true }
        guard isAtEnd, start < bytes.count else { return nil }
        return take(upTo: bytes.count, next: bytes.count)
    }

    private mutating func take(upTo end: Int, next: Int) -> String? {
        if end - start > limit {
            isTooLong = true
            return nil
        }
        defer {
            start = next
            seen = next
        }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }
}
