#if os(Linux)
/// A valid or invalid bitmap file that a test composes.
struct BitmapFile {
    var width: Int
    /// The height; negative if the first row is the top one.
    var height: Int
    var bits: Int
    var compression = 0
    /// 12 for OS/2; 40, 52, 56, 108 or 124 for Windows.
    var headerSize = 40
    /// The red, green and blue of each index.
    var palette: [[UInt8]] = []
    /// The masks of red, green, blue and, if there are four, alpha.
    var masks: [Int] = []
    var pixels: [UInt8]
    /// A profile behind the pixels, for a header of 124 bytes.
    var profile: [UInt8] = []

    /// The bytes from the information header on, as in an icon.
    var information: [UInt8] {
        var header = little(headerSize, 4)
        if headerSize == 12 {
            header += little(width, 2) + little(height, 2) + little(1, 2) + little(bits, 2)
        } else {
            header += little(width, 4) + little(height, 4) + little(1, 2) + little(bits, 2) + little(compression, 4)
            header += little(pixels.count, 4) + little(2835, 4) + little(2835, 4) + little(palette.count, 4)
            header += little(0, 4) + masks.flatMap { little($0, 4) }
        }
        header += [UInt8](repeating: 0, count: max(0, headerSize - header.count))
        let colours = palette.flatMap { (colour: [UInt8]) -> [UInt8] in
            headerSize == 12 ? colour.reversed() : colour.reversed() + [0]
        }
        return header + colours
    }

    var bytes: [UInt8] {
        var information = information
        let start = 14 + information.count
        if !profile.isEmpty {
            information.replaceSubrange(56..<60, with: little(0x4D42_4544, 4))
            information.replaceSubrange(
                112..<120, with: little(start - 14 + pixels.count, 4) + little(profile.count, 4))
        }
        return Array("BM".utf8) + little(start + pixels.count, 4) + little(0, 4) + little(start, 4) + information
            + pixels + profile
    }

    /// Packs rows, given from the top, in the form of a file without run lengths.
    static func rows(_ rows: [[UInt8]], topDown: Bool = false) -> [UInt8] {
        (topDown ? rows : rows.reversed()).flatMap { $0 + [UInt8](repeating: 0, count: (4 - $0.count % 4) % 4) }
    }

    /// Packs the indices of one row, with the first one in the highest bits.
    static func pack(_ indices: [Int], bits: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: (indices.count * bits + 7) / 8)
        for (x, index) in indices.enumerated() {
            bytes[x * bits / 8] |= UInt8(index << (8 - bits - x * bits % 8))
        }
        return bytes
    }
}

/// An icon file. Each entry is a PNG file, or the information, pixels and mask of a bitmap.
struct IconFile {
    /// The entries. The directory states a width and height of 0, which means 256, because decoders read the entry's
    /// own header.
    var entries: [[UInt8]]

    var bytes: [UInt8] {
        var start = 6 + entries.count * 16
        var directory = [0, 0, 1, 0] + little(entries.count, 2)
        for entry in entries {
            directory += [0, 0, 0, 0] + little(1, 2) + little(32, 2) + little(entry.count, 4) + little(start, 4)
            start += entry.count
        }
        return directory + entries.flatMap { $0 }
    }

    /// Returns a bitmap entry with the mask's rows from the top. A true bit hides its pixel.
    static func entry(_ bitmap: BitmapFile, mask: [[Bool]]) -> [UInt8] {
        var doubled = bitmap
        doubled.height *= 2
        let rows = mask.map { BitmapFile.pack($0.map { $0 ? 1 : 0 }, bits: 1) }
        return doubled.information + bitmap.pixels + BitmapFile.rows(rows)
    }
}
#endif
