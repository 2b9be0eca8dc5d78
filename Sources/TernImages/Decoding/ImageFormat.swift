#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The kind of a picture's file, found by its first bytes and never by its name.
public struct ImageFormat: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The format's media type, as `image/jpeg`.
    public let rawValue: String

    /// A format by its media type.
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
    /// AVIF, still or a sequence.
    public static let avif = ImageFormat(rawValue: "image/avif")

    /// How many first bytes `init(sniffing:)` looks at, at most.
    public static let sniffedByteCount = 16

    /// The format that the first bytes of a file say, nil if they are too few or of no known format.
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
        } else if matches(Array("ftypavif".utf8), at: 4) || matches(Array("ftypavis".utf8), at: 4) {
            self = .avif
        } else if matches([0, 0, 1, 0]) {
            self = .ico
        } else if matches(Array("BM".utf8)) {
            self = .bmp
        } else {
            return nil
        }
    }
}

extension ImageFormat {
    /// The format that the first bytes of a file say, nil if they are too few or of no known format.
    public init?(sniffing data: Data) {
        let first = [UInt8](data.prefix(Self.sniffedByteCount))
        guard let format = unsafe ImageFormat(sniffing: first.span.bytes) else { return nil }
        self = format
    }
}
