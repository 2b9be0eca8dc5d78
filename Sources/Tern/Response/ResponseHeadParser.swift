/// Reads the head of a response as it came over the wire.
///
/// Lenient as RFC 9112 allows a client to be: lines may end in LF alone, folded lines are joined, whitespace around
/// values goes, and text that is not UTF-8 is read as ISO-8859-1, except in a Location. A line without a colon is passed
/// over. The engine keeps the raw bytes, and the caller's task parses them, if somebody asks.
package enum ResponseHeadParser {
    /// The status line and the header fields.
    package struct Head: Sendable, Hashable {
        /// The protocol as the status line names it, such as `HTTP/1.1` or `HTTP/2`.
        package var version: String
        package var status: Int
        /// The reason phrase; HTTP/2 and later have none.
        package var reason: String
        package var headers: Headers

        package init(version: String, status: Int, reason: String, headers: Headers) {
            self.version = version
            self.status = status
            self.reason = reason
            self.headers = headers
        }
    }

    /// Why the bytes are no response head.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String

        package var description: String { reason }
    }

    /// Parses one head: the status line, the fields, and the empty line if it is there.
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

    /// The first value of a header in a raw head, without building the others.
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
            if matches { return foldedValue(bytes, (colon + 1)..<line.content.upperBound, next: &next, decode) }
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
            let value = foldedValue(bytes, (colon + 1)..<line.content.upperBound, next: &next, decode)
            if !name.isEmpty { headers.append(name: text(bytes, name), value: value) }
        }
        return headers
    }

    /// A value together with the lines that continue it (obs-fold, RFC 9112 §5.2), which become one space each.
    private static func foldedValue(
        _ bytes: Span<UInt8>, _ range: Range<Int>, next: inout Int,
        _ decode: (Span<UInt8>, Range<Int>) -> String
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
