#if os(Linux)
@testable import TernImages

/// A valid or invalid animated PNG that a test composes.
struct AnimatedPNGFile {
    struct Frame {
        var image: RasterImage
        var left = 0
        var top = 0
        /// 0 keeps the frame, 1 clears it, and 2 restores the pixels before it.
        var dispose = 0
        /// 0 replaces the canvas, and 1 draws over it.
        var blend = 0
        var delay = (1, 10)
    }

    var frames: [Frame]
    var plays = 0
    /// The picture for programs that do not animate; nil if it is the first frame.
    var still: RasterImage?
    /// The number of frames that the header states; nil for the actual number.
    var promised: Int?
    /// An offset that is added to every sequence number from the third on.
    var leap = 0

    var bytes: [UInt8] {
        get throws {
            let first = try chunks(still ?? frames[0].image)
            var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            file += chunk("IHDR", first.header) + chunk("acTL", big(promised ?? frames.count, 4) + big(plays, 4))
            if still != nil { file += chunk("IDAT", first.data) }
            var sequence = 0
            func number() -> [UInt8] {
                defer { sequence += 1 }
                return big(sequence >= 2 ? sequence + leap : sequence, 4)
            }
            for (index, frame) in frames.enumerated() {
                let size = frame.image.size
                let place = big(size.width, 4) + big(size.height, 4) + big(frame.left, 4) + big(frame.top, 4)
                let time = big(frame.delay.0, 2) + big(frame.delay.1, 2)
                file += chunk("fcTL", number() + place + time + [UInt8(frame.dispose), UInt8(frame.blend)])
                let data = try chunks(frame.image).data
                // In two pieces, as in files of other encoders.
                for piece in [data.prefix(data.count / 2), data.suffix(from: data.count / 2)] {
                    if index == 0, still == nil {
                        file += chunk("IDAT", [UInt8](piece))
                    } else {
                        file += chunk("fdAT", number() + piece)
                    }
                }
            }
            return file + chunk("IEND", [])
        }
    }

    /// The header and the data of a picture's PNG file.
    private func chunks(_ image: RasterImage) throws -> (header: [UInt8], data: [UInt8]) {
        // All frames of a file have the same channels.
        let file = [UInt8](try image.encoded(as: .png(), pngChannels: 4))
        var at = 8
        var data: [UInt8] = []
        while at + 8 <= file.count {
            let length = file[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            if Array(file[at + 4..<at + 8]) == Array("IDAT".utf8) { data += file[at + 8..<at + 8 + length] }
            at += length + 12
        }
        return ([UInt8](file[16..<29]), data)
    }
}

/// A chunk of a PNG file, with its checksum.
func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
    let named = Array(name.utf8) + data
    var sum: UInt32 = .max
    for byte in named {
        sum ^= UInt32(byte)
        for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
    return big(data.count, 4) + named + big(Int(~sum), 4)
}
#endif
