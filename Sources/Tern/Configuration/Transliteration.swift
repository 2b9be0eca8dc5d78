/// Transliterates text to ASCII. FoundationEssentials has no such function, and that of the C library depends on the
/// locale. A table covers the Latin alphabets of Europe. Other characters are percent-encoded as UTF-8, so that
/// different names stay different.
enum Transliteration {
    /// Returns a text of ASCII characters without control characters.
    static func ascii(_ text: String) -> String {
        var result: [UInt8] = []
        for character in text {
            if let byte = character.asciiValue, !byte.isASCIIControl {
                result.append(byte)
            } else if let letters = letters[character] {
                result += letters.utf8
            } else {
                for byte in String(character).utf8 { result.appendPercentEncoded(byte) }
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The replacements. Characters compare by canonical equivalence, so a letter with a combining mark equals the
    /// composed one.
    private static let letters: [Character: String] = {
        let groups = [
            "A": "ÀÁÂÃĀĂĄǍ", "AE": "ÄÆ", "AA": "Å", "C": "ÇĆĈĊČ", "D": "ÐĎĐ", "E": "ÈÉÊËĒĔĖĘĚ", "G": "ĜĞĠĢ",
            "H": "ĤĦ", "I": "ÌÍÎÏĨĪĬĮİ", "J": "Ĵ", "K": "Ķ", "L": "ĹĻĽĿŁ", "N": "ÑŃŅŇ", "O": "ÒÓÔÕŌŎŐ",
            "OE": "ÖØŒ", "R": "ŔŖŘ", "S": "ŚŜŞŠȘ", "SS": "ẞ", "T": "ŢŤŦȚ", "TH": "Þ", "U": "ÙÚÛŨŪŬŮŰŲ", "UE": "Ü",
            "W": "Ŵ", "Y": "ÝŶŸ", "Z": "ŹŻŽ", "a": "àáâãāăąǎ", "ae": "äæ", "aa": "å", "c": "çćĉċč", "d": "ðďđ",
            "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ", "l": "ĺļľŀł",
            "n": "ñńņňŉ", "o": "òóôõōŏő", "oe": "öøœ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß", "t": "ţťŧț", "th": "þ",
            "u": "ùúûũūŭůűų", "ue": "ü", "w": "ŵ", "y": "ýŷÿ", "z": "źżž", "-": "‐‑‒–—", "'": "‘’", "\"": "“”",
            "...": "…", " ": "\u{A0}",
        ]
        var table: [Character: String] = [:]
        for (letters, marked) in groups {
            for character in marked { table[character] = letters }
        }
        return table
    }()
}
