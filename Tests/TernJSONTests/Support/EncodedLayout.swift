import TernJSON

/// Lays out a compact text by its options, slowly and independently of the encoder, as a reference for its layouts.
struct ReferenceLayout {
    private indirect enum Value {
        case scalar([UInt8])
        case array([Value])
        case object([(name: [UInt8], value: Value)])
    }

    private let text: [UInt8]
    private var place = 0
    private var result: [UInt8] = []
    private let formatting: TernJSONEncoder.OutputFormatting

    /// Returns the text with the options, except for escaped slashes.
    static func text(_ compact: some Sequence<UInt8>, _ formatting: TernJSONEncoder.OutputFormatting) -> String {
        var layout = ReferenceLayout(text: Array(compact), formatting: formatting)
        let value = layout.read()
        layout.write(value, level: 0)
        return String(decoding: layout.result, as: UTF8.self)
    }

    private init(text: [UInt8], formatting: TernJSONEncoder.OutputFormatting) {
        (self.text, self.formatting) = (text, formatting)
    }

    // MARK: Reading

    private mutating func read() -> Value {
        switch text[place] {
        case UInt8(ascii: "["):
            var elements: [Value] = []
            place += 1
            while text[place] != UInt8(ascii: "]") {
                if text[place] == UInt8(ascii: ",") { place += 1 }
                elements.append(read())
            }
            place += 1
            return .array(elements)
        case UInt8(ascii: "{"):
            var members: [(name: [UInt8], value: Value)] = []
            place += 1
            while text[place] != UInt8(ascii: "}") {
                if text[place] == UInt8(ascii: ",") { place += 1 }
                let name = string()
                place += 1
                members.append((name, read()))
            }
            place += 1
            return .object(members)
        case UInt8(ascii: "\""): return .scalar(string())
        default:
            let start = place
            while place < text.count, !Array(",]}".utf8).contains(text[place]) { place += 1 }
            return .scalar(Array(text[start..<place]))
        }
    }

    private mutating func string() -> [UInt8] {
        let start = place
        place += 1
        while text[place] != UInt8(ascii: "\"") { place += text[place] == UInt8(ascii: "\\") ? 2 : 1 }
        place += 1
        return Array(text[start..<place])
    }

    // MARK: Writing

    private mutating func write(_ value: Value, level: Int) {
        switch value {
        case .scalar(let text): result += text
        case .array(let elements):
            result += "[".utf8
            for (index, element) in elements.enumerated() {
                beginPart(index, level: level)
                write(element, level: level + 1)
            }
            end("]", isEmpty: elements.isEmpty, level: level)
        case .object(let members):
            result += "{".utf8
            for (index, member) in ordered(members).enumerated() {
                beginPart(index, level: level)
                result += member.name
                result += (isPretty ? " : " : ":").utf8
                write(member.value, level: level + 1)
            }
            end("}", isEmpty: members.isEmpty, level: level)
        }
    }

    private var isPretty: Bool { formatting.contains(.prettyPrinted) }

    private mutating func beginPart(_ index: Int, level: Int) {
        if index > 0 { result += ",".utf8 }
        if isPretty { line(level + 1) }
    }

    private mutating func end(_ bracket: String, isEmpty: Bool, level: Int) {
        if isPretty {
            if isEmpty { result += "\n".utf8 }
            line(level)
        }
        result += bracket.utf8
    }

    private mutating func line(_ level: Int) { result += ("\n" + String(repeating: "  ", count: level)).utf8 }

    private func ordered(_ members: [(name: [UInt8], value: Value)]) -> [(name: [UInt8], value: Value)] {
        guard formatting.contains(.sortedKeys) else { return members }
        return members.map { (Self.unescaped($0.name), $0) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
            .map(\.1)
    }

    private static func unescaped(_ name: [UInt8]) -> [UInt8] {
        let letters = Dictionary(uniqueKeysWithValues: zip("bfnrt".utf8, [8, 12, 10, 13, 9] as [UInt8]))
        var result: [UInt8] = []
        var place = 1
        while place < name.count - 1 {
            if name[place] != UInt8(ascii: "\\") {
                result.append(name[place])
                place += 1
            } else if name[place + 1] == UInt8(ascii: "u") {
                result.append(UInt8(String(decoding: name[place + 4..<place + 6], as: UTF8.self), radix: 16) ?? 0)
                place += 6
            } else {
                result.append(letters[name[place + 1]] ?? name[place + 1])
                place += 2
            }
        }
        return result
    }
}

/// All combinations of the options for the layout.
let allFormattings = (UInt(0)..<8).map { bits in
    TernJSONEncoder.OutputFormatting(rawValue: bits & 3 | (bits & 4) << 1)
}

/// Returns the text of a value.
func encodedText(_ value: some Encodable, _ formatting: TernJSONEncoder.OutputFormatting) throws -> String {
    var encoder = TernJSONEncoder()
    encoder.outputFormatting = formatting
    return String(decoding: try encoder.encode(value), as: UTF8.self)
}
