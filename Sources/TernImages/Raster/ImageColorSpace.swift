#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The color space of an image's pixels.
public enum ImageColorSpace: Sendable, Hashable {
    /// sRGB (IEC 61966-2-1).
    case sRGB
    /// Display P3: the primaries of P3 with the white and the curve of sRGB.
    case displayP3
    /// The space of an ICC profile of red, green and blue: its bytes.
    case profile(Data)
    /// A space that is stated by the numbers of ITU-T H.273, such as BT.2100 with PQ or HLG.
    case numbers(Numbers)

    /// The numbers of a color space in ITU-T H.273.
    public struct Numbers: Sendable, Hashable {
        /// The number of the primaries (table 2), for example 9 for BT.2020.
        public var primaries: Int
        /// The number of the transfer (table 3), for example 16 for PQ and 18 for HLG.
        public var transfer: Int
        /// The brightest light of a PQ image in cd/m²; nil if it is not stated.
        public var peak: Double?

        /// Creates a space from its numbers, without a peak by default.
        public init(primaries: Int, transfer: Int, peak: Double? = nil) {
            self.primaries = primaries
            self.transfer = transfer
            self.peak = peak
        }
    }

    /// The transfer of light in a space.
    enum Transfer {
        /// The curve of sRGB.
        case usual
        /// Light itself.
        case linear
        case other
    }

    /// The transfer of the space. The transfers of BT.709, BT.601 and BT.2020 count as that of sRGB.
    var transfer: Transfer {
        switch self {
        case .sRGB, .displayP3: .usual
        case .profile: .other
        case .numbers(let numbers):
            switch numbers.transfer {
            case 1, 2, 6, 11, 13, 14, 15: .usual
            case 8: .linear
            default: .other
            }
        }
    }

    /// The bytes of the profile, which each image has for itself.
    var byteCount: Int { if case .profile(let data) = self { data.count } else { 0 } }

    /// The space in words, for errors.
    var words: String {
        switch self {
        case .sRGB: "sRGB"
        case .displayP3: "Display P3"
        case .profile: "the space of an ICC profile"
        case .numbers(let numbers): "the space \(numbers.primaries)/\(numbers.transfer) of H.273"
        }
    }
}

extension RasterImage {
    /// The kind of number of each component of a pixel: red, green, blue and alpha.
    public enum Component: Sendable, Hashable {
        /// A byte, four bytes a pixel. 255 is the greatest level.
        case uint8
        /// An integer of 16 bits in the machine's byte order, eight bytes a pixel. 65,535 is the greatest level.
        case uint16
        /// A half float (IEEE 754 binary16) in the machine's byte order, eight bytes a pixel. 1 is the greatest level
        /// of a file's integers.
        case float16

        /// The number of bytes of a pixel: 4 or 8.
        public var bytesPerPixel: Int { self == .uint8 ? 4 : 8 }

        /// The component in words, for errors.
        var words: String {
            switch self {
            case .uint8: "8 bits"
            case .uint16: "16 bits"
            case .float16: "half floats"
            }
        }
    }
}

/// The form of pixels: their components and their color space.
struct PixelForm: Sendable, Hashable {
    var component = RasterImage.Component.uint8
    var space = ImageColorSpace.sRGB

    /// sRGB with 8 bits a component.
    static let standard = PixelForm()
}
