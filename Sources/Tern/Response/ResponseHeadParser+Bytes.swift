#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// One line of a head, without its line end.
struct HeadLine {
    let content: Range<Int>
    /// Where the next line begins.
    let next: Int

    init(in bytes: borrowing Span<UInt8>, at start: Int) {
        // The engine looks for single headers on its loop: memchr passes a line in a few nanoseconds.
        let lineFeed: Int? = unsafe bytes.withUnsafeBytes { buffer in
            guard start < bytes.count, let base = buffer.baseAddress else { return nil }
            guard let hit = unsafe memchr(base + start, 0x0A, bytes.count - start) else { return nil }
            return unsafe UnsafeRawPointer(hit) - base
        }
        var end = lineFeed ?? bytes.count
        next = min(end + 1, bytes.count)
        // The CR belongs to the line end also where the bytes stop before the LF.
        if end > start, bytes[end - 1] == 0x0D { end -= 1 }
        content = start..<end
    }
}

extension ResponseHeadParser {
    /// Parses one head: the status line, the fields, and the empty line if it is there.
    package static func parse(_ bytes: [UInt8]) throws(Problem) -> Head { try parse(bytes.span) }

    /// Parses one head: the status line, the fields, and the empty line if it is there.
    @unsafe
    package static func parse(_ bytes: UnsafeRawBufferPointer) throws(Problem) -> Head {
        let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
        return try parse(span)
    }

    /// Parses a block of fields without a status line, such as trailers.
    package static func fields(_ bytes: [UInt8]) -> Headers { fields(bytes.span) }

    /// The first value of a header in a raw head, without building the others.
    package static func value(of name: String, in bytes: [UInt8]) -> String? { value(of: name, in: bytes.span) }

    /// The first value of a header in a raw head, without building the others.
    @unsafe
    package static func value(of name: String, in bytes: UnsafeRawBufferPointer) -> String? {
        let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
        return value(of: name, in: span)
    }

    /// Returns all values of a header in a raw head, byte for byte. Continuation lines are joined by a space.
    package static func rawValues(of name: String, in bytes: Span<UInt8>) -> [[UInt8]] {
        let name = Array(name.utf8)
        var values: [[UInt8]] = []
        // The status line is not a field.
        var next = HeadLine(in: bytes, at: 0).next
        while next < bytes.count {
            let line = HeadLine(in: bytes, at: next)
            if line.content.isEmpty { break }
            next = line.next
            guard let colon = index(of: UInt8(ascii: ":"), in: bytes, line.content) else { continue }
            let found = trimmed(bytes, line.content.lowerBound..<colon)
            var isMatch = found.count == name.count
            for offset in name.indices where isMatch {
                isMatch = bytes[found.lowerBound + offset].asciiLowercased == name[offset].asciiLowercased
            }
            var value = isMatch ? trimmed(bytes, (colon + 1)..<line.content.upperBound).map { bytes[$0] } : []
            while next < bytes.count, bytes[next].isHTTPWhitespace {
                let more = HeadLine(in: bytes, at: next)
                next = more.next
                let rest = trimmed(bytes, more.content)
                if isMatch, !rest.isEmpty { value += (value.isEmpty ? [] : [0x20]) + rest.map { bytes[$0] } }
            }
            if isMatch { values.append(value) }
        }
        return values
    }

    /// Returns all values of a header in a raw head, byte for byte.
    package static func rawValues(of name: String, in bytes: [UInt8]) -> [[UInt8]] {
        rawValues(of: name, in: bytes.span)
    }

    static func index(of byte: UInt8, in bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        var position = range.lowerBound
        while position < range.upperBound {
            if bytes[position] == byte { return position }
            position += 1
        }
        return nil
    }

    static func hasPrefix(_ prefix: StaticString, in bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard range.count >= prefix.utf8CodeUnitCount else { return false }
        for offset in 0..<prefix.utf8CodeUnitCount
        where unsafe prefix.utf8Start[offset] != bytes[range.lowerBound + offset] { return false }
        return true
    }

    /// The range without spaces and tabs at its ends.
    static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var (lower, upper) = (range.lowerBound, range.upperBound)
        while lower < upper, bytes[lower].isHTTPWhitespace { lower += 1 }
        while lower < upper, bytes[upper - 1].isHTTPWhitespace { upper -= 1 }
        return lower..<upper
    }

    /// The bytes as UTF-8, or as ISO-8859-1 if they are not; CR and NUL become spaces (RFC 9110 §5.5).
    static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        var isASCII = true
        var needsCleaning = false
        for position in range {
            let byte = bytes[position]
            if byte >= 0x80 { isASCII = false }
            if byte == 0x0D || byte == 0x00 { needsCleaning = true }
        }
        if isASCII, !needsCleaning {
            return unsafe bytes.extracting(range).withUnsafeBufferPointer {
                unsafe String(decoding: $0, as: UTF8.self)
            }
        }
        let cleaned = cleaned(bytes, range)
        return String(validating: cleaned, as: UTF8.self) ?? TextDecoding.latin1(cleaned.span)
    }

    /// Returns the bytes as a reference to a URL (RFC 9110 §10.2.2). In bytes that are not UTF-8, the host is decoded by
    /// itself, and every other byte outside ASCII is percent-encoded. Bytes of the host that are not UTF-8 become U+FFFD,
    /// which no host can have.
    static func reference(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        let isASCII = range.allSatisfy { bytes[$0] < 0x80 }
        if isASCII { return text(bytes, range) }
        let cleaned = cleaned(bytes, range)
        if let text = String(validating: cleaned, as: UTF8.self) { return text }
        let start = Reference.authorityStart(cleaned[...])
        let rest = start.map { start in
            cleaned[start...].firstIndex(where: Reference.endsAuthority) ?? cleaned.endIndex
        }
        var tail: [UInt8] = []
        for byte in cleaned[(rest ?? 0)...] {
            if byte < 0x80 { tail.append(byte) } else { tail.appendPercentEncoded(byte) }
        }
        return String(decoding: cleaned[..<(rest ?? 0)], as: UTF8.self) + String(decoding: tail, as: UTF8.self)
    }

    /// Returns whether a field name is `Location`.
    static func isLocation(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        let location: StaticString = "location"
        guard name.count == location.utf8CodeUnitCount else { return false }
        for offset in 0..<name.count
        where unsafe location.utf8Start[offset] != bytes[name.lowerBound + offset].asciiLowercased { return false }
        return true
    }

    /// Returns the bytes with a space in place of each CR and NUL (RFC 9110 §5.5).
    private static func cleaned(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
        range.map { bytes[$0] == 0x0D || bytes[$0] == 0x00 ? 0x20 : bytes[$0] }
    }

    /// The start of a line for an error: it may be any bytes at all, so it is bounded and without control characters.
    static func quoted(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        text(bytes, range.lowerBound..<min(range.upperBound, range.lowerBound + 64)).printable(limit: 64)
    }
}
