#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Masking keys from the system's random source (RFC 6455 §5.3). Each key is used once. Several are fetched at a time,
/// because a call of the system costs more than the masking of a short message.
package struct MaskingKeys: Sendable {
    private static let countPerCall = 64

    private var keys: [UInt32] = []

    package init() {}

    /// Returns the next key.
    package mutating func next() -> UInt32 {
        if keys.isEmpty { keys = Self.fetch() }
        return keys.removeLast()
    }

    private static func fetch() -> [UInt32] {
        var keys = [UInt32](repeating: 0, count: countPerCall)
        // At most 256 bytes a call.
        if unsafe keys.withUnsafeMutableBytes({ unsafe getentropy($0.baseAddress, $0.count) }) == 0 { return keys }
        // Also from the system, eight bytes at a time.
        var generator = SystemRandomNumberGenerator()
        return (0..<countPerCall).map { _ in generator.next() }
    }
}

/// Writes the frames of a client: the header, the key and the masked payload. Pure.
package struct FrameWriter: Sendable {
    private var keys = MaskingKeys()

    package init() {}

    /// Returns a frame.
    ///
    /// - Parameters:
    ///   - isCompressed: Whether the frame begins a compressed message.
    package mutating func frame(
        _ opcode: FrameOpcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool = true, isCompressed: Bool = false
    ) -> Data {
        let headSize = payload.count < 126 ? 6 : payload.count <= 0xFFFF ? 8 : 14
        let size = headSize + payload.count
        guard let block = unsafe malloc(size) else { preconditionFailure("no memory for a frame of \(size) bytes") }
        let bytes = unsafe UnsafeMutableRawBufferPointer(start: block, count: size)
        unsafe bytes[0] = (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue
        switch headSize {
        case 6: unsafe bytes[1] = 0x80 | UInt8(payload.count)
        case 8:
            unsafe bytes[1] = 0x80 | 126
            unsafe bytes.storeBytes(of: UInt16(payload.count).bigEndian, toByteOffset: 2, as: UInt16.self)
        default:
            unsafe bytes[1] = 0x80 | 127
            unsafe bytes.storeBytes(of: UInt64(payload.count).bigEndian, toByteOffset: 2, as: UInt64.self)
        }
        let key = keys.next()
        unsafe bytes.storeBytes(of: key, toByteOffset: headSize - 4, as: UInt32.self)
        unsafe Self.mask(payload, with: key, into: UnsafeMutableRawBufferPointer(rebasing: bytes[headSize...]))
        return unsafe Data(bytesNoCopy: block, count: size, deallocator: .free)
    }

    /// Returns a frame with the bytes of an array.
    package mutating func frame(_ opcode: FrameOpcode, _ payload: [UInt8]) -> Data {
        unsafe payload.withUnsafeBytes { unsafe frame(opcode, $0) }
    }

    /// Copies bytes and masks them, 16 at a time (RFC 6455 §5.3). `key` holds the bytes of the key in their order.
    static func mask(
        _ source: UnsafeRawBufferPointer, with key: UInt32, into target: UnsafeMutableRawBufferPointer
    ) {
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        let count = source.count
        let wide = SIMD4<UInt32>(repeating: key)
        var position = 0
        while position + 16 <= count {
            let block = unsafe from.loadUnaligned(fromByteOffset: position, as: SIMD4<UInt32>.self)
            unsafe to.storeBytes(of: block ^ wide, toByteOffset: position, as: SIMD4<UInt32>.self)
            position += 16
        }
        var rest = key.littleEndian
        while position < count {
            let byte = unsafe from.load(fromByteOffset: position, as: UInt8.self)
            unsafe to.storeBytes(of: byte ^ UInt8(truncatingIfNeeded: rest), toByteOffset: position, as: UInt8.self)
            rest = rest >> 8 | rest << 24
            position += 1
        }
    }
}
