/// Makes a safe file name from the name that a server proposes for a download.
package enum SuggestedFilename {
    /// The length of the longest name on common file systems, in bytes of UTF-8.
    static let maximumLength = 255

    /// Returns the name of `Content-Disposition` (RFC 6266), otherwise the last component of the URL's path, otherwise
    /// `download`.
    package static func name(contentDisposition: String?, target: Target?) -> String {
        for proposed in contentDisposition.map(filenames) ?? [] {
            if let name = sanitize(proposed) { return name }
        }
        if let path = target?.path, let last = path.utf8.split(separator: Reference.slash).last {
            let decoded = String(decoding: Reference.percentDecoded(Array(last)[...]), as: UTF8.self)
            if let name = sanitize(decoded) { return name }
        }
        return "download"
    }

    /// Returns a name that stays in its folder; nil if nothing is left of it.
    ///
    /// Separators of all systems (`/`, `\`, `:`) and the other characters that Windows refuses become `_`. Control
    /// characters and characters that reverse the writing direction (a disguised `gpj.exe`) are removed. Dots and
    /// spaces at both ends, and dashes and tildes at the start, are removed: no `..`, no hidden file, no command-line
    /// option, no home folder (`~name`). Accents at the start are removed as well, because they would join the
    /// separator before the name. A name that Windows reserves for a device (`CON`, `nul.txt`), or that Tern uses for
    /// temporary files, gets a `_` before it. A name that is too long is cut before its extension.
    package static func sanitize(_ proposed: String) -> String? {
        var name = String.UnicodeScalarView()
        for scalar in proposed.unicodeScalars {
            switch scalar {
            case "/", "\\", ":", "*", "?", "\"", "<", ">", "|": name.append("_")
            case _ where isInvisible(scalar): continue
            default: name.append(scalar)
            }
        }
        let isMargin = { (scalar: Unicode.Scalar) in scalar == "." || scalar.properties.isWhitespace }
        let start = name.firstIndex { !isMargin($0) && $0 != "-" && $0 != "~" && !joinsSeparator($0) } ?? name.endIndex
        guard let last = name.lastIndex(where: { !isMargin($0) }), start <= last else { return nil }
        let kept = String(name[start...last])
        // Only replaced separators are left, so this was a path and not a name.
        if kept.allSatisfy({ $0 == "_" || $0 == "." }) { return nil }
        let harmless = shortened(kept)
        return isReserved(harmless) ? shortened("_" + harmless) : harmless
    }

    private static let devices: Set<String> = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    private static let numbers = Set("0123456789¹²³")

    /// Returns whether Windows reserves a name. Windows compares the part before the first dot, without trailing spaces
    /// and case.
    private static func isReserved(_ name: String) -> Bool {
        if TemporaryName(name) != nil { return true }
        var base = name.prefix { $0 != "." }[...]
        while base.last?.isWhitespace == true { base.removeLast() }
        let device = base.lowercased()
        if devices.contains(device) { return true }
        guard device.count == 4, let number = device.last, device.hasPrefix("com") || device.hasPrefix("lpt") else {
            return false
        }
        return numbers.contains(number)
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: scalar.properties.isBidiControl || scalar == "\u{FEFF}" || scalar == "\u{FFFD}"
        }
    }

    /// Returns whether a scalar forms one character with a `/` before it.
    private static func joinsSeparator(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value >= 0x300 && "/\(scalar)".dropFirst().isEmpty
    }

    /// Cuts a name that is too long. Its first scalar always stays, so that what protects its start still holds.
    private static func shortened(_ name: String) -> String {
        if name.utf8.count <= maximumLength { return name }
        var (stem, suffix) = (name[...], Substring())
        if let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 32 {
            (stem, suffix) = (name[..<dot], name[dot...])
        }
        let room = maximumLength - suffix.utf8.count
        if stem.utf8.count > room {
            let whole = String(stem)
            var end = whole.utf8.index(whole.startIndex, offsetBy: room)
            while String.Index(end, within: whole.unicodeScalars) == nil { end = whole.utf8.index(before: end) }
            stem = whole[..<end]
            // The last character was cut. It stays if it is the only one: a character can have any number of accents.
            if String.Index(end, within: whole) == nil, !stem.dropFirst().isEmpty { stem.removeLast() }
        }
        // The cut can end in a dot or a space, which must not end a name.
        if suffix.isEmpty { while let last = stem.last, last == "." || last.isWhitespace { stem.removeLast() } }
        return String(stem + suffix)
    }

    /// Returns the file names of the field, the best one first. `filename*` takes precedence over `filename` (RFC 6266
    /// §4.3) if it can be decoded. A damaged one is ignored if there is another name, and otherwise gives what can be
    /// read of it (RFC 8187 §3.2.1). Of several parameters of one name, the first counts.
    private static func filenames(in contentDisposition: String) -> [String] {
        var scanner = ParameterScanner(contentDisposition)
        // Servers often omit the disposition and begin with `filename=`.
        if !scanner.startsWithParameter { _ = scanner.leadingValue() }
        var (extended, plain, damaged): (String?, String?, String?)
        while let parameter = scanner.next() {
            switch parameter.name {
            case "filename*" where extended == nil:
                extended = extendedValue(parameter.value)
                if extended == nil, damaged == nil { damaged = readablePart(of: parameter.value) }
            case "filename" where plain == nil: plain = parameter.value
            default: break
            }
        }
        return [extended, plain, damaged].compactMap { $0 }
    }

    /// Decodes `charset'language'percent-encoded` (RFC 8187 §3.2) in UTF-8 or ISO-8859-1.
    private static func extendedValue(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, isWhole(parts[2]) else { return nil }
        let bytes = Reference.percentDecoded(Array(parts[2].utf8)[...])
        switch parts[0].lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return TextDecoding.latin1(bytes.span)
        default: return nil
        }
    }

    /// Returns whether a value is ASCII in which each `%` begins an escape.
    private static func isWhole(_ value: Substring) -> Bool {
        let bytes = Array(value.utf8)
        return bytes.indices.allSatisfy { index in
            if bytes[index] != UInt8(ascii: "%") { return bytes[index] < 0x80 }
            return bytes[index...].dropFirst().prefix(2).count(where: \.isHexDigit) == 2
        }
    }

    /// Returns the text of a damaged value: in UTF-8, without its charset and language, and without bytes that are no
    /// text.
    private static func readablePart(of value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        // Without quotes, it is a plain value under the wrong name.
        guard let text = parts.count == 3 ? parts[2] : parts.count == 1 ? parts[0] : nil else { return nil }
        let bytes = Reference.percentDecoded(Array(text.utf8)[...])
        return String(decoding: bytes, as: UTF8.self).filter { $0 != "\u{FFFD}" }
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(asciiLowercased)
    }
}
