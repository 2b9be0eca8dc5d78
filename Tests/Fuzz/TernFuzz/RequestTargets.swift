#if os(Linux)
import CTernTestHTTP2
import Foundation
import Tern
import TernEngine

/// Requests that callers and servers control a part of.
extension FuzzTarget {
    static let requests = [
        FuzzTarget(
            name: "request-fields", seeds: { _ in RequestFuzzing.seeds.map { Array($0.utf8) } },
            tokens: RequestFuzzing.tokens, run: { input, choice in try RequestFuzzing.check(Array(input), choice) }),
        FuzzTarget(
            name: "redirects", seeds: { _ in RedirectFuzzing.seeds.map { Array($0.utf8) } },
            tokens: RedirectFuzzing.tokens, run: { input, choice in try RedirectFuzzing.check(Array(input), choice) }),
    ]
}

/// The head of a request, as the strictest server reads it.
struct PlainRequest {
    let method: String
    let target: String
    private(set) var fields: [(name: String, value: String)] = []

    /// Throws unless the bytes are the head of exactly one request in its regular form (RFC 9112 §2 to §5).
    init(_ bytes: [UInt8]) throws {
        let text = bytes.map { $0 >= 0x80 ? UInt8(ascii: "x") : $0 }
        try require(text.suffix(4).elementsEqual("\r\n\r\n".utf8), "the head has no end")
        var lines = text.dropLast(4).split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
        for index in lines.indices.dropLast() {
            try require(lines[index].last == 0x0D, "a line ends in LF alone")
            lines[index].removeLast()
        }
        for line in lines {
            try require(!line.isEmpty, "an empty line stands within the head")
            try require(line.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }, "a line has a control character")
        }
        let start = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
        try require(start.count == 3 && start[2].elementsEqual("HTTP/1.1".utf8), "the request line has other parts")
        try require(!start[0].isEmpty && start[0].allSatisfy(Self.isToken), "the method is no token")
        try require(!start[1].isEmpty && start[1].allSatisfy { $0 > 0x20 }, "the target has a blank")
        method = String(decoding: start[0], as: UTF8.self)
        target = String(decoding: start[1], as: UTF8.self)
        for line in lines.dropFirst() {
            let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? 0
            try require(colon > 0 && line[..<colon].allSatisfy(Self.isToken), "a line is no field")
            let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
            fields.append((String(decoding: line[..<colon], as: UTF8.self), Self.trimmed(value)))
        }
    }

    func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The elements of all values of a list, in lower case.
    func elements(_ name: String) -> [String] {
        values(name).flatMap { $0.split(separator: ",") }.map { Self.trimmed(String($0)).lowercased() }
    }

    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func trimmed(_ text: String) -> String {
        String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}

