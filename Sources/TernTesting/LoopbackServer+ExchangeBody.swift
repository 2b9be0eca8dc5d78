#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where the reading of a request's body stands (RFC 9112, section 6).
struct BodyFraming {
    private enum Part: Equatable {
        /// A body, or a chunk, of which so many bytes are to come.
        case bytes(Int)
        case chunkSize
        case chunkEnd
        case trailers
        case complete
    }

    /// What to do next to get on with the body.
    enum Step: Equatable {
        case takeBytes(Int)
        case takeLine
        case stop
    }

    private var part: Part
    private let isChunked: Bool

    init(of request: LoopbackServer.Request) {
        isChunked = request.isChunked
        let length = request.contentLength ?? 0
        part = isChunked ? .chunkSize : length > 0 ? .bytes(length) : .complete
    }

    var isComplete: Bool { part == .complete }

    var next: Step {
        switch part {
        case .bytes(let count): .takeBytes(count)
        case .chunkSize, .chunkEnd, .trailers: .takeLine
        case .complete: .stop
        }
    }

    mutating func took(bytes count: Int) {
        guard case .bytes(let left) = part else { return }
        part = left > count ? .bytes(left - count) : isChunked ? .chunkEnd : .complete
    }

    mutating func took(line: ArraySlice<UInt8>) throws(LoopbackServer.Failure) {
        switch part {
        case .chunkSize:
            let digits = String(decoding: line.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self).trimmingOuterSpace
            guard let size = Int(digits, radix: 16), size >= 0 else {
                throw LoopbackServer.Failure("the request's body has a chunk of the size \"\(digits)\"")
            }
            part = size > 0 ? .bytes(size) : .trailers
        case .chunkEnd:
            guard line.isEmpty else { throw LoopbackServer.Failure("a chunk of the request's body is too long") }
            part = .chunkSize
        case .trailers:
            if line.isEmpty { part = .complete }
        case .bytes, .complete: break
        }
    }
}

extension LoopbackServer.Exchange {
    /// The next bytes of the request's body, as they came, chunked framing removed; nil after the last.
    ///
    /// The slice shares the connection's buffer: let go of it before the next call, and nothing is copied.
    /// - Parameter size: the most bytes wanted.
    public func readChunk(upTo size: Int = 256 << 10) throws -> ArraySlice<UInt8>? {
        guard let count = try advanceToBytes() else { return nil }
        guard let bytes = try connection.take(upTo: min(count, max(1, size))) else { throw truncated() }
        took(bytes.count)
        return bytes
    }

    /// Hands the request's body over piece by piece, in pieces of at most `size` bytes, none of which is kept.
    public func readBody(upTo size: Int = 256 << 10, _ receive: (ArraySlice<UInt8>) throws -> Void) throws {
        while let bytes = try readChunk(upTo: size) { try receive(bytes) }
    }

    /// The whole body of the request.
    /// - Parameter limit: throws when the body has more bytes than this.
    public func readBody(limit: Int = 64 << 20) throws -> [UInt8] {
        var body: [UInt8] = []
        if let length = request.contentLength, !request.isChunked { body.reserveCapacity(min(length, limit)) }
        try readBody { bytes in
            guard body.count + bytes.count <= limit else {
                throw LoopbackServer.Failure("the request's body has more than \(limit) bytes")
            }
            body.append(contentsOf: bytes)
        }
        return body
    }

    /// The whole body of the request, decoded from JSON.
    public func readJSON<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(try readBody()))
    }

    /// Receives what is left of the request's body and forgets it: the fast way, without a copy where the system can.
    /// - Returns: the number of bytes of the whole body.
    @discardableResult
    public func drainBody() throws -> Int {
        try drainBody(limit: .max)
        return bodyBytesRead
    }

    func drainBody(limit: Int) throws(LoopbackServer.Failure) {
        var left = limit
        while left > 0, let count = try advanceToBytes() {
            // With a pace each piece must be small enough to be delayed on its own.
            let most = pace?.piece ?? .max
            let discarded = try connection.discard(upTo: min(count, left, most))
            if discarded == 0 { throw truncated() }
            left -= discarded
            took(discarded)
            if let delay = pace?.delay(after: discarded) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Reads framing until bytes of the body are next; nil at the body's end.
    private func advanceToBytes() throws(LoopbackServer.Failure) -> Int? {
        if mustContinue, !framing.isComplete {
            mustContinue = false
            if sendsContinue, !hasWritten { try connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
        }
        while true {
            switch framing.next {
            case .takeBytes(let count): return count
            case .stop: return nil
            case .takeLine:
                guard let line = try connection.takeLine() else { throw truncated() }
                try framing.took(line: line)
            }
        }
    }

    private func took(_ count: Int) {
        framing.took(bytes: count)
        bodyBytesRead += count
        connection.core.setBodySize(bodyBytesRead, of: serial)
    }

    private func truncated() -> LoopbackServer.Failure {
        .connection("the client ended the connection after \(bodyBytesRead) bytes of its body")
    }
}
