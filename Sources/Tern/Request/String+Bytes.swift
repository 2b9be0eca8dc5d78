extension String {
    /// The UTF-8 of the text in place. Iterating `utf8` asks at each byte what kind of string it is; this asks once.
    func withUTF8Span<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        let result = unsafe utf8.withContiguousStorageIfAvailable { buffer in
            body(unsafe Span(_unsafeElements: buffer))
        }
        if let result { return result }
        // Bridged from an NSString: a copy is needed.
        return body(Array(utf8).span)
    }

    /// Whether all bytes belong to a set. True for the empty text.
    func consists(of set: ByteSet) -> Bool {
        withUTF8Span { bytes in
            for index in bytes.indices where !set.contains(bytes[index]) { return false }
            return true
        }
    }

    /// The text as it may stand in an error or a log line: without control characters, at most `limit` characters.
    ///
    /// A line feed from a server or a user could forge a line of the log, an escape sequence could control the terminal
    /// that shows it, and a change of the writing direction could reverse the text.
    package func printable(limit: Int = 200) -> String {
        var result = ""
        for scalar in unicodeScalars.prefix(limit) {
            // Besides C0 and DEL: C1, the separators at which some viewers break lines, and the controls of direction.
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
                result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        if unicodeScalars.dropFirst(limit).isEmpty { return result }
        return result + "…"
    }
}
