public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResponseStream {
    /// Returns the values of a body with one JSON value on each line (JSON lines, `application/x-ndjson`), decoded by
    /// the session's decoder, off the caller's actor.
    ///
    /// ```swift
    /// for try await row in client.stream("export").decodeLines(Row.self) { insert(row) }
    /// ```
    ///
    /// Lines end in LF or CRLF, the last one also without. Empty lines are skipped. A line of more than
    /// `maximumBodySize` bytes (128 MiB by default) ends the transfer with an error of kind `.tooLarge`, and one that
    /// cannot be decoded with an error of kind `.decoding`, after the values before it. Both name the line. One reader
    /// reads the body, to its end.
    public func decodeLines<Value: Decodable & Sendable>(_ type: Value.Type) -> DecodedLines<Value> {
        DecodedLines(stream: self)
    }
}

/// The decoded values of a body with one JSON value on each line.
public struct DecodedLines<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A decoded value.
    public typealias Element = Value
    /// The error of the sequence.
    public typealias Failure = NetworkError

    let stream: ResponseStream

    /// Returns an iterator over the rest of the body.
    public func makeAsyncIterator() -> Iterator { Iterator(stream) }

    /// An iterator over values. Most calls return a value of the current chunk and do not suspend.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: ResponseStream
        private var chunks: ResponseStream.Chunks.Iterator
        private var scanner: LineScanner
        private var batch = DecodedBatch<Value>()
        private var isAtEnd = false
        /// The error that follows the values of the batch.
        private var failure: NetworkError?

        init(_ stream: ResponseStream) {
            self.stream = stream
            chunks = stream.chunks.makeAsyncIterator()
            scanner = LineScanner(limit: stream.lineLimit)
        }

        /// Returns the next value; nil at the end.
        public mutating func next() async throws(NetworkError) -> Value? {
            while true {
                if !isAtEnd, !batch.isEmpty, stream.dropsUnread() { batch = DecodedBatch() }
                do throws(NetworkError) {
                    if let value = try batch.next() { return value }
                } catch {
                    isAtEnd = true
                    throw stream.refuse(
                        FailureCause(error.kind, error.reason, underlying: error.underlying), body: error.body)
                }
                if let failure {
                    self.failure = nil
                    throw failure
                }
                if isAtEnd { return nil }
                try await fetch()
            }
        }

        /// Returns the next value; nil at the end. Runs on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Value? {
            try await next()
        }

        private mutating func fetch() async throws(NetworkError) {
            var lines: [LineScanner.Line] = []
            if let chunk = try await chunks.next() {
                do throws(LineScanner.TooLong) {
                    try scanner.split(chunk, into: &lines)
                } catch {
                    let reason = "line \(error.line) of the response has more than \(stream.lineLimit) bytes"
                    failure = stream.refuse(FailureCause(.tooLarge, reason))
                    isAtEnd = true
                }
            } else {
                isAtEnd = true
                if let last = scanner.finish() { lines.append(last) }
            }
            guard !lines.isEmpty else { return }
            let texts = lines.map { line in
                (name: "line \(line.number) of the response (\(line.bytes.count) bytes)", json: line.bytes)
            }
            batch = await DecodedBatch(texts, configuration: stream.configuration)
        }
    }
}
