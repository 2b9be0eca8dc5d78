import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The format of an image file, recognized by its first bytes and never by its name.
public struct ImageFormat: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The format's media type, such as `image/jpeg`.
    public let rawValue: String

    /// Creates a format from its media type.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The media type.
    public var description: String { rawValue }

    /// JPEG (ITU-T T.81).
    public static let jpeg = ImageFormat(rawValue: "image/jpeg")
    /// PNG (W3C, third edition).
    public static let png = ImageFormat(rawValue: "image/png")
    /// WebP (RFC 9649).
    public static let webp = ImageFormat(rawValue: "image/webp")
    /// GIF 87a and 89a.
    public static let gif = ImageFormat(rawValue: "image/gif")
    /// Windows bitmap.
    public static let bmp = ImageFormat(rawValue: "image/bmp")
    /// Windows icon.
    public static let ico = ImageFormat(rawValue: "image/vnd.microsoft.icon")
    /// Windows cursor.
    public static let cur = ImageFormat(rawValue: "image/x-win-bitmap")
    /// The Quite OK Image format, on Linux.
    public static let qoi = ImageFormat(rawValue: "image/qoi")
    /// AVIF, still or a sequence.
    public static let avif = ImageFormat(rawValue: "image/avif")
    /// TIFF and BigTIFF. Most raw formats of cameras begin in the same way; they are not decoded on Linux.
    public static let tiff = ImageFormat(rawValue: "image/tiff")
    /// HEIC and other pictures in a HEIF container. On Linux, those that are coded as HEVC are decoded.
    public static let heic = ImageFormat(rawValue: "image/heic")
    /// JPEG XL, still or an animation, in a container or bare.
    public static let jpegXL = ImageFormat(rawValue: "image/jxl")
    /// SVG, whose first element `svg` follows at most a declaration, comments and a document type. On Linux,
    /// `SVGImageDecoder` decodes it.
    public static let svg = ImageFormat(rawValue: "image/svg+xml")

    // Tern decodes none of the following on Linux. They are recognized so that the error can name them, and so that a
    // registered decoder can be asked for them.

    /// JPEG 2000, in a container or bare.
    public static let jpeg2000 = ImageFormat(rawValue: "image/jp2")
    /// A document of Photoshop.
    public static let psd = ImageFormat(rawValue: "image/vnd.adobe.photoshop")

    /// The maximum number of bytes that `init(sniffing:)` reads. A file of boxes, such as AVIF, lists its brands in
    /// this many bytes, and text can begin with comments; all other formats are known from the first 16.
    public static let sniffedByteCount = 256

    /// Returns the number of bytes from which the format of a file that begins with these is known.
    static func sniffedByteCount(of bytes: borrowing RawSpan) -> Int {
        if bytes.byteCount < sniffedByteCount, FirstText(bytes).needsMore { return sniffedByteCount }
        return min(max(16, Brands.end(bytes)), sniffedByteCount)
    }

    /// Recognizes the format of a file from its first bytes; nil if they are too few or of no known format.
    public init?(sniffing bytes: borrowing RawSpan) {
        func matches(_ signature: [UInt8], at offset: Int = 0) -> Bool {
            guard bytes.byteCount >= offset + signature.count else { return false }
            return signature.indices.allSatisfy { index in
                unsafe bytes.unsafeLoad(fromByteOffset: offset + index, as: UInt8.self) == signature[index]
            }
        }
        if matches([0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if matches([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if matches(Array("RIFF".utf8)), matches(Array("WEBP".utf8), at: 8) {
            self = .webp
        } else if matches(Array("GIF87a".utf8)) || matches(Array("GIF89a".utf8)) {
            self = .gif
        } else if matches(Array("ftyp".utf8), at: 4) {
            if Brands.include(Brands.avif, in: bytes) {
                self = .avif
            } else if bytes.byteCount >= Self.sniffedByteCount(of: bytes), Brands.include(Brands.heif, in: bytes) {
                // A later brand could have been that of AVIF.
                self = .heic
            } else {
                return nil
            }
        } else if matches([0, 0, 1, 0]) {
            self = .ico
        } else if matches(Array("BM".utf8)) {
            self = .bmp
        } else if matches([0xFF, 0x0A]) || matches([0, 0, 0, 12] + Array("JXL \r\n".utf8)) {
            self = .jpegXL
        } else if matches([0xFF, 0x4F, 0xFF, 0x51]) || matches([0, 0, 0, 12] + Array("jP  \r\n".utf8)) {
            self = .jpeg2000
        } else if matches(Array("II*\0".utf8)) || matches(Array("MM\0*".utf8)) || matches(Array("II+\0".utf8))
            || matches(Array("MM\0+".utf8))
        {
            self = .tiff
        } else if matches(Array("8BPS".utf8)) {
            self = .psd
        } else if matches(Array("qoif".utf8)) {
            self = .qoi
        } else if matches([0, 0, 2, 0]) {
            self = .cur
        } else if FirstText(bytes).hasElement("svg") {
            self = .svg
        } else {
            return nil
        }
    }
}

/// The brands in the box `ftyp` that a file of boxes begins with (ISO/IEC 14496-12, §4.3): the major brand, its
/// version, and the compatible brands. A file can be read by the rules of each of them, whichever is the major one.
private enum Brands {
    /// Returns the end of the box; 0 if the bytes do not begin with one.
    static func end(_ bytes: borrowing RawSpan) -> Int {
        guard bytes.byteCount >= 8, number(bytes, at: 4) == 0x6674_7970 else { return 0 }
        return Int(clamping: number(bytes, at: 0))
    }

    /// `avif` and `avis` (AV1 Image File Format, §8).
    static let avif: Set<UInt32> = [0x6176_6966, 0x6176_6973]
    /// `heic`, `heix`, `heim`, `heis`, `hevc`, `hevx`, `mif1` and `msf1` (ISO/IEC 23008-12, §10 and Annex B).
    static let heif: Set<UInt32> = [
        0x6865_6963, 0x6865_6978, 0x6865_696D, 0x6865_6973, 0x6865_7663, 0x6865_7678, 0x6D69_6631, 0x6D73_6631,
    ]

    /// Returns whether one of the brands is among those that are there.
    static func include(_ wanted: Set<UInt32>, in bytes: borrowing RawSpan) -> Bool {
        let end = min(max(12, end(bytes)), bytes.byteCount, ImageFormat.sniffedByteCount)
        for at in stride(from: 8, through: end - 4, by: 4) where at != 12 {
            if wanted.contains(number(bytes, at: at)) { return true }
        }
        return false
    }

    private static func number(_ bytes: borrowing RawSpan, at offset: Int) -> UInt32 {
        unsafe UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}

extension ImageFormat {
    /// Recognizes the format of a file from its first bytes; nil if they are too few or of no known format.
    public init?(sniffing data: Data) {
        let first = [UInt8](data.prefix(Self.sniffedByteCount))
        guard let format = unsafe ImageFormat(sniffing: first.span.bytes) else { return nil }
        self = format
    }
}

/// Checks whether a file reaches the end that its own structure states, without decoding it.
///
/// Decoders that replace missing data without an error, such as ImageIO, need this check.
enum FileEnd {
    /// Returns whether the end is reached. True for formats whose structure states no end.
    static func isReached(by data: Data, _ format: ImageFormat) -> Bool {
        unsafe data.withUnsafeBytes { unsafe isReached(by: $0, format) }
    }

    static func isReached(by bytes: UnsafeRawBufferPointer, _ format: ImageFormat) -> Bool {
        switch format {
        case .jpeg: unsafe tern_jpeg_ends(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        case .png: unsafe Bytes(bytes).endsAsPNG
        case .gif: unsafe blocks(bytes).hasEnd
        case .webp: unsafe Bytes(bytes).endsAsRIFF
        case .ico, .cur: unsafe Bytes(bytes).endsAsIcon
        // Its pixels tell.
        case .qoi: true
        case .jpegXL: unsafe Bytes(bytes).endsAsJPEGXL
        default: unsafe Bytes(bytes).endsAsBoxes
        }
    }

    /// Returns whether no part of the picture can be missing, for a decoder that does not tell. A still GIF without its
    /// trailer is whole, and an icon is left to the decoder, which reads one entry; in all other formats, the end must
    /// be there.
    static func isWhole(_ data: Data, _ format: ImageFormat) -> Bool {
        switch format {
        case .gif: unsafe data.withUnsafeBytes { unsafe !blocks($0).isCut }
        case .ico, .cur: true
        default: isReached(by: data, format)
        }
    }

    private static func blocks(_ bytes: UnsafeRawBufferPointer) -> tern_gif_blocks {
        unsafe tern_gif_walk(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, .max)
    }
}

/// The bytes of a file while they are borrowed. Each read is checked against their end.
@safe
private struct Bytes {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = bytes }

    // 64 bits also where Int has 32, so that sums of a file's own numbers cannot overflow.
    private var count: Int64 { unsafe Int64(bytes.count) }

    /// Reads a number of four bytes, most significant byte first.
    private func number(_ start: Int64) -> Int64? {
        guard start >= 0, start <= count - 4 else { return nil }
        return unsafe Int64(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: Int(start), as: UInt32.self)))
    }

    /// Reads a number of four bytes, least significant byte first.
    private func little(_ start: Int64) -> Int64? {
        number(start).map { Int64(UInt32(truncatingIfNeeded: $0).byteSwapped) }
    }

    /// Whether the chunks reach IEND (PNG, third edition, §5), or the last bytes are that chunk, behind one of a wrong
    /// length.
    var endsAsPNG: Bool {
        if number(count - 12) == 0, number(count - 8) == 0x4945_4E44, number(count - 4) == 0xAE42_6082 { return true }
        var at: Int64 = 8
        while let length = number(at), let type = number(at + 4) {
            at += 12 + length
            if type == 0x4945_4E44 { return at <= count }
        }
        return false
    }

    /// Whether the file has the length that its header states (RFC 9649, §2.4).
    var endsAsRIFF: Bool {
        guard let size = little(4) else { return false }
        return size + 8 <= count
    }

    /// Whether the entries of an icon's directory lie within the file.
    var endsAsIcon: Bool {
        // The number of entries is in the two bytes behind the kind of the file.
        guard let entries = little(2).map({ $0 >> 16 }) else { return false }
        for entry in 0..<entries {
            guard let size = little(14 + entry * 16), let start = little(18 + entry * 16), start + size <= count else {
                return false
            }
        }
        return true
    }

    /// Whether the boxes of a file that begins with `ftyp` reach its end (ISO/IEC 14496-12, §4.2). Data after them that
    /// is not a box of an image is ignored.
    var endsAsBoxes: Bool { number(4) != 0x6674_7970 || reachesEnd(boxes: Self.boxes) }

    /// Whether the boxes of a file with a container reach its end (ISO/IEC 18181-2). The pixels of a bare codestream
    /// tell.
    var endsAsJPEGXL: Bool { number(4) != 0x4A58_4C20 || reachesEnd(boxes: Self.boxesOfJPEGXL) }

    private func reachesEnd(boxes: Set<Int64>) -> Bool {
        var at: Int64 = 0
        while at < count {
            guard var size = number(at), let type = number(at + 4) else { return false }
            // A size of 0 means up to the end of the file. 1 means that the size is in the eight bytes after the type.
            if size == 0 || !boxes.contains(type) { return true }
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

    /// `JXL `, `ftyp`, `jxll`, `jxli`, `jxlc`, `jxlp`, `jbrd`, `Exif`, `xml `, `jumb`, `brob`, `free`, `skip`.
    private static let boxesOfJPEGXL: Set<Int64> = [
        0x4A58_4C20, 0x6674_7970, 0x6A78_6C6C, 0x6A78_6C69, 0x6A78_6C63, 0x6A78_6C70, 0x6A62_7264, 0x4578_6966,
        0x786D_6C20, 0x6A75_6D62, 0x6272_6F62, 0x6672_6565, 0x736B_6970,
    ]
}
