#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads the length-prefixed messages of a response (gRPC over HTTP/2, "Length-Prefixed-Message"): a byte that says
/// whether the message is compressed, its length in four bytes, and the message. Pure.
///
/// A length is compared with the limit before it is used, and no memory is reserved because of it. Reading takes linear
/// time in the number of bytes, however they are cut into pieces.
struct MessageReader {
    /// A message as it was sent.
    struct Message: Equatable {
        var bytes: Data
        var isCompressed: Bool
    }

    enum Failure: Error, Equatable {
        /// The stated length, which exceeds the limit.
        case tooLarge(UInt32)
        /// The first byte, which is neither 0 nor 1.
        case invalidFlag(UInt8)
    }

    static let prefixLength = 5

    /// The largest number of bytes of a message.
    let limit: Int
    /// The bytes that have arrived and were not read.
    private var piece = Data()
    /// The prefix of the next message, as far as it has arrived.
    private var prefix: UInt64 = 0
    private var prefixCount = 0
    /// The beginning of a message that did not arrive in one piece.
    private var message = Data()
    private var failure: Failure?

    /// - Parameter limit: The largest number of bytes of a message, compressed or not.
    init(limit: Int) { self.limit = limit }

    /// Whether all bytes so far are whole messages that were read.
    var isAtBoundary: Bool { prefixCount == 0 && piece.isEmpty }

    /// Adds the next bytes of the body, after `next()` has returned nil.
    mutating func append(_ bytes: Data) {
        precondition(piece.isEmpty, "messages are read before further bytes are added")
        if failure == nil { piece = bytes }
    }

    /// Returns the next whole message; nil if more bytes are needed. After a failure, each call throws it.
    mutating func next() throws(Failure) -> Message? {
        if let failure { throw failure }
        while prefixCount < Self.prefixLength {
            if piece.isEmpty { return nil }
            try readPrefix()
        }
        return takeMessage()
    }

    /// The stated length of the message.
    private var length: UInt32 { UInt32(truncatingIfNeeded: prefix) }

    private mutating func readPrefix() throws(Failure) {
        let count = min(Self.prefixLength - prefixCount, piece.count)
        for byte in piece.prefix(count) { prefix = prefix << 8 | UInt64(byte) }
        prefixCount += count
        piece = piece.dropFirst(count)
        guard prefixCount == Self.prefixLength else { return }
        let flag = UInt8(truncatingIfNeeded: prefix >> 32)
        if flag > 1 { throw fail(.invalidFlag(flag)) }
        if Int(length) > limit { throw fail(.tooLarge(length)) }
    }

    private mutating func fail(_ failure: Failure) -> Failure {
        self.failure = failure
        (piece, message) = (Data(), Data())
        return failure
    }

    private mutating func takeMessage() -> Message? {
        let length = Int(length)
        if message.isEmpty, piece.count >= length {
            message = piece.prefix(length)
            piece = piece.dropFirst(length)
        } else {
            let part = piece.prefix(length - message.count)
            message.append(part)
            piece = piece.dropFirst(part.count)
            guard message.count == length else { return nil }
        }
        let whole = Message(bytes: message, isCompressed: prefix >> 32 == 1)
        (message, prefix, prefixCount) = (Data(), 0, 0)
        return whole
    }
}
