#if os(Linux)
@testable import TernImages

/// An animated WebP that a test composes. Its frames are lossless, have the canvas's size, and last 50 ms each.
struct AnimatedWebPFile {
    var frames: [RasterImage]
    /// The number of times that the animation plays; 0 for endless.
    var plays = 0

    var bytes: [UInt8] {
        get throws {
            let size = frames[0].size
            let place = little(size.width - 1, 3) + little(size.height - 1, 3)
            var content = Array("WEBP".utf8) + Self.chunk("VP8X", [0x02, 0, 0, 0] + place)
            content += Self.chunk("ANIM", [0, 0, 0, 0] + little(plays, 2))
            for frame in frames {
                let picture = [UInt8](try frame.encoded(as: .losslessWebP)).dropFirst(12)
                content += Self.chunk("ANMF", little(0, 6) + place + little(50, 3) + [0] + picture)
            }
            return Self.chunk("RIFF", content)
        }
    }

    /// Returns a chunk of a RIFF file with its padding.
    static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        Array(name.utf8) + little(content.count, 4) + content + (content.count % 2 == 1 ? [0] : [])
    }

    /// Moves the only chunk of a simple file into the extended form, with an EXIF chunk behind it that states an
    /// orientation.
    static func oriented(_ file: [UInt8], _ orientation: Int, size: PixelSize) -> [UInt8] {
        let entry: [UInt8] = [1, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0]
        let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1] + entry + [0, 0, 0, 0]
        let extended = chunk("VP8X", [0x08, 0, 0, 0] + little(size.width - 1, 3) + little(size.height - 1, 3))
        return chunk("RIFF", Array("WEBP".utf8) + extended + Array(file.dropFirst(12)) + chunk("EXIF", exif))
    }
}
#endif
