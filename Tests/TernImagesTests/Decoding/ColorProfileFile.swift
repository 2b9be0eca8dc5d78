#if os(Linux)
@testable import TernImages

/// A valid or invalid ICC profile that a test composes.
struct ColorProfileFile {
    var space = "RGB "
    var device = "mntr"
    var connection = "XYZ "
    var tags: [(String, [UInt8])]

    var bytes: [UInt8] {
        var table = big(tags.count, 4)
        var data: [UInt8] = []
        for (name, content) in tags {
            table += Array(name.utf8) + big(132 + tags.count * 12 + data.count, 4) + big(content.count, 4)
            data += content + [UInt8](repeating: 0, count: (4 - content.count % 4) % 4)
        }
        let words = [device, space, connection].flatMap { Array($0.utf8) }
        var header = big(128 + table.count + data.count, 4) + big(0, 4) + big(0x0210_0000, 4) + words
        header += [2020, 1, 1, 0, 0, 0].flatMap { big($0, 2) } + Array("acsp".utf8)
        header += [UInt8](repeating: 0, count: 28) + big(0xF6D6, 4) + big(0x10000, 4) + big(0xD32D, 4)
        header += [UInt8](repeating: 0, count: 128 - header.count)
        return header + table + data
    }

    /// Returns the profile of a display: the primaries in the order of the channels, and the curve of all channels.
    static func display(_ primaries: [[Double]], curve: [UInt8]) -> [UInt8] {
        let points = zip(["rXYZ", "gXYZ", "bXYZ"], primaries).map { ($0, point($1)) }
        return ColorProfileFile(tags: points + ["rTRC", "gTRC", "bTRC"].map { ($0, curve) }).bytes
    }

    static let red = [0.4360, 0.2225, 0.0139]
    static let green = [0.3851, 0.7169, 0.0971]
    static let blue = [0.1431, 0.0606, 0.7141]
    /// The formula of sRGB's curve.
    static let plainCurve: [UInt8] =
        Array("para".utf8) + big(0, 4) + big(3, 2) + big(0, 2)
        + [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045].flatMap(fixed)
    static let linearCurve: [UInt8] = Array("curv".utf8) + big(0, 8)
    static let sRGB = display([red, green, blue], curve: plainCurve)
    /// A profile that exchanges red and green.
    static let swapped = display([green, red, blue], curve: plainCurve)
    /// The profile of a grey picture whose levels are proportional to light.
    static let linearGrey = ColorProfileFile(space: "GRAY", tags: [("kTRC", linearCurve)]).bytes

    static let displayP3 = display(
        [[0.51512, 0.24120, -0.00105], [0.29198, 0.69225, 0.04189], [0.15710, 0.06657, 0.78407]], curve: plainCurve)
    static let gamma22 = display(
        [red, green, blue], curve: Array("curv".utf8) + big(0, 4) + big(1, 4) + [2, 0x33, 0, 0])

    /// The profile of a display with a table. No light is black, and every other corner of the cube is the white of L*
    /// 100.
    static var tables: [UInt8] {
        var table = Array("mft1".utf8) + big(0, 4) + [3, 3, 2, 0]
        table += [1, 0, 0, 0, 1, 0, 0, 0, 1].flatMap { big($0 << 16, 4) }
        for _ in 0..<3 { table += (0...255).map { UInt8($0) } }
        for corner in 0..<8 { table += [corner == 0 ? 0 : 255, 128, 128] }
        for _ in 0..<3 { table += (0...255).map { UInt8($0) } }
        return ColorProfileFile(connection: "Lab ", tags: [("A2B0", table)]).bytes
    }

    /// The profile of a press. No ink is white, black ink is black, and each coloured ink is the grey of L* 50.
    static var press: [UInt8] {
        var table = Array("mft1".utf8) + big(0, 4) + [4, 3, 2, 0]
        table += [1, 0, 0, 0, 1, 0, 0, 0, 1].flatMap { big($0 << 16, 4) }
        for _ in 0..<4 { table += (0...255).map { UInt8($0) } }
        for corner in 0..<16 { table += [corner & 1 == 1 ? 0 : corner == 0 ? 255 : 128, 128, 128] }
        for _ in 0..<3 { table += (0...255).map { UInt8($0) } }
        return ColorProfileFile(space: "CMYK", device: "prtr", connection: "Lab ", tags: [("A2B0", table)]).bytes
    }

    private static func fixed(_ value: Double) -> [UInt8] { big(Int((value * 65536).rounded()), 4) }
    private static func point(_ values: [Double]) -> [UInt8] {
        Array("XYZ ".utf8) + big(0, 4) + values.flatMap(fixed)
    }
}

/// Adds profiles to files.
enum Tagged {
    /// Adds APP2 segments in the order of `pieces`. Each piece is numbered from 1, and their count is the total.
    static func jpeg(_ file: [UInt8], _ profile: [UInt8], pieces: [Int] = [1]) -> [UInt8] {
        let length = (profile.count + pieces.count - 1) / pieces.count
        let segments = pieces.flatMap { number in
            let piece = profile[(number - 1) * length..<min(profile.count, number * length)]
            let content = Array("ICC_PROFILE".utf8) + [0, UInt8(number), UInt8(pieces.count)] + piece
            return [0xFF, 0xE2] + big(content.count + 2, 2) + content
        }
        return Array(file.prefix(2)) + segments + Array(file.dropFirst(2))
    }

    /// Adds an iCCP chunk behind the header, with an uncompressed stream.
    static func png(_ file: [UInt8], _ profile: [UInt8]) -> [UInt8] {
        var (a, b) = (1, 0)
        for byte in profile {
            a = (a + Int(byte)) % 65521
            b = (b + a) % 65521
        }
        let stored = [1] + little(profile.count, 2) + little(~profile.count, 2) + profile
        let stream = [0x78, 0x01] + stored + big(b << 16 | a, 4)
        return Array(file.prefix(33)) + chunk("iCCP", [0x61, 0, 0] + stream) + Array(file.dropFirst(33))
    }

    /// Moves the only chunk of a simple file into the extended form, behind the profile.
    static func webp(_ file: [UInt8], _ profile: [UInt8], size: PixelSize, alpha: Bool) -> [UInt8] {
        func riff(_ name: String, _ content: [UInt8]) -> [UInt8] {
            Array(name.utf8) + little(content.count, 4) + content + (content.count % 2 == 1 ? [0] : [])
        }
        let flags: [UInt8] = [alpha ? 0x30 : 0x20, 0, 0, 0]
        let extended = riff("VP8X", flags + little(size.width - 1, 3) + little(size.height - 1, 3))
        return riff("RIFF", Array("WEBP".utf8) + extended + riff("ICCP", profile) + Array(file.dropFirst(12)))
    }
}
#endif
