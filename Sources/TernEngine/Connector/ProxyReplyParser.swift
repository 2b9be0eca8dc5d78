/// The parts of a proxy's answer to CONNECT that matter.
struct ProxyReply: Equatable {
    var status = 0
    /// The values of the Proxy-Authenticate fields (RFC 9110 §11.7.1).
    var challenges: [[UInt8]] = []
    var contentLength: Int?
    var hasTransferEncoding = false
    /// Whether the proxy keeps the connection after the answer (RFC 9112 §9.3).
    var isPersistent = true
}

/// Parses the head of a proxy's answer to CONNECT.
///
/// Lines end with CRLF or LF (RFC 9112 §2.2). A folded line continues the value of the field before it (§5.2). The
/// limit of 64 KiB applies to each connection, with the heads of interim responses.
struct ProxyReplyParser {
    /// The result of a step.
    enum Event: Equatable {
        case needsInput
        /// The head is whole. The bytes after it have not been read.
        case reply(ProxyReply)
        /// The head is malformed or too large, for this reason.
        case malformed(String)
    }

    static let sizeLimit = 65_536
    /// The maximum number of interim responses (1xx) before the answer.
    static let interimLimit = 10

    private static let start = Array("HTTP/1.".utf8)
    private static let statusProblem = "its answer is not HTTP/1.1 (RFC 9112 §4)"

    private var bytes: [UInt8] = []
    /// The number of bytes since the last line end, not counting CR; a line without any is the end of the head.
    private var lineLength = 0
    private var size = 0
    private var interims = 0

    /// Whether any byte has been read.
    var hasBegun: Bool { size > 0 }

    /// Reads bytes from an index on, and moves the index behind the bytes that were read.
    mutating func next(_ input: UnsafeRawBufferPointer, from index: inout Int) -> Event {
        while index < input.count {
            let byte = unsafe input[index]
            index += 1
            size += 1
            guard size <= Self.sizeLimit else { return .malformed("its answer is larger than 64 KiB") }
            bytes.append(byte)
            // A server of another protocol may send no line end at all.
            guard bytes.count > Self.start.count || byte == Self.start[bytes.count - 1] else {
                return .malformed(Self.statusProblem)
            }
            guard byte == 0x0A else {
                if byte != 0x0D { lineLength += 1 }
                continue
            }
            let isEnd = lineLength == 0
            lineLength = 0
            guard isEnd else { continue }
            let reply: ProxyReply
            do throws(Problem) {
                reply = try Self.parse(bytes)
            } catch {
                return .malformed(error.text)
            }
            bytes.removeAll(keepingCapacity: true)
            guard 100...199 ~= reply.status, reply.status != 101 else { return .reply(reply) }
            interims += 1
            if interims > Self.interimLimit { return .malformed("it sent more than 10 interim responses") }
        }
        return .needsInput
    }

    private struct Problem: Error {
        let text: String
    }

    private static func parse(_ bytes: [UInt8]) throws(Problem) -> ProxyReply {
        var lines = try lines(of: bytes)[...]
        guard let first = lines.popFirst() else { throw Problem(text: statusProblem) }
        var reply = try statusLine(first)
        for line in lines { try addField(line, to: &reply) }
        return reply
    }

    /// Returns the lines without their ends, without the empty line, and with folded lines joined by a blank.
    private static func lines(of bytes: [UInt8]) throws(Problem) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for part in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let line = part.last == 0x0D ? part.dropLast() : part
            if line.isEmpty { break }
            // The control characters that a field value cannot have, a lone CR among them (RFC 9110 §5.5).
            if line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
                throw Problem(text: "its answer has a control character (RFC 9110 §5.5)")
            }
            guard line.first.map(isBlank) == true else {
                lines.append(Array(line))
                continue
            }
            if lines.count < 2 { throw Problem(text: "its first field begins with a blank (RFC 9112 §2.2)") }
            lines[lines.count - 1] += [0x20] + line.drop(while: isBlank)
        }
        return lines
    }

    /// Parses `HTTP/1.1 200 reason`, also without the reason and the blank before it (RFC 9112 §4).
    private static func statusLine(_ line: [UInt8]) throws(Problem) -> ProxyReply {
        var reply = ProxyReply()
        let digits = line.dropFirst(9).prefix(3)
        guard line.starts(with: "HTTP/1.1 ".utf8) || line.starts(with: "HTTP/1.0 ".utf8), digits.count == 3,
            digits.allSatisfy({ 0x30...0x39 ~= $0 }), digits.first != 0x30, line.count == 12 || line[12] == 0x20
        else { throw Problem(text: statusProblem) }
        reply.status = digits.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
        reply.isPersistent = line[7] == UInt8(ascii: "1")
        return reply
    }

    private static func addField(_ line: [UInt8], to reply: inout ProxyReply) throws(Problem) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0, line[..<colon].allSatisfy(isToken) else {
            throw Problem(text: "a line of its answer is not a name, a colon and a value (RFC 9112 §5.1)")
        }
        let name = String(decoding: line[..<colon].map(lowercased), as: UTF8.self)
        let value = trimmed(line[(colon + 1)...])
        switch name {
        // A tunnel begins after the head, whatever these fields say (RFC 9110 §9.3.6).
        case "content-length" where 200...299 ~= reply.status, "transfer-encoding" where 200...299 ~= reply.status:
            break
        case "proxy-authenticate":
            reply.challenges.append(Array(value))
        case "content-length":
            // A list of equal numbers is one number (RFC 9110 §8.6).
            for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(trimmed) {
                guard 1...18 ~= part.count, part.allSatisfy({ 0x30...0x39 ~= $0 }) else {
                    throw Problem(text: "its Content-Length is not a number (RFC 9112 §6.3)")
                }
                let length = part.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
                guard reply.contentLength.map({ $0 == length }) ?? true else {
                    throw Problem(text: "its Content-Length is not one number (RFC 9112 §6.3)")
                }
                reply.contentLength = length
            }
        case "transfer-encoding":
            reply.hasTransferEncoding = true
        case "connection", "proxy-connection":
            let options = value.split(separator: UInt8(ascii: ",")).map { trimmed($0).map(lowercased) }
            if options.contains(where: { $0.elementsEqual("close".utf8) }) {
                reply.isPersistent = false
            }
        default: break
        }
    }

    private static func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let rest = value.drop(while: isBlank)
        let end = rest.lastIndex { !isBlank($0) }
        return end.map { rest[...$0] } ?? []
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func lowercased(_ byte: UInt8) -> UInt8 { 0x41...0x5A ~= byte ? byte | 0x20 : byte }

    /// Returns whether a byte can stand in the name of a field (RFC 9110 §5.6.2).
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
