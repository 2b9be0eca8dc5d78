@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Interlaced PNG and GIF files, which no available encoder writes. They are composed byte by byte.
enum InterlacedFixtures {
    /// Returns a picture with edges and noise, the same in every run. No pass of it is empty, and each pass changes the
    /// measured quality.
    static func photo(_ width: Int, _ height: Int) -> RasterImage? {
        var state: UInt32 = 7
        var bytes: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                state = state &* 1_664_525 &+ 1_013_904_223
                let noise = Int(state >> 28)
                let edge = (x * 5 / width + y * 4 / height).isMultiple(of: 2) ? 60 : 0
                let red = x * 170 / width + edge + noise
                let green = y * 170 / height + edge + noise
                bytes += [UInt8(min(255, red)), UInt8(min(255, green)), UInt8(min(255, 200 - edge + noise)), 255]
            }
        }
        return RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes)
    }

    /// The first column and row of each pass, and its steps across and down (PNG, third edition, section 8.2).
    static let adam7 = [
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
    ]

    /// Returns an RGBA PNG with uncompressed data. `chunks` come before the picture's data.
    static func png(_ image: RasterImage, interlaced: Bool, chunks: [(String, [UInt8])] = []) -> Data {
        let (width, height, pixels) = (image.size.width, image.size.height, image.pixels.bytes)
        var raw: [UInt8] = []
        for (left, top, across, down) in interlaced ? adam7 : [(0, 0, 1, 1)] where left < width {
            for y in stride(from: top, to: height, by: down) {
                raw.append(0)
                for x in stride(from: left, to: width, by: across) {
                    raw += pixels[(y * width + x) * 4..<(y * width + x) * 4 + 4]
                }
            }
        }
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += chunk("IHDR", big(UInt32(width)) + big(UInt32(height)) + [8, 6, 0, 0, interlaced ? 1 : 0])
        for (name, body) in chunks { file += chunk(name, body) }
        let stream = stored(raw)
        for start in stride(from: 0, to: stream.count, by: 5_000) {
            file += chunk("IDAT", Array(stream[start..<min(stream.count, start + 5_000)]))
        }
        return Data(file + chunk("IEND", []))
    }

    /// Returns a GIF of 6×7×6 colours whose frames are all the same picture. The first frame may have an offset from
    /// the corner.
    static func gif(
        _ image: RasterImage, interlaced: Bool, frames: Int = 1, transparent: Int? = nil, inset: Int = 0
    ) -> Data {
        let (width, height, pixels) = (image.size.width, image.size.height, image.pixels.bytes)
        var file = Array("GIF89a".utf8) + little(width + inset) + little(height + inset) + [0xF7, 0, 0]
        for index in 0..<256 {
            let color = min(index, 251)
            file += [UInt8(color / 42 * 51), UInt8(color / 6 % 7 * 42), UInt8(color % 6 * 51)]
        }
        let order =
            interlaced
            ? [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0.0, to: height, by: $0.1)) }
            : Array(0..<height)
        var indices: [UInt8] = []
        for y in order {
            for x in 0..<width {
                let at = (y * width + x) * 4
                let (red, green, blue) = (Int(pixels[at]), Int(pixels[at + 1]), Int(pixels[at + 2]))
                indices.append(UInt8(red * 5 / 255 * 42 + green * 6 / 255 * 6 + blue * 5 / 255))
            }
        }
        for _ in 0..<frames {
            file += [0x21, 0xF9, 4, transparent == nil ? 0 : 1, 5, 0, UInt8(transparent ?? 0), 0]
            file += [0x2C] + little(inset) + little(inset) + little(width) + little(height)
            file += [interlaced ? 0x40 : 0, 8]
            let data = lzw(indices)
            for start in stride(from: 0, to: data.count, by: 255) {
                let part = data[start..<min(data.count, start + 255)]
                file += [UInt8(part.count)] + part
            }
            file.append(0)
        }
        return Data(file + [0x3B])
    }

    private static func lzw(_ indices: [UInt8]) -> [UInt8] {
        var (output, pool, filled, bits): ([UInt8], UInt32, Int, Int) = ([], 0, 0, 9)
        func put(_ code: Int) {
            pool |= UInt32(code) << UInt32(filled)
            filled += bits
            while filled >= 8 {
                output.append(UInt8(truncatingIfNeeded: pool))
                pool >>= 8
                filled -= 8
            }
        }
        var table: [Int: Int] = [:]
        var (next, prefix) = (258, -1)
        put(256)
        for index in indices {
            if prefix < 0 {
                prefix = Int(index)
            } else if let code = table[prefix << 8 | Int(index)] {
                prefix = code
            } else {
                put(prefix)
                if next < 4096 {
                    table[prefix << 8 | Int(index)] = next
                    next += 1
                    if next > 1 << bits, bits < 12 { bits += 1 }
                } else {
                    put(256)
                    (table, next, bits) = ([:], 258, 9)
                }
                prefix = Int(index)
            }
        }
        put(prefix)
        put(257)
        output.append(UInt8(truncatingIfNeeded: pool))
        return output
    }

    static func big(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    private static func little(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }

    private static func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
        let named = Array(name.utf8) + body
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in named {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return big(UInt32(body.count)) + named + big(~crc)
    }

    /// Returns a zlib stream of stored blocks (RFC 1950, RFC 1951 section 3.2.4).
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var (stream, low, high): ([UInt8], UInt32, UInt32) = ([0x78, 0x01], 1, 0)
        for start in stride(from: 0, to: bytes.count, by: 65_535) {
            let end = min(bytes.count, start + 65_535)
            let count = end - start
            stream += [end == bytes.count ? 1 : 0] + little(count) + little(count ^ 0xFFFF) + bytes[start..<end]
        }
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return stream + big(high << 16 | low)
    }
}
