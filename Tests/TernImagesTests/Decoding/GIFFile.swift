#if os(Linux)
/// A valid or invalid GIF of up to 8 colours that a test composes.
struct GIFFile {
    struct Frame {
        /// The rows of indices, from the top.
        var rows: [[Int]]
        var left = 0
        var top = 0
        /// 0 and 1 keep the frame, 2 clears it, and 3 restores the pixels before it.
        var disposal = 0
        var transparent: Int?
        /// The delay in hundredths of a second.
        var delay = 10
        var isInterlaced = false
        /// The red, green and blue of each index; nil to use the file's colours.
        var colours: [[UInt8]]?
        /// Whether an extension states disposal, delay and transparency.
        var isControlled = true
    }

    static let red: [UInt8] = [255, 0, 0, 255]
    static let green: [UInt8] = [0, 255, 0, 255]
    static let blue: [UInt8] = [0, 0, 255, 255]
    static let white: [UInt8] = [255, 255, 255, 255]
    static let clear: [UInt8] = [0, 0, 0, 0]

    var width: Int
    var height: Int
    var frames: [Frame]
    /// The number of repetitions in the extension for loops, 0 for endless; nil for no extension.
    var again: Int?
    /// The name of the extension for loops.
    var loopName = "NETSCAPE2.0"
    /// The colours of the file; empty for none.
    var colours: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]

    var bytes: [UInt8] {
        var file = Array("GIF89a".utf8) + little(width, 2) + little(height, 2)
        file += [colours.isEmpty ? 0 : 0x80 | UInt8(Self.power(colours)), 0, 0] + colours.joined()
        if let again {
            file += [0x21, 0xFF, 11] + Array(loopName.utf8) + [3, 1] + little(again, 2) + [0]
        }
        for frame in frames {
            if frame.isControlled {
                let packed = UInt8(frame.disposal << 2 | (frame.transparent == nil ? 0 : 1))
                file += [0x21, 0xF9, 4, packed] + little(frame.delay, 2) + [UInt8(frame.transparent ?? 0), 0]
            }
            let (width, height) = (frame.rows.first?.count ?? 0, frame.rows.count)
            file += [0x2C] + little(frame.left, 2) + little(frame.top, 2) + little(width, 2) + little(height, 2)
            let map = frame.colours.map { 0x80 | UInt8(Self.power($0)) } ?? 0
            file += [map | (frame.isInterlaced ? 0x40 : 0)] + (frame.colours ?? []).joined()
            file += Self.data(frame)
        }
        return file + [0x3B]
    }

    private static func power(_ colours: [[UInt8]]) -> Int { colours.count <= 2 ? 0 : colours.count <= 4 ? 1 : 2 }

    /// Compresses a frame with codes of four bits. The table is cleared before the codes would grow.
    private static func data(_ frame: Frame) -> [UInt8] {
        let order =
            frame.isInterlaced
            ? [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0.0, to: frame.rows.count, by: $0.1)) }
            : Array(frame.rows.indices)
        var codes: [Int] = []
        for (count, index) in order.flatMap({ frame.rows[$0] }).enumerated() {
            if count % 6 == 0 { codes.append(8) }
            codes.append(index)
        }
        codes += [9, 0]
        let packed = stride(from: 0, to: codes.count - 1, by: 2).map { UInt8(codes[$0] | codes[$0 + 1] << 4) }
        var blocks: [UInt8] = [3]
        for start in stride(from: 0, to: packed.count, by: 255) {
            let part = packed[start..<min(packed.count, start + 255)]
            blocks += [UInt8(part.count)] + part
        }
        return blocks + [0]
    }
}
#endif
