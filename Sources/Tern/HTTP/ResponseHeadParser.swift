#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Parses the head of a response from the bytes of the wire.
///
/// It is as lenient as RFC 9112 allows a client to be: lines can end in LF alone, folded lines are joined, whitespace
/// around values is removed, and text that is not UTF-8 is read as ISO-8859-1, except in a Location. A line without a
/// colon is skipped. The engine keeps the raw bytes, and the caller's task parses them on first access.
package enum ResponseHeadParser {
    /// The status line and the header fields.
    package struct Head: Sendable, Hashable {
        /// The protocol of the status line, such as `HTTP/1.1` or `HTTP/2`.
        package var version: String
        package var status: Int
        /// The reason phrase. HTTP/2 and later have none.
        package var reason: String
        package var headers: Headers

        package init(version: String, status: Int, reason: String, headers: Headers) {
            self.version = version
            self.status = status
            self.reason = reason
            self.headers = headers
        }
    }

    /// The reason why the bytes are not a response head.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String

        package var description: String { reason }
    }

    /// Parses one head: the status line, the fields, and the empty line if present.
    package static func parse(_ bytes: Span<UInt8>) throws(Problem) -> Head {
        let line = HeadLine(in: bytes, at: 0)
        let first = line.content
        guard first.count >= 5, hasPrefix("HTTP/", in: bytes, first) else {
            throw Problem(reason: "the response does not begin with a status line: \"\(quoted(bytes, first))\"")
        }
        let versionEnd = index(of: 0x20, in: bytes, first) ?? first.upperBound
        var position = versionEnd
        while position < first.upperBound, bytes[position] == 0x20 { position += 1 }
        var status = 0
        let digits = position
        while position < first.upperBound, bytes[position].isASCIIDigit, position - digits < 4 {
            status = status * 10 + Int(bytes[position] &- 0x30)
            position += 1
        }
        let endsThere = position == first.upperBound || bytes[position] == 0x20
        guard position - digits == 3, status >= 100, endsThere else {
            throw Problem(reason: "the status line holds no status from 100 to 999: \"\(quoted(bytes, first))\"")
        }
        return Head(
            version: text(bytes, first.lowerBound..<versionEnd), status: status,
            reason: text(bytes, trimmed(bytes, position..<first.upperBound)), headers: fields(bytes, from: line.next))
    }

    /// Parses a block of fields without a status line, such as trailers.
    package static func fields(_ bytes: Span<UInt8>) -> Headers { fields(bytes, from: 0) }

    /// Returns the first value of a header in a raw head without building the others.
    package static func value(of name: String, in bytes: Span<UInt8>) -> String? {
        let decode = Headers.namesMatch(name, "Location") ? reference : text
        let name = name.utf8
        var next = 0
        while next < bytes.count {
            let line = HeadLine(in: bytes, at: next)
            if line.content.isEmpty { return nil }
            next = line.next
            let colon = line.content.lowerBound + name.count
            guard colon < line.content.upperBound, bytes[colon] == UInt8(ascii: ":") else { continue }
            var position = line.content.lowerBound
            var matches = true
            for byte in name {
                matches = matches && byte.asciiLowercased == bytes[position].asciiLowercased
                position += 1
            }
            if matches {
                return foldedValue(in: bytes, range: (colon + 1)..<line.content.upperBound, next: &next, decode: decode)
            }
        }
        return nil
    }

    private static func fields(_ bytes: Span<UInt8>, from start: Int) -> Headers {
        var headers = Headers()
        headers.reserveCapacity(16)
        var next = start
        while next < bytes.count {
            let line = HeadLine(in: bytes, at: next)
            if line.content.isEmpty { break }
            next = line.next
            guard let colon = index(of: UInt8(ascii: ":"), in: bytes, line.content) else { continue }
            let name = trimmed(bytes, line.content.lowerBound..<colon)
            let decode = isLocation(bytes, name) ? reference : text
            let value = foldedValue(
                in: bytes, range: (colon + 1)..<line.content.upperBound, next: &next, decode: decode)
            if !name.isEmpty { headers.append(name: text(bytes, name), value: value) }
        }
        return headers
    }

    /// Returns a value with its continuation lines (obs-fold, RFC 9112 §5.2), each joined by one space.
    private static func foldedValue(
        in bytes: Span<UInt8>, range: Range<Int>, next: inout Int,
        decode: (Span<UInt8>, Range<Int>) -> String
    ) -> String {
        var value = decode(bytes, trimmed(bytes, range))
        while next < bytes.count, bytes[next].isHTTPWhitespace {
            let line = HeadLine(in: bytes, at: next)
            next = line.next
            let more = decode(bytes, trimmed(bytes, line.content))
            if !more.isEmpty { value += value.isEmpty ? more : " " + more }
        }
        return value
    }
}

/// One line of a head, without its line ending.
struct HeadLine {
    let content: Range<Int>
    /// The start of the next line.
    let next: Int

    init(in bytes: borrowing Span<UInt8>, at start: Int) {
        // The engine looks for single headers on its loop. memchr scans a line in a few nanoseconds.
        let lineFeed: Int? = unsafe bytes.withUnsafeBytes { buffer in
            guard start < bytes.count, let base = buffer.baseAddress else { return nil }
            guard let hit = unsafe memchr(base + start, 0x0A, bytes.count - start) else { return nil }
            return unsafe UnsafeRawPointer(hit) - base
        }
        var end = lineFeed ?? bytes.count
        next = min(end + 1, bytes.count)
        // The CR belongs to the line ending also if the bytes end before the LF.
        if end > start, bytes[end - 1] == 0x0D { end -= 1 }
        content = start..<end
    }
}

extension ResponseHeadParser {
    /// Parses one head: the status line, the fields, and the empty line if present.
    package static func parse(_ bytes: [UInt8]) throws(Problem) -> Head { try parse(bytes.span) }

    /// Parses one head: the status line, the fields, and the empty line if present.
    @unsafe
    package static func parse(_ bytes: UnsafeRawBufferPointer) throws(Problem) -> Head {
        let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
        return try parse(span)
    }

    /// Parses a block of fields without a status line, such as trailers.
    package static func fields(_ bytes: [UInt8]) -> Headers { fields(bytes.span) }

    /// Returns the first value of a header in a raw head without building the others.
    package static func value(of name: String, in bytes: [UInt8]) -> String? { value(of: name, in: bytes.span) }

    /// Returns the first value of a header in a raw head without building the others.
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

    /// Returns the range without spaces and tabs at its ends.
    static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var (lower, upper) = (range.lowerBound, range.upperBound)
        while lower < upper, bytes[lower].isHTTPWhitespace { lower += 1 }
        while lower < upper, bytes[upper - 1].isHTTPWhitespace { upper -= 1 }
        return lower..<upper
    }

    /// Returns the bytes as UTF-8, or as ISO-8859-1 if they are not UTF-8. CR and NUL become spaces (RFC 9110 §5.5).
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

    /// Returns the bytes as a reference to a URL (RFC 9110 §10.2.2). In bytes that are not UTF-8, the host is decoded
    /// by itself, and every other byte outside ASCII is percent-encoded. Bytes of the host that are not UTF-8 become
    /// U+FFFD, which no host can have.
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

    /// Returns the start of a line for an error, bounded and without control characters.
    static func quoted(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        text(bytes, range.lowerBound..<min(range.upperBound, range.lowerBound + 64)).printable(limit: 64)
    }
}