/// Checks that fields of a caller never make another request, or another framing.
///
/// An input has parts, divided by 0x1E: method, target, authority, and fields with 0x1F between name and value.
private enum RequestFuzzing {
    static let seeds = [
        "GET\u{1E}/a?b=c\u{1E}a.example\u{1E}Accept\u{1F}*/*\u{1E}User-Agent\u{1F}x/1 (y)\u{1E}Cookie\u{1F}a=b; c=d",
        "POST\u{1E}/\u{1E}a.example:8080\u{1E}Content-Length\u{1F}5\u{1E}Expect\u{1F}100-continue\u{1E}Content-Type\u{1F}a/b",
        "PUT\u{1E}http://a.example/b\u{1E}a.example\u{1E}Transfer-Encoding\u{1F}chunked\u{1E}Trailer\u{1F}X-Sum",
        "GET\u{1E}/\u{1E}[::1]:80\u{1E}Connection\u{1F}close, TE\u{1E}TE\u{1F}trailers\u{1E}Host\u{1F}b.example",
        "GET\u{1E}/chat\u{1E}a\u{1E}Upgrade\u{1F}websocket\u{1E}Connection\u{1F}Upgrade\u{1E}Keep-Alive\u{1F}timeout=5",
        "CONNECT\u{1E}a.example:443\u{1E}a.example:443\u{1E}Proxy-Authorization\u{1F}Basic YTpi\u{1E}X\u{1F}",
        "DELETE\u{1E}*\u{1E}a\u{1E}Authorization\u{1F} Bearer x \u{1E}Content-Length\u{1F}0\u{1E}Priority\u{1F}u=1",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "\r\n\r\n", "\0", " ", "\t", ":", ",", ";", "\u{1E}", "\u{1F}", "\u{7F}", "\u{85}",
        "\u{2028}",
        "Host", "Content-Length", "content-length", "Transfer-Encoding", "Connection", "TE", "Trailer", "Upgrade",
        "Expect", "HTTP2-Settings", "Proxy-Authorization", "Proxy-Connection", "chunked", "identity", "close",
        "trailers", "h2c", "100-continue", "0", "5", "7", "5, 5", "\u{1E}Content-Length\u{1F}5", "\u{1E}Host\u{1F}b",
        "\u{1E}Transfer-Encoding\u{1F}chunked", "\u{1E}Connection\u{1F}content-length", " HTTP/1.1\r\nX: y",
        "\r\nContent-Length: 7", "\u{1E}Expect\u{1F}100-continue", "\u{1E}TE\u{1F}trailers", ":authority", ":path",
        "\u{1E}Upgrade\u{1F}x", "\u{10D}", "\u{212A}",
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let parts = input.split(separator: 0x1E, omittingEmptySubsequences: false)
        func text(_ number: Int) -> String {
            parts.count > number ? String(decoding: parts[number], as: UTF8.self) : ""
        }
        var fields = RequestFields()
        var refusals = 0
        for part in parts.dropFirst(3) {
            let pair = part.split(separator: 0x1F, maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(decoding: pair[0], as: UTF8.self)
            let value = pair.count > 1 ? pair[1] : []
            let before = fields
            do throws(EngineError) {
                if choice & 1 == 0 {
                    try fields.append(name: name, bytes: Array(value))
                } else {
                    try fields.append(name: name, value: String(decoding: value, as: UTF8.self))
                }
            } catch {
                refusals += 1
                try require(error.kind == .invalidRequest && fields == before, "a refused field changes the others")
            }
        }
        try checkTrailers(fields)
        let framing: HTTP1RequestHead.Framing =
            switch choice >> 1 & 3 {
            case 0: .none
            case 1: .chunked
            default: .length([0, 5, 7, 1 << 40][Int(choice >> 3 & 3)])
            }
        var head = HTTP1RequestHead(method: text(0), target: text(1), authority: text(2), framing: framing)
        head.dropsProxyAuthorization = choice >> 5 & 1 == 0
        var buffer = Array("before".utf8)
        var outcome = ""
        do throws(EngineError) {
            try head.write(fields, into: &buffer)
        } catch {
            try require(buffer == Array("before".utf8), "a refused head leaves bytes")
            outcome = "rejected \(error.reason.filter { !$0.isNumber })"
        }
        let usual = unsafe withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { memory in
            unsafe head.writeUsual(fields, into: memory).map { unsafe Array(memory[..<$0]) }
        }
        if outcome.isEmpty {
            let bytes = Array(buffer.dropFirst(6))
            try require(usual == nil || usual == bytes, "the short way writes other bytes")
            outcome = try checkHead(bytes, head, fields)
        } else {
            try require(usual == nil, "the short way writes a refused head")
        }
        if choice >> 6 & 1 == 0 { outcome += try checkHTTP2(head, fields) }
        return outcome + " \(min(refusals, 2)) \(fields.summary.rawValue)"
    }

    /// Checks that the bytes are one request with the framing of the engine (RFC 9112 §6).
    private static func checkHead(
        _ bytes: [UInt8], _ head: HTTP1RequestHead, _ fields: RequestFields
    ) throws -> String {
        let request = try PlainRequest(bytes)
        try require(request.method == head.method && request.target == head.target, "another request line")
        try require(request.values("Host").count == 1, "\(request.values("Host").count) Host fields")
        if !fields.summary.contains(.host) {
            try require(request.values("Host")[0].utf8.count == head.authority.utf8.count, "Host")
        }
        let lengths = request.values("Content-Length")
        let codings = request.values("Transfer-Encoding")
        switch head.framing {
        case .none:
            try require(codings.isEmpty && (lengths.isEmpty || lengths == ["0"]), "a body: \(lengths) \(codings)")
        case .length(let length): try require(codings.isEmpty && lengths == ["\(length)"], "\(lengths) \(codings)")
        case .chunked: try require(codings == ["chunked"] && lengths.isEmpty, "\(lengths) \(codings)")
        }
        let options = request.elements("Connection")
        for name in ["content-length", "transfer-encoding", "host", "content-type", "expect", "trailer"] {
            try require(!options.contains(name), "Connection names \(name)")
        }
        let hasBody = head.framing != .none && head.framing != .length(0)
        try require(request.values("Expect").isEmpty || hasBody, "an expectation without a body")
        try require(request.elements("Expect").allSatisfy { $0 == "100-continue" }, "\(request.values("Expect"))")
        try require(request.elements("TE").allSatisfy { $0 == "trailers" }, "\(request.values("TE"))")
        if !request.values("TE").isEmpty { try require(options.contains("te"), "TE is not named") }
        if !request.values("Upgrade").isEmpty { try require(options.contains("upgrade"), "Upgrade is not named") }
        try require(!request.elements("Upgrade").contains { $0.hasPrefix("h2") && $0.count < 4 }, "HTTP/2 by Upgrade")
        try require(request.values("HTTP2-Settings").isEmpty, "HTTP2-Settings")
        let isPlain = head.dropsProxyAuthorization
        try require(!isPlain || request.values("Proxy-Authorization").isEmpty, "credentials of the proxy")
        let state = HTTP1Connection.Request(
            method: head.method, fields: fields, hasBody: hasBody, limits: HeadLimits(bytes: 1_000))
        try require(state.asksToClose == options.contains("close"), "Connection: close is not seen")
        try require(state.expectsContinue == !request.values("Expect").isEmpty, "the expectation is not seen")
        return "sent \(codings) \(lengths.isEmpty) \(min(request.fields.count, 6))"
    }

    private static func checkTrailers(_ fields: RequestFields) throws {
        var buffer: [UInt8] = []
        do throws(EngineError) {
            try HTTP1ChunkFraming.appendEnd(trailers: fields, to: &buffer)
        } catch {
            return try require(buffer.isEmpty, "refused trailers leave bytes")
        }
        let message = try PlainRequest(Array("GET / HTTP/1.1\r\n".utf8) + buffer.dropFirst(3))
        try require(buffer.starts(with: "0\r\n".utf8), "the last chunk is not empty")
        for name in ["Content-Length", "Transfer-Encoding", "Host", "Connection", "Trailer", "TE", "Authorization"] {
            try require(message.values(name).isEmpty, "\(name) is sent as a trailer")
        }
    }

    // MARK: HTTP/2

    private static func checkHTTP2(_ head: HTTP1RequestHead, _ fields: RequestFields) throws -> String {
        let delegate = SilentDelegate()
        let session = try HTTP2Session(delegate: delegate)
        var request = HTTP2Request(
            method: head.method, scheme: "https", authority: head.authority, path: head.target, fields: fields.bytes)
        if case .length(let length) = head.framing { request.contentLength = length }
        request.hasBody = head.framing != .none && head.framing != .length(0)
        do throws(EngineError) {
            _ = try session.submit(request)
        } catch {
            try require(error.kind == .invalidRequest, "\(error)")
            return ", rejected"
        }
        var output: [UInt8] = []
        try require(session.takeOutput(into: &output, upTo: .max) == nil, "the connection ends")
        let lines = try decoded(headers(of: output))
        session.connectionClosed(EngineError(.connectionLost, "closed"))
        let isConnect = head.method == "CONNECT"
        let pseudo = isConnect ? [":method", ":authority"] : [":method", ":scheme", ":authority", ":path"]
        try require(Array(lines.map(\.name).prefix(pseudo.count)) == pseudo, "\(lines.prefix(pseudo.count))")
        let isHidden: Set = [
            "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host", "http2-settings",
        ]
        for line in lines.dropFirst(pseudo.count) {
            try require(!isHidden.contains(line.name), "\(line.name) is sent over HTTP/2")
            try require(line.name == line.name.lowercased() && !line.name.hasPrefix(":"), "a field \(line.name)")
            try require(line.name.utf8.allSatisfy(PlainRequest.isToken), "a field \(line.name)")
            if line.name == "te" { try require(line.value == "trailers", "TE: \(line.value)") }
            if line.name == "expect" { try require(request.hasBody, "an expectation without a body") }
        }
        let lengths = lines.filter { $0.name == "content-length" }.map(\.value)
        try require(lengths == (request.contentLength.map { ["\($0)"] } ?? []), "the lengths \(lengths)")
        return ", \(min(lines.count, 6)) over HTTP/2"
    }

    /// Returns the block of the only HEADERS frame and its CONTINUATION frames.
    private static func headers(of output: [UInt8]) throws -> [UInt8] {
        var position = 24
        var block: [UInt8] = []
        while position + 9 <= output.count {
            let length = Int(output[position]) << 16 | Int(output[position + 1]) << 8 | Int(output[position + 2])
            let type = output[position + 3]
            if type == 1 { try require(block.isEmpty && output[position + 8] == 1, "a second request") }
            let end = position + 9 + length
            if type == 1 || type == 9 { block += output[(position + 9)..<end] }
            position = end
        }
        return block
    }

    private static func decoded(_ block: [UInt8]) throws -> [(name: String, value: String)] {
        let inflater = unsafe tern_test_inflater_new()
        defer { unsafe tern_test_inflater_free(inflater) }
        var text = [UInt8](repeating: 0, count: 64 << 10)
        let count = unsafe tern_test_inflate(inflater, block, block.count, &text, text.count)
        try require(count >= 0, "an invalid block of fields")
        return try text[..<count].split(separator: 0x0A).map { line in
            let bytes =
                line.first == UInt8(ascii: "!") && line.starts(with: "!proxy-a".utf8) || line.starts(with: "!auth".utf8)
                ? line.dropFirst() : line
            guard let colon = bytes.dropFirst().firstIndex(of: UInt8(ascii: ":")) else {
                throw Failure("a field without a value")
            }
            return (
                String(decoding: bytes[..<colon], as: UTF8.self), String(decoding: bytes[(colon + 2)...], as: UTF8.self)
            )
        }
    }
}

/// Sends no body and ignores all events.
private final class SilentDelegate: HTTP2SessionDelegate {
    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) {}
    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {}
    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {}
    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8]) {}
    func streamEnded(_ stream: Int32) {}
    func streamFailed(_ stream: Int32, error: EngineError) {}
    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart { .wait }
    func maximumStreamsChanged(_ maximum: Int) {}
    func goAwayReceived(lastStream: Int32, error: EngineError?) {}
    func pongReceived() {}
}

