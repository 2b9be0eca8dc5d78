/// The parts of RFC 3986 that work on a path and its query: which bytes may stand there, and dot segments.
enum Reference {
    static let slash = UInt8(ascii: "/")
    static let query = UInt8(ascii: "?")
    static let hash = UInt8(ascii: "#")
    private static let percent = UInt8(ascii: "%")
    private static let dot = UInt8(ascii: ".")

    /// Where the colon behind the scheme stands, or nil if the text does not begin with one (RFC 3986 §3.1).
    static func schemeEnd(_ bytes: some RandomAccessCollection<UInt8>) -> Int? {
        guard bytes.first?.isASCIILetter == true else { return nil }
        for (offset, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: ":") { return offset }
            let isSchemeByte = byte.isASCIILetter || byte.isASCIIDigit || byte == UInt8(ascii: "+")
            guard isSchemeByte || byte == UInt8(ascii: "-") || byte == dot else { return nil }
        }
        return nil
    }

    /// Returns where the authority of a reference begins, behind `//` or `scheme://`; nil without an authority.
    static func authorityStart(_ bytes: ArraySlice<UInt8>) -> Int? {
        let rest = schemeEnd(bytes).map { bytes.dropFirst($0 + 1) } ?? bytes
        return rest.starts(with: "//".utf8) ? rest.startIndex + 2 : nil
    }

    /// Whether a byte behind `//` is the first of the path, the query or the fragment (RFC 3986 §3.2).
    static func endsAuthority(_ byte: UInt8) -> Bool { byte == slash || byte == query || byte == hash }

    /// Whether the bytes are the word, which is in lower case, without regard to case.
    static func matches(_ bytes: ArraySlice<UInt8>, _ word: String) -> Bool {
        guard bytes.count == word.utf8.count else { return false }
        var index = bytes.startIndex
        for byte in word.utf8 {
            if bytes[index].asciiLowercased != byte { return false }
            index += 1
        }
        return true
    }

    /// A path that begins with `/`, and its query, as they can be sent: encoded, without dot segments and fragment.
    static func normalized(_ bytes: ArraySlice<UInt8>) throws(Target.Problem) -> ArraySlice<UInt8> {
        // Most URLs need nothing: the caller gets the same bytes back.
        if bytes.allSatisfy({ ByteSet.urlTail.contains($0) }), !hasDotSegments(bytes) { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 16)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte.isASCIIControl { throw Target.Problem(reason: "the URL contains a control character") }
            if byte == hash { break }
            if byte == percent, index + 2 < bytes.endIndex, bytes[index + 1].hexValue != nil,
                bytes[index + 2].hexValue != nil
            {
                result.append(byte)
            } else if ByteSet.urlTail.contains(byte) {
                result.append(byte)
            } else {
                result.appendPercentEncoded(byte)
            }
            index += 1
        }
        // What stands behind the hash is dropped, but a line break there is an error all the same.
        if bytes[index...].contains(where: \.isASCIIControl) {
            throw Target.Problem(reason: "the URL contains a control character")
        }
        return hasDotSegments(result[...]) ? removingDotSegments(result)[...] : result[...]
    }

    /// What stands behind the first `#`, as a URL may hold it; nil without one, and for one with a control character, which
    /// the rest of the way refuses.
    static func fragment(of bytes: ArraySlice<UInt8>) -> String? {
        guard let hash = bytes.firstIndex(of: hash), !bytes[hash...].contains(where: \.isASCIIControl) else {
            return nil
        }
        var result: [UInt8] = []
        for byte in bytes[(hash + 1)...] {
            let stays = ByteSet.urlTail.contains(byte) || byte == percent
            if stays { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Whether the path holds a segment `.` or `..`.
    private static func hasDotSegments(_ bytes: ArraySlice<UInt8>) -> Bool {
        var segmentIsDots = false
        var length = 0
        for byte in bytes {
            if byte == slash || byte == query {
                if segmentIsDots, length > 0 { return true }
                if byte == query { return false }
                segmentIsDots = true
                length = 0
            } else {
                length += 1
                if byte != dot || length > 2 { segmentIsDots = false }
            }
        }
        return segmentIsDots && length > 0
    }

    /// `remove_dot_segments` of RFC 3986 §5.2.4, for a path that begins with `/`; the query is left as it is.
    private static func removingDotSegments(_ bytes: [UInt8]) -> [UInt8] {
        let pathEnd = bytes.firstIndex(of: query) ?? bytes.endIndex
        var segments: [ArraySlice<UInt8>] = []
        let parts = bytes[..<pathEnd].dropFirst().split(separator: slash, omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            if part.elementsEqual("..".utf8) {
                if !segments.isEmpty { segments.removeLast() }
                if isLast { segments.append([]) }
            } else if part.elementsEqual(".".utf8) {
                if isLast { segments.append([]) }
            } else {
                segments.append(part)
            }
        }
        return [slash] + segments.joined(separator: [slash]) + bytes[pathEnd...]
    }

    /// Each `%XX` as its byte; a lone `%` stays.
    static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == percent, index + 2 < bytes.endIndex, let high = bytes[index + 1].hexValue,
                let low = bytes[index + 2].hexValue
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}
