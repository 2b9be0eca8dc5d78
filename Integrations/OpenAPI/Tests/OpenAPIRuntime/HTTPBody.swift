/// The number of times that a sequence can be iterated.
public enum IterationBehavior: Sendable {
    case single
    case multiple
}

/// The body of a request or a response: a sequence of slices of bytes.
public final class HTTPBody: Sendable {
    /// A slice of the bytes.
    public typealias ByteChunk = ArraySlice<UInt8>

    /// The number of bytes.
    public enum Length: Sendable, Equatable {
        case unknown
        case known(Int64)
    }

    /// The number of bytes, if it is known.
    public let length: Length
    /// The number of times that the body can be iterated.
    public let iterationBehavior: IterationBehavior
    private let open: @Sendable () -> Iterator

    /// Creates a body from a sequence of slices.
    public init<Bytes: AsyncSequence>(
        _ sequence: Bytes, length: Length, iterationBehavior: IterationBehavior
    ) where Bytes.Element == ByteChunk, Bytes: Sendable {
        self.length = length
        self.iterationBehavior = iterationBehavior
        open = { Iterator(sequence) }
    }

    /// Creates a body from bytes in memory.
    public convenience init(_ bytes: some Collection<UInt8> & Sendable) {
        let chunk = ArraySlice(bytes)
        let stream = OneChunk(chunk: chunk)
        self.init(stream, length: .known(Int64(chunk.count)), iterationBehavior: .multiple)
    }

    private struct OneChunk: AsyncSequence, Sendable {
        let chunk: ByteChunk

        func makeAsyncIterator() -> AsyncStream<ByteChunk>.Iterator {
            let chunk = chunk
            return AsyncStream { continuation in
                continuation.yield(chunk)
                continuation.finish()
            }.makeAsyncIterator()
        }
    }
}

extension HTTPBody: AsyncSequence {
    /// A slice of the bytes.
    public typealias Element = ByteChunk

    /// Returns an iterator over the bytes.
    public func makeAsyncIterator() -> Iterator { open() }

    /// The iterator of any sequence of slices.
    public struct Iterator: AsyncIteratorProtocol {
        private let produceNext: () async throws -> ByteChunk?

        init<Bytes: AsyncSequence & Sendable>(_ sequence: Bytes) where Bytes.Element == ByteChunk {
            var iterator = sequence.makeAsyncIterator()
            produceNext = { try await iterator.next() }
        }

        /// Returns the next slice; nil at the end.
        public mutating func next() async throws -> ByteChunk? { try await produceNext() }
    }
}

extension Array where Element == UInt8 {
    /// Collects a body.
    public init(collecting body: HTTPBody, upTo limit: Int) async throws {
        self = []
        for try await chunk in body {
            if count + chunk.count > limit { throw TooManyBytes(limit: limit) }
            append(contentsOf: chunk)
        }
    }
}

/// The error of a body that exceeds the limit of its reader.
struct TooManyBytes: Error {
    let limit: Int
}