/// Checks that a Location leads to a host in its canonical form, and to one request.
///
/// An input has lines: the URL of the request, and the bytes of one Location after another.
private enum RedirectFuzzing {
    static let seeds = [
        "https://a.example/b/c?d\nnext\n/path\n?query\n#part\n../up",
        "http://a.example:8080/\n//other.example/x\n//127.1/",
        "https://u:p@a.example/\nhttps://b.example\nhttp:next\n",
        "http://[::1]:81/x/\n.//y\n./../..//z\n/\\evil.example",
        "https://b\u{FC}cher.example/\n/\u{E9}?\u{E9}\nhttp://0x7f.1/\n//[fe80::1%251]/",
        "http://a.example./\n///x\nHTTPS://A.EXAMPLE:443",
        "https://a.example/%2e%2e/x\n%2e%2e/y;z\n/a%0d%0ab\n/a b\n//a%00b/\n@b.example\n//a@b.example:1/",
    ]
    static let tokens = [
        "\n", "/", "//", "\\", "\\\\", "?", "#", ":", "@", "%", "%2e", "%2F", "%40", "%00", "%0a", "..", ".", "/../",
        "/./", " ",
        "\t", "http://", "https:", "http:", "a.example", "127.1", "[::1]", "[", "]", "xn--", "\u{3002}", "\u{FF0F}",
        "\u{2100}",
        "\u{FF20}", "\u{AD}", ":443", ":80", ":0", ":99999", "user:pass@", "0x", "256", ";", "&", "=", "javascript:",
        "\u{FC}",
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let lines = input.split(separator: 0x0A, omittingEmptySubsequences: false)
        let text = String(decoding: lines.first ?? [], as: UTF8.self)
        // Most mutated URLs are invalid: the locations are tried with a valid one instead.
        var target =
            try (try? Target(absolute: text))
            ?? Target(absolute: choice & 1 == 0 ? "https://a.example/b/c?d" : "http://a/")
        try check(target)
        var outcome = ""
        for line in lines.dropFirst().prefix(8) {
            guard let location = try location(line) else {
                outcome += " refused"
                continue
            }
            let next: Target
            do throws(Target.Problem) {
                next = try target.resolving(location)
            } catch {
                outcome += " rejected \(error.reason.prefix { $0 != "\"" && $0 != ":" })"
                continue
            }
            try check(next)
            let bytes = Array(location.utf8)
            let hasScheme =
                bytes.first.map { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A } == true && bytes.contains(UInt8(ascii: ":"))
            if !hasScheme, !bytes.starts(with: "//".utf8) {
                try require(
                    next.origin == target.origin,
                    "\(location.debugDescription) leads from \(target.string) to \(next.string)")
            }
            if !hasScheme {
                try require(next.scheme == target.scheme, "\(location.debugDescription) changes the scheme")
            }
            let again = try next.resolving(next.pathAndQuery.hasPrefix("//") ? next.string : next.pathAndQuery)
            try require(again.string == next.string, "\(next.string) resolves to \(again.string)")
            outcome += " \(next.origin == target.origin) \(next.isSecure) \(next.host.contains(":"))"
            target = next
        }
        return (outcome.contains("true") || outcome.contains("false") ? "" : "rejected") + outcome
    }

    /// Returns the value that Tern reads from the bytes of a Location; nil if the engine refuses the head.
    private static func location(_ bytes: ArraySlice<UInt8>) throws -> String? {
        let response =
            Array("HTTP/1.1 302 Found\r\nLocation: ".utf8) + bytes + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
        var parser = HTTP1Parser()
        parser.begin(HTTP1Parser.Request(limits: HeadLimits(bytes: 64 << 10)))
        var position = 0
        guard case .head(let head) = unsafe response.withUnsafeBytes({ unsafe parser.next($0, from: &position) }) else {
            return nil
        }
        let values = try ResponseHeadParser.parse(head.bytes).headers.values(for: "Location")
        try require(values.count == 1, "\(values.count) Locations")
        let direct = ResponseHeadParser.value(of: "Location", in: head.bytes)
        try require(direct == values[0], "the Location is \(direct ?? "none") and \(values[0])")
        return values[0]
    }

    /// Checks that a URL is stable, and that its request names the host that is contacted.
    private static func check(_ target: Target) throws {
        let again = try Target(absolute: target.string)
        try require(
            again.string == target.string && again.host == target.host, "\(target.string) is read as \(again.string)")
        try require(try CanonicalHost(target.host).text == target.host, "\(target.host) is not canonical")
        try require(target.host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "the host is not ASCII")
        try require(1...65_535 ~= target.port, "the port \(target.port)")
        let segments = target.path.split(separator: "/", omittingEmptySubsequences: false)
        try require(!segments.contains(".") && !segments.contains(".."), "\(target.path) has dot segments")
        try require(!target.string.contains("#"), "\(target.string) has a fragment")
        // The authority as the engine sends it: everything between the scheme and the path.
        let authority = String(
            target.string.dropFirst(target.scheme.utf8.count + 3).dropLast(target.pathAndQuery.count))
        try require(!authority.contains("@"), "\(authority) has user information")
        var bytes: [UInt8] = []
        let head = HTTP1RequestHead(method: "GET", target: target.pathAndQuery, authority: authority, framing: .none)
        try head.write(RequestFields(), into: &bytes)
        let request = try PlainRequest(bytes)
        try require(request.target == target.pathAndQuery && request.values("Host") == [authority], "\(request)")
        let host = try Target(absolute: "\(target.scheme)://\(authority)/")
        try require(host.origin == target.origin, "Host \(authority) is not \(target.origin)")
    }
}
#endif
