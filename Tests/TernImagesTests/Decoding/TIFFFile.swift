#if os(Linux)
@testable import TernImages

/// A TIFF file of one picture, uncompressed unless its parts are.
struct TIFFFile {
    var width = 3
    var height = 2
    var bits = [8, 8, 8]
    /// 2 for RGB.
    var photometric = 2
    /// The bytes of the strips or tiles.
    var parts: [[UInt8]]
    var rowsPerStrip = 1
    /// The sides of a tile; nil for strips.
    var tile: (width: Int, height: Int)?
    var isLittle = true
    var isBig = false
    /// Further entries: the tag, the type and the values.
    var added: [(tag: Int, type: Int, values: [Int])] = []

    var bytes: [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] { isLittle ? little(value, count) : big(value, count) }
        let widths = [1: 1, 2: 1, 3: 2, 4: 4, 7: 1, 16: 8]
        var body: [UInt8] = isLittle ? Array("II".utf8) : Array("MM".utf8)
        body += number(isBig ? 43 : 42, 2)
        if isBig { body += number(8, 2) + number(0, 2) }
        let link = body.count
        body += number(0, isBig ? 8 : 4)
        var offsets: [Int] = []
        for part in parts {
            offsets.append(body.count)
            body += part
        }
        var entries: [(tag: Int, type: Int, values: [Int])] = [
            (256, 4, [width]), (257, 4, [height]), (258, 3, bits), (259, 3, [1]), (262, 3, [photometric]),
            (277, 3, [bits.count]),
        ]
        if let tile {
            entries += [
                (322, 4, [tile.width]), (323, 4, [tile.height]), (324, 4, offsets), (325, 4, parts.map(\.count)),
            ]
        } else {
            entries += [(273, 4, offsets), (278, 4, [rowsPerStrip]), (279, 4, parts.map(\.count))]
        }
        entries.removeAll { entry in added.contains { $0.tag == entry.tag } }
        entries = (entries + added).sorted { $0.tag < $1.tag }
        var directory = number(entries.count, isBig ? 8 : 2)
        let inline = isBig ? 8 : 4
        for entry in entries {
            let width = widths[entry.type] ?? 1
            var data = entry.values.flatMap { number($0, width) }
            directory += number(entry.tag, 2) + number(entry.type, 2) + number(entry.values.count, inline)
            if data.count > inline {
                if !body.count.isMultiple(of: 2) { body.append(0) }
                let place = body.count
                body += data
                data = number(place, inline)
            }
            directory += data + [UInt8](repeating: 0, count: inline - data.count)
        }
        if !body.count.isMultiple(of: 2) { body.append(0) }
        body.replaceSubrange(link..<link + inline, with: number(body.count, inline))
        return body + directory + number(0, inline)
    }

    /// Returns a file of RGB with one strip for each row.
    static func strips(of image: RasterImage) -> TIFFFile {
        let row = image.size.width * 4
        let parts = stride(from: 0, to: image.pixels.bytes.count, by: row).map { start in
            stride(from: start, to: start + row, by: 4).flatMap { Array(image.pixels.bytes[$0..<$0 + 3]) }
        }
        return TIFFFile(width: image.size.width, height: image.size.height, parts: parts)
    }
}
#endif
