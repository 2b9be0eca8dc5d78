/// Writes compact JSON with a line for each member and element, as Foundation's encoder does.
@safe
struct TextIndenter {
    private let text: WrittenText
    private let output: JSONTextWriter
    private var level = 0

    private init(_ text: WrittenText, to output: JSONTextWriter) {
        self.text = text
        self.output = output
    }

    /// Writes the text of a writer to another one.
    ///
    /// - Throws: `CancellationError`.
    static func indent(_ source: JSONTextWriter, to output: JSONTextWriter) throws {
        // Strings are copied in blocks.
        source.reserve(16)
        output.reserve(source.count + source.count / 2)
        var indenter = unsafe TextIndenter(WrittenText(source.text), to: output)
        indenter.run()
        try output.checkFailure()
    }

    private mutating func run() {
        var place = 0
        while place < text.count {
            let byte = text[place]
            switch byte {
            case UInt8(ascii: "\""): copy(&place, to: text.endOfString(at: place))
            case UInt8(ascii: ","):
                output.append(byte)
                output.appendLine(level)
                place &+= 1
            case UInt8(ascii: ":"):
                output.appendColon()
                place &+= 1
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                output.append(byte)
                place &+= 1
                level &+= 1
                let next = text[place]
                if next == UInt8(ascii: "}") || next == UInt8(ascii: "]") {
                    output.append(UInt8(ascii: "\n"))
                } else {
                    output.appendLine(level)
                }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                level &-= 1
                output.appendLine(level)
                output.append(byte)
                place &+= 1
            default: copy(&place, to: text.endOfScalar(at: place))
            }
        }
    }

    @inline(__always)
    private func copy(_ place: inout Int, to end: Int) {
        guard let start = unsafe text.bytes.baseAddress else { return }
        unsafe output.appendBlocks(start + place, count: end &- place)
        place = end
    }
}

extension JSONTextWriter {
    /// Appends a line feed and two spaces for each level.
    @inline(__always)
    func appendLine(_ level: Int) {
        reserve(2 &* level &+ 17)
        var target = unsafe end
        unsafe target[0] = UInt8(ascii: "\n")
        unsafe target += 1
        var left = 2 &* level
        while left > 0 {
            let spaces = SIMD16<UInt8>(repeating: UInt8(ascii: " "))
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: spaces, as: SIMD16<UInt8>.self)
            unsafe target += 16
            left &-= 16
        }
        count &+= 2 &* level &+ 1
    }

    /// Appends a colon between spaces.
    @inline(__always)
    func appendColon() {
        append(UInt8(ascii: " "))
        append(UInt8(ascii: ":"))
        append(UInt8(ascii: " "))
    }
}
