import CTernFuzz
import Foundation
import TernImages

/// The pixels of a GIF's frame, which giflib decodes, too.
extension FuzzTarget {
    static let gifPixels = FuzzTarget(
        name: "gif-pixels", seeds: { try pictures(of: .gif, fixtures: $0).compactMap(firstFrame) },
        run: { input, choice in try compareWithGiflib(input, choice) })

    /// Returns the bytes of a file that follow the descriptor of its first frame, from the size of the codes on.
    private static func firstFrame(of file: [UInt8]) -> [UInt8]? {
        func colors(_ flags: UInt8) -> Int { flags & 0x80 > 0 ? 6 << Int(flags & 7) : 0 }
        var at = 13 + colors(file[10])
        while at + 10 < file.count, file[at] == 0x21 {
            at += 2
            while at < file.count, file[at] > 0 { at += 1 + Int(file[at]) }
            at += 1
        }
        guard at + 10 < file.count, file[at] == 0x2C else { return nil }
        return Array(file.dropFirst(at + 10 + colors(file[at + 9])))
    }

    /// Decodes a frame of grey pixels. Exactly the rows that giflib decodes are shown.
    private static func compareWithGiflib(_ data: Data, _ choice: UInt64) throws -> String {
        let (width, height) = (UInt8(1 + choice & 127), UInt8(1 + choice >> 8 & 63))
        let greys = (0...255).flatMap { [UInt8](repeating: $0, count: 3) }
        let file =
            Array("GIF89a".utf8) + [width, 0, height, 0, 0xF7, 0, 0] + greys
            + [0x2C, 0, 0, 0, 0, width, 0, height, 0, 0] + data
        var indices = [UInt8](repeating: 0, count: Int(width) * Int(height))
        let rows = unsafe tern_fuzz_giflib_rows(file, file.count, &indices)
        let picture: RasterImage
        do throws(ImageError) {
            picture = try CodecImageDecoder().image(
                from: Data(file), options: ImageDecodingOptions(allowsPartial: true))
        } catch {
            try require(rows == 0, "\(error), but giflib shows \(rows) rows of \(width)x\(height)")
            return "rejected, \(error.kind)"
        }
        let shown = picture.withPixels { unsafe $0.withUnsafeBytes { unsafe Array($0) } }
        let expected = indices.enumerated().flatMap { place, index -> [UInt8] in
            place < rows * Int(width) ? [index, index, index, 255] : [0, 0, 0, 0]
        }
        try require(shown == expected, "giflib shows \(rows) rows of \(width)x\(height), and other ones")
        try require(rows == height || picture.metadata.isPartial, "\(rows) rows of \(height) are taken for all")
        return "\(rows == height) \(rows == 0)"
    }
}
