/// Letters with marks as ASCII letters. Only FoundationEssentials is at hand, and the C library's own depends on the
/// locale: the Latin alphabets of Europe are a table; what is not in it is percent-encoded as UTF-8, so that different
/// names stay different.
enum Transliteration {
    /// ASCII characters alone, without control characters.
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

    /// Characters compare by canonical equivalence: a letter with a combining mark finds the composed one.
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
