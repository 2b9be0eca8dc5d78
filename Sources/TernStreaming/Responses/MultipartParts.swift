public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResponseStream {
    /// The parts of a multipart body (RFC 2046 §5.1), such as `multipart/mixed` and `multipart/x-mixed-replace`, each
    /// as soon as the delimiter after it has arrived.
    ///
    /// ```swift
    /// for try await part in client.stream("camera").parts { show(part.body) }
    /// ```
    ///
    /// A part is collected in memory. A part of more than `maximumBodySize` bytes (128 MiB by default) ends the
    /// transfer with an error of kind `.tooLarge`. A response without a boundary fails with `.contentType`, malformed
    /// fields with `.malformedResponse`, and a body without its last delimiter with `.truncatedBody`, after the parts
    /// before. One reader reads the body, to its end.
    ///
    /// Delimiters that differ from `boundary` in the dashes before it and the quotes around it are accepted, as is a
    /// body that begins with the fields of its first part: cameras send both. A body whose first 64 KiB have no
    /// delimiter fails with `.malformedResponse`, and the error shows the delimiter that was expected and the first
    /// line.
    public var parts: MultipartParts { MultipartParts(stream: self) }
}

/// A part of a multipart body.
public struct MultipartPart: Sendable, Hashable {
    /// The header fields of the part. The default type of a part is `text/plain`.
    public let headers: Headers
    /// The content. A `Content-Transfer-Encoding` is not decoded, because HTTP does not use it (RFC 9110 §B.5).
    public let body: Data

    /// Creates a part.
    public init(headers: Headers, body: Data) {
        self.headers = headers
        self.body = body
    }
}

/// The parts of a multipart body.
public struct MultipartParts: AsyncSequence, Sendable {
    /// A part.
    public typealias Element = MultipartPart
    /// The error of the sequence.
    public typealias Failure = NetworkError

    let stream: ResponseStream

    /// Returns an iterator over the rest of the body.
    public func makeAsyncIterator() -> Iterator { Iterator(stream: stream, chunks: stream.chunks.makeAsyncIterator()) }

    /// An iterator over parts.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: ResponseStream
        private var chunks: ResponseStream.Chunks.Iterator
        private var parser: MultipartParser?
        /// The parts that have arrived, the next one last.
        private var parts: [MultipartParser.Part] = []
        private var isAtEnd = false
        /// The error that follows the parts.
        private var failure: NetworkError?

        init(stream: ResponseStream, chunks: ResponseStream.Chunks.Iterator) {
            self.stream = stream
            self.chunks = chunks
        }

        /// Returns the next part; nil at the end.
        public mutating func next() async throws(NetworkError) -> MultipartPart? {
            while true {
                if !isAtEnd, !parts.isEmpty, stream.dropsUnread() { parts = [] }
                if let part = parts.popLast() {
                    return MultipartPart(headers: part.headers, body: part.body)
                }
                if let failure {
                    self.failure = nil
                    throw failure
                }
                if isAtEnd { return nil }
                try await fetch()
            }
        }

        /// Returns the next part; nil at the end. Runs on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> MultipartPart? {
            try await next()
        }

        private mutating func fetch() async throws(NetworkError) {
            if parser == nil { parser = try await makeParser() }
            let chunk = try await chunks.next()
            do throws(MultipartParser.Failure) {
                // In place: a copy of the parser would copy the part so far for each chunk, in quadratic time.
                if let chunk {
                    try parser?.parse(chunk, into: &parts)
                } else {
                    isAtEnd = true
                    try parser?.finish(into: &parts)
                }
            } catch {
                isAtEnd = true
                failure = stream.refuse(Self.failure(error))
            }
            parts.reverse()
        }

        private func makeParser() async throws(NetworkError) -> MultipartParser {
            let head = try await stream.response
            let type = head.headers["Content-Type"] ?? ""
            guard let boundary = MultipartParser.boundary(ofContentType: type) else {
                throw stream.refuse(FailureCause(.contentType, "the response is no multipart body with a boundary"))
            }
            return MultipartParser(boundary: boundary, maximumPartSize: stream.lineLimit)
        }

        private static func failure(_ failure: MultipartParser.Failure) -> FailureCause {
            switch failure {
            case .partTooLarge(let limit):
                FailureCause(.tooLarge, "a part of the response has more than \(limit) bytes: raise maximumBodySize")
            case .malformedFields:
                FailureCause(.malformedResponse, "the fields of a part of the response are malformed")
            case .noDelimiter(let expected, let found):
                FailureCause(
                    .malformedResponse,
                    "the response has no delimiter of parts: expected \(expected), and the body begins with: \(found)")
            case .truncated:
                FailureCause(.truncatedBody, "the response ended before the last delimiter of its parts")
            }
        }
    }
}
