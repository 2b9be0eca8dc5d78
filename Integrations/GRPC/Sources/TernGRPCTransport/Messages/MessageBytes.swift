public import GRPCCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TernGRPCTransport {
    /// The bytes of one message.
    ///
    /// A received message that arrived in one piece is a slice of the bytes that the connection delivered, without a
    /// copy. It keeps that piece, of at most 256 KiB, in memory.
    public struct Bytes: GRPCContiguousBytes, Hashable, Sendable {
        var data: Data

        init(_ data: Data) { self.data = data }

        /// Creates bytes that all have the same value.
        public init(repeating byte: UInt8, count: Int) { data = Data(repeating: byte, count: count) }

        /// Creates bytes from a sequence.
        public init<Bytes: Sequence>(_ sequence: Bytes) where Bytes.Element == UInt8 { data = Data(sequence) }

        /// The number of bytes.
        public var count: Int { data.count }

        /// Calls a closure with the bytes, which are valid within the call.
        public func withUnsafeBytes<R>(_ body: (_ buffer: UnsafeRawBufferPointer) throws -> R) rethrows -> R {
            try unsafe data.withUnsafeBytes(body)
        }

        /// Calls a closure with the bytes, which it can change and which are valid within the call.
        public mutating func withUnsafeMutableBytes<R>(
            _ body: (_ buffer: UnsafeMutableRawBufferPointer) throws -> R
        ) rethrows -> R {
            try unsafe data.withUnsafeMutableBytes(body)
        }
    }
}
