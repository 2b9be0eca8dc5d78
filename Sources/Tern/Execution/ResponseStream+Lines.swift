#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResponseStream {
    /// The body as a sequence of bytes.
    public struct Bytes: AsyncSequence, Sendable {
        /// A byte of the body.
        public typealias Element = UInt8
        let chunks: Chunks

        /// Returns an iterator over the rest of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(source: chunks.source) }

        /// An iterator over bytes. Most calls return a byte of the current chunk and do not suspend.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: ByteReader

            init(source: StreamSource) { reader = ByteReader(source) }

            /// Returns the next byte; nil at the end.
            public mutating func next() async throws(NetworkError) -> UInt8? {
                if let byte = reader.takeNext() { return byte }
                return try await reader.refill()
            }

            /// Returns the next byte; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> UInt8? {
                try await next()
            }
        }
    }

    /// The body as lines of text.
    public struct Lines: AsyncSequence, Sendable {
        /// A line without its line ending.
        public typealias Element = String
        let chunks: Chunks

        /// Returns an iterator over the rest of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(source: chunks.source) }

        /// An iterator over lines.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: LineReader

            init(source: StreamSource) { reader = LineReader(source) }

            /// Returns the next line; nil at the end.
            public mutating func next() async throws(NetworkError) -> String? { try await reader.next() }

            /// Returns the next line; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> String? {
                try await next()
            }
        }
    }
}

/// An iterator over a stream's bytes. Bytes that it fetched and did not return go back to the stream, because a loop
/// can be left early.
private final class ByteReader {
    private let source: StreamSource
    private var bytes: [UInt8] = []
    private var index = 0

    init(_ source: StreamSource) { self.source = source }

    deinit { source.returnUnreadBytes(bytes[index...]) }

    /// The number of bytes after which a reader looks whether the stream was interrupted.
    private static let step = 4_096

    func takeNext() -> UInt8? {
        if index & (Self.step - 1) == 0, index > 0, source.dropsUnread() { index = bytes.count }
        guard index < bytes.count else { return nil }
        defer { index += 1 }
        return bytes[index]
    }

    func refill() async throws(NetworkError) -> UInt8? {
        guard let chunk = try await source.next() else { return nil }
        bytes = Array(chunk)
        index = 0
        return takeNext()
    }
}

/// An iterator over a stream's lines. Bytes that it fetched and did not return go back to the stream.
private final class LineReader {
    private let source: StreamSource
    private var splitter: LineSplitter
    private var isAtEnd = false
    /// The number of lines so far. A reader looks now and then whether the stream was interrupted.
    private var count = 0

    init(_ source: StreamSource) {
        self.source = source
        splitter = LineSplitter(limit: source.lineLimit)
    }

    deinit { source.returnUnreadBytes(splitter.rest) }

    func next() async throws(NetworkError) -> String? {
        count += 1
        if count & 63 == 0, !isAtEnd, source.dropsUnread() { splitter.drop() }
        while true {
            if let line = splitter.next(isAtEnd: isAtEnd) { return line }
            if splitter.isTooLong { throw source.refuseLine() }
            if isAtEnd { return nil }
            if let chunk = try await source.next() { splitter.add(chunk) } else { isAtEnd = true }
        }
    }
}

/// Splits text into lines, independent of the boundaries of its pieces.
struct LineSplitter {
    private static let lineFeed: UInt8 = 10
    private static let carriageReturn: UInt8 = 13

    private let limit: Int
    private var bytes: [UInt8] = []
    /// The start of the next line.
    private var start = 0
    /// The position up to which the search has come.
    private var seen = 0
    /// Whether the next line, even if it is incomplete, exceeds the limit. No line follows it.
    private(set) var isTooLong = false

    init(limit: Int = .max) { self.limit = limit }

    /// The bytes that are not part of a line yet; empty for a line that is too long.
    var rest: ArraySlice<UInt8> { isTooLong ? [] : bytes[start...] }

    /// Drops the bytes that are no line yet.
    mutating func drop() {
        bytes = []
        (start, seen) = (0, 0)
    }

    mutating func add(_ chunk: some Sequence<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            seen -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// Returns the next whole line; at the end also the rest without a line ending.
    mutating func next(isAtEnd: Bool) -> String? {
        if isTooLong { return nil }
        while seen < bytes.count {
            let byte = bytes[seen]
            if byte == Self.lineFeed { return take(upTo: seen, next: seen + 1) }
            if byte == Self.carriageReturn {
                // A CR at the end can be the first half of a CRLF.
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
