/// How wide text is in a terminal, and how to make it so wide.
enum Columns {
    /// The columns that text takes.
    static func count(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// Text cut in its middle, where it is too wide: the beginning and the end of a file's name say most.
    static func fit(_ text: String, to columns: Int) -> String {
        if count(text) <= columns { return text }
        guard columns > 1 else { return String(repeating: "~", count: max(0, columns)) }
        let head = prefix(text, (columns - 1) / 2)
        let tail = prefix(text.reversed(), columns - 1 - count(head))
        return head + "~" + String(tail.reversed())
    }

    /// Text with blanks before it.
    static func right(_ text: String, _ columns: Int) -> String { blanks(columns - count(text)) + text }

    /// Text with blanks after it.
    static func left(_ text: String, _ columns: Int) -> String { text + blanks(columns - count(text)) }

    private static func blanks(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }

    private static func prefix(_ characters: some Sequence<Character>, _ columns: Int) -> String {
        var result = ""
        var used = 0
        for character in characters {
            used += width(character)
            if used > columns { break }
            result.append(character)
        }
        return result
    }

    /// East Asian and emoji characters take two columns; the ranges are the wide blocks of Unicode's UAX 11.
    private static func width(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }
}
