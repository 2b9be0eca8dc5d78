import CTernCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Whether a file reaches the end that its own structure names. Decodes nothing.
///
/// For decoders that fill up what is missing without a word, as ImageIO does.
enum FileEnd {
    /// True also for formats whose structure names no end.
    static func isReached(by data: Data, _ format: ImageFormat) -> Bool {
        unsafe data.withUnsafeBytes { unsafe isReached(by: $0, format) }
    }

    static func isReached(by bytes: UnsafeRawBufferPointer, _ format: ImageFormat) -> Bool {
        switch format {
        case .jpeg: unsafe tern_jpeg_ends(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        case .png: unsafe Bytes(bytes).endsAsPNG
        // A still picture that lacks only the trailer is complete, as for the GIF decoder on Linux.
        case .gif: unsafe !tern_gif_walk(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, .max).isCut
        case .webp: unsafe Bytes(bytes).endsAsRIFF
        default: unsafe Bytes(bytes).endsAsBoxes
        }
    }
}

/// The bytes of a file, for as long as they are lent; each read is checked against their end.
@safe
private struct Bytes {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = bytes }

    // 64 bits also where Int has 32: no sum of a file's own numbers overflows.
    private var count: Int64 { unsafe Int64(bytes.count) }

    /// A number of four bytes, the highest first.
    private func number(_ start: Int64) -> Int64? {
        guard start >= 0, start <= count - 4 else { return nil }
        return unsafe Int64(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: Int(start), as: UInt32.self)))
    }

    /// Chunks up to IEND (PNG, third edition, §5).
    var endsAsPNG: Bool {
        var at: Int64 = 8
        while let length = number(at), let type = number(at + 4) {
            at += 12 + length
            if type == 0x4945_4E44 { return at <= count }
        }
        return false
    }

    /// A chunk that says how long the file is (RFC 9649, §2.4).
    var endsAsRIFF: Bool {
        guard let size = number(4).map({ UInt32(truncatingIfNeeded: $0).byteSwapped }) else { return false }
        return Int64(size) + 8 <= count
    }

    /// Boxes one after the other to the end, of files that begin with `ftyp` (ISO/IEC 14496-12, §4.2). What follows them
    /// and is none of the boxes of pictures is nobody's.
    var endsAsBoxes: Bool {
        guard number(4) == 0x6674_7970 else { return true }
        var at: Int64 = 0
        while at < count {
            guard var size = number(at), let type = number(at + 4) else { return false }
            // 0: to the end of the file; 1: the size is in the eight bytes after the type.
            if size == 0 || !Self.boxes.contains(type) { return true }
            if size == 1 {
                guard let high = number(at + 8), let low = number(at + 12), high < 1 << 16 else { return false }
                size = high << 32 | low
            }
            guard size >= 8 else { return true }
            at += size
        }
        return at == count
    }

    /// `ftyp`, `meta`, `mdat`, `moov`, `free`, `skip`.
    private static let boxes: Set<Int64> = [
        0x6674_7970, 0x6D65_7461, 0x6D64_6174, 0x6D6F_6F76, 0x6672_6565, 0x736B_6970,
    ]
}
