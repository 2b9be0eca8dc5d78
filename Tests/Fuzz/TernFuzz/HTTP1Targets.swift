#if os(Linux)
import Foundation
import Tern
import TernEngine

/// The responses of a server over HTTP/1.
extension FuzzTarget {
    static let http1 = [
        FuzzTarget(
            name: "http1", seeds: { _ in HTTP1Fuzzing.seeds.map { Array($0.utf8) } }, tokens: HTTP1Fuzzing.tokens,
            run: { input, choice in try HTTP1Fuzzing.check(Array(input), choice) }),
        FuzzTarget(
            name: "chunks", seeds: { _ in ChunkFuzzing.seeds.map { Array($0.utf8) } }, tokens: ChunkFuzzing.tokens,
            run: { input, choice in try ChunkFuzzing.check(Array(input), choice) }),
    ]
}

/// The ends of the pieces in which an input arrives.
enum Pieces {
    /// Returns the ends of single bytes and of random pieces. The last piece ends with the input.
    static func splits(of count: Int, _ choice: UInt64) -> [[Int]] {
        var numbers = Numbers(state: choice)
        let random = (0..<(1 + numbers.below(6))).map { _ in numbers.below(count + 1) }.sorted() + [count]
        return count <= 600 ? [random, Array(stride(from: 1, through: count, by: 1)) + [count]] : [random]
    }
}

/// The result of a request on a connection.
private struct HTTP1Result: Equatable {
    enum End: Equatable {
        case open
        case complete(isReusable: Bool)
        case upgraded
        case failed(EngineError)
    }

    var interims: [ReceivedHead] = []
    var head: ReceivedHead?
    var body: [UInt8] = []
    var trailers: [UInt8] = []
    var end = End.open
    /// The number of bytes that belong to the response. A failure has no place.
    var consumed = 0
    var sending = HTTP1Connection.Sending.complete
    var isLateTimeout = false

    /// Sends a request over a connection, and hands over the response in pieces.
    init(
        _ request: HTTP1Connection.Request, isSecond: Bool, response: [UInt8], pieces: [Int], isCut: Bool? = nil
    ) throws {
        var connection = HTTP1Connection()
        if isSecond { try Self.useOnce(&connection) }
        connection.start(request, continueDeadline: 100)
        var start = 0
        for next in pieces {
            var position = 0
            // Each piece lies in memory of its own size, so that the sanitizer finds a read behind it.
            let piece = Array(response[start..<next])
            unsafe piece.withUnsafeBytes { bytes in
                while end == .open || (end == .complete(isReusable: true) && position < bytes.count) {
                    let event = unsafe connection.receive(bytes, from: &position)
                    if event == .needsInput { break }
                    take(event, piece)
                    if end != .open, consumed == 0 { consumed = start + position }
                }
            }
            start = next
        }
        if let isCut, end == .open { take(connection.endOfInput(isCut: isCut), []) }
        sending = connection.sending
        isLateTimeout = connection.isLateTimeout
        if case .failed = end { consumed = 0 }
        try require(connection.receivedLength == Int64(body.count), "the length of the body is not counted")
        try require(connection.isIdle == (end == .complete(isReusable: true)), "the connection is idle with \(end)")
        if end != .open, end != .upgraded {
            try require(connection.isIdle != connection.mustClose, "the connection is neither idle nor closed")
        }
    }

    /// Sends a first request, so that the connection is a pooled one.
    private static func useOnce(_ connection: inout HTTP1Connection) throws {
        let limits = HeadLimits(bytes: 1_000)
        connection.start(.init(method: "GET", fields: RequestFields(), hasBody: false, limits: limits))
        let response = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        var position = 0
        unsafe response.withUnsafeBytes { bytes in
            for _ in 0..<2 { _ = unsafe connection.receive(bytes, from: &position) }
        }
        try require(connection.isIdle, "a connection was not kept after 204")
    }

    private mutating func take(_ event: HTTP1Connection.Event, _ piece: [UInt8]) {
        switch event {
        case .needsInput: break
        case .interim(let head): interims.append(head)
        case .head(let head): self.head = head
        case .body(let range): body += piece[range]
        case .trailers(let bytes): trailers = bytes
        case .end(let isReusable): end = .complete(isReusable: isReusable)
        case .upgraded: end = .upgraded
        case .failure(let error): end = .failed(error)
        // Bytes after a response close the connection, whether they arrive with it or later.
        case .unsolicited: end = .complete(isReusable: false)
        }
    }

    var outcome: String {
        let kind =
            switch end {
            case .open: "open"
            case .complete(let isReusable): "complete \(isReusable)"
            case .upgraded: "upgraded"
            case .failed(let error): "rejected \(error.reason.filter { !$0.isNumber })"
            }
        let status = head.map { "\($0.status / 100) \($0.version) \($0.contentLength != nil) \($0.setsCookies)" } ?? ""
        return "\(kind), \(status), \(min(interims.count, 3)), \(body.isEmpty), \(trailers.isEmpty), \(sending)"
    }
}

/// Checks that whole responses and their pieces have the same meaning, and that Tern reads the same in their heads.
private enum HTTP1Fuzzing {
    static let seeds = [
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 22 Nov 2026 19:00:00 GMT\r\n"
            + "Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: keep-alive\r\nETag: \"a-5\"\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a=\"b\"\r\nabc\r\n00a \r\n0123456789\r\n"
            + "0\r\nX: 1\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
            + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 404 Not Found\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: W/\"x\"\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u{81}bytes",
        "HTTP/1.1 200 Connection established\r\n\r\n\u{16}\u{3}\u{1}",
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200\nX-Folded: a\n b\n\t c\nContent-Length: 2,2\nContent-Length: 2\n\nok",
        "HTTP/1.1 205 Reset Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: http://b\u{FC}cher.example/\u{E9}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n" + (0..<40).map { "X-\($0): \(String(repeating: "v", count: $0))\r\n" }.joined()
            + "Content-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "\r\n\r\n", " ", "\t", ":", ",", ";", "\0", "\u{7F}", "0", "00", "+1", "-1", "0x1",
        "HTTP/1.1 ",
        "HTTP/1.0 ", "HTTP/2 ", "200", "204", "304", "100", "101", "103", "205", "407", "408", "999", "close",
        "keep-alive", "chunked", "gzip", "Content-Length: 1\r\n", "Content-Length:1\r\n", "content-length: 2, 2\r\n",
        "Content-Length: 18446744073709551616\r\n", "Content-Length : 3\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "TRANSFER-ENCODING:\tchunked \r\n", "Connection: close\r\n",
        "Connection: keep-alive, x\r\n", "Upgrade: x\r\n", "Set-Cookie: a=b\r\n", "Content-Encoding: br\r\n", "\r\n ",
        "X: y\r\n", "0\r\n\r\n", "1\r\na\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let request = try request(choice)
        let isCut: Bool? = choice >> 8 & 1 == 0 ? nil : choice >> 9 & 3 == 0
        let isSecond = choice >> 11 & 3 == 0
        let whole = try HTTP1Result(request, isSecond: isSecond, response: input, pieces: [input.count], isCut: isCut)
        for pieces in Pieces.splits(of: input.count, choice) {
            let other = try HTTP1Result(request, isSecond: isSecond, response: input, pieces: pieces, isCut: isCut)
            try require(other == whole, "in pieces to \(pieces): \(other), whole: \(whole)")
        }
        try checkFraming(whole, request)
        for head in whole.interims + (whole.head.map { [$0] } ?? []) {
            try check(head, isConnect: request.response.isConnect)
        }
        if !whole.trailers.isEmpty { try HeadCheck.check(lines: whole.trailers) }
        return whole.outcome
    }

    private static func request(_ choice: UInt64) throws -> HTTP1Connection.Request {
        let isUpgrade = choice & 7 == 2
        let hasBody = choice >> 3 & 3 == 0
        var fields = RequestFields()
        if hasBody, choice >> 5 & 1 == 0 { try fields.append(name: "Expect", value: "100-continue") }
        if choice >> 12 & 7 == 0 { try fields.append(name: "Connection", value: "close") }
        var limits = HeadLimits(bytes: choice >> 15 & 7 == 0 ? 60 : 64 << 10)
        if choice >> 18 & 7 == 0 { limits.fields = 3 }
        if choice >> 21 & 7 == 0 { limits.interimResponses = 1 }
        let method = choice & 7 == 0 ? "HEAD" : choice & 7 == 1 ? "CONNECT" : "GET"
        return HTTP1Connection.Request(
            method: method, fields: fields, hasBody: hasBody, limits: limits, upgrade: isUpgrade ? "websocket" : nil)
    }

    /// Checks the length of a body against the head (RFC 9112 §6.3), as Tern reads it.
    private static func checkFraming(_ result: HTTP1Result, _ request: HTTP1Connection.Request) throws {
        guard let head = result.head else {
            return try require(result.body.isEmpty && result.trailers.isEmpty, "a body without a head")
        }
        let fields = try ResponseHeadParser.parse(head.bytes).headers
        let isTunnel = request.response.isConnect && 200..<300 ~= head.status || head.status == 101
        let hasNone = request.response.isHead || head.status == 204 || head.status == 304
        try require((result.end == .upgraded) == isTunnel, "\(head.status) ends as \(result.end)")
        if isTunnel || hasNone {
            return try require(result.body.isEmpty && result.trailers.isEmpty, "a body after \(head.status)")
        }
        let codings = fields.values(for: "Transfer-Encoding").map { $0.lowercased() }
        try require(codings.allSatisfy { $0 == "chunked" || $0 == "identity" }, "a transfer coding \(codings)")
        try require(
            codings.count < 2 && (codings.isEmpty || head.version == .http11), "the transfer codings \(codings)")
        if codings == ["chunked"] {
            try require(head.contentLength == nil, "chunks have a stated length")
            if fields.contains("Content-Length") {
                try require(result.end != .complete(isReusable: true), "a connection is kept after two lengths")
            }
            return
        }
        try require(result.trailers.isEmpty, "trailers without chunks")
        guard let length = head.contentLength else {
            try require(result.end != .complete(isReusable: true), "a connection is kept although the end is unknown")
            return try require(!fields.contains("Content-Length"), "a length is ignored")
        }
        try require(Int64(result.body.count) <= length, "the body is longer than its length")
        if case .complete = result.end { try require(Int64(result.body.count) == length, "the body is cut") }
        for value in fields.values(for: "Content-Length").flatMap({ $0.split(separator: ",") }) {
            let text = value.filter { $0 != " " && $0 != "\t" }
            try require(Int64(text) == length && text.allSatisfy(\.isNumber), "\(text) is read as \(length)")
        }
    }

    /// Checks that a head is regular, is accepted again with the same meaning, and means the same to Tern.
    private static func check(_ head: ReceivedHead, isConnect: Bool) throws {
        try HeadCheck.check(head)
        var request = HTTP1Parser.Request(limits: HeadLimits(bytes: 1 << 20))
        request.allowsUpgrade = true
        // The fields that frame a body mean nothing in the answer that begins a tunnel.
        request.isConnect = isConnect
        // The transfer codings of a response to HEAD are not looked at.
        request.isHead = true
        var parser = HTTP1Parser()
        parser.begin(request)
        var position = 0
        let event = unsafe head.bytes.withUnsafeBytes { unsafe parser.next($0, from: &position) }
        try require(
            event == (head.status < 200 && head.status != 101 ? .interim(head) : .head(head)), "read as \(event)")
        try require(position == head.bytes.count, "the head has another end")
    }
}

/// Checks of heads and trailers that the engine accepted.
enum HeadCheck {
    /// Checks that Tern reads from a head what the engine read.
    static func check(_ head: ReceivedHead) throws {
        let parsed = try ResponseHeadParser.parse(head.bytes)
        let names: [WireVersion: String] = [
            .http10: "HTTP/1.0", .http11: "HTTP/1.1", .http2: "HTTP/2", .http3: "HTTP/3",
        ]
        try require(parsed.version == names[head.version], "the version is \(parsed.version)")
        try require(parsed.status == head.status && 100...999 ~= head.status, "the status is \(parsed.status)")
        let lines = head.bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        try require(lines.count >= 3 && lines.suffix(2).elementsEqual([[0x0D], []]), "the head has no empty line")
        let fields = Array(head.bytes[lines[0].endIndex...].dropFirst().dropLast(2))
        try check(lines: Array(lines[0]) + [0x0A], isStatus: true)
        try check(lines: fields)
        try require(parsed.headers.count == lines.count - 3, "the head has \(parsed.headers.count) fields")
        try require(parsed.headers.contains("Set-Cookie") == head.setsCookies || head.status < 200, "Set-Cookie")
        try require(parsed.headers.contains("Content-Encoding") == head.isEncoded || head.status < 200, "the coding")
        if head.contentLength != nil { try require(parsed.headers.contains("Content-Length"), "there is no length") }
    }

    /// Checks that lines end in CRLF, are not empty, have no other control character, and are fields.
    static func check(lines bytes: [UInt8], isStatus: Bool = false) throws {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        try require(lines.popLast()?.isEmpty == true, "the last line has no end")
        for line in lines {
            try require(line.last == 0x0D && line.count > 1, "a line does not end in CRLF or is empty")
            try require(line.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }, "a control character")
            if isStatus { continue }
            let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.startIndex
            let isName = colon > line.startIndex && line[..<colon].allSatisfy { $0 > 0x20 && $0 < 0x7F }
            try require(isName, "a line is no field")
        }
        if !isStatus {
            try require(ResponseHeadParser.fields(bytes).count == lines.count, "Tern reads another number of fields")
        }
    }
}

/// Checks the reader of chunks against a plain one, and the writer of chunks against the reader.
private enum ChunkFuzzing {
    static let seeds = [
        "3\r\nabc\r\n0\r\n\r\n", "A;x=y;z=\"q\"\r\n0123456789\r\n00\r\nX: 1\r\n y\r\nHost: a\r\n\r\nrest",
        "1  \r\na\r\n02\t;e\r\nbc\r\n0\r\n\r\n", "ffffffffffffff\r\nx", "0\r\nA: b\nC: d\n\n", "5\r\nab",
        "100\r\n" + String(repeating: "z", count: 256) + "\r\n0;last\r\nExpires: 0\r\n\r\n",
        "1;" + String(repeating: "e", count: 4_090) + "\r\na\r\n0\r\n\r\n",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "0", "00", "0\r\n\r\n", "1", "a", "F", "1\r\na\r\n", ";", " ", "\t", "=", "\"", "\0", "-1",
        "+1", "0x1",
        "000000000000001", "0000000000000001", "fffffffffffffff", "X: y\r\n", "\r\n ", "Content-Length: 1\r\n", ":",
        "Transfer-Encoding: x\r\n",
    ]
    private static let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let request = HTTP1Connection.Request(
            method: "GET", fields: RequestFields(), hasBody: false, limits: HeadLimits(bytes: 4_000))
        let response = head + input
        let isCut: Bool? = choice & 1 == 0 ? nil : choice & 2 == 0
        let whole = try HTTP1Result(
            request, isSecond: false, response: response, pieces: [response.count], isCut: isCut)
        for split in Pieces.splits(of: input.count, choice) {
            let pieces = [head.count] + split.map { $0 + head.count }
            let other = try HTTP1Result(request, isSecond: false, response: response, pieces: pieces, isCut: isCut)
            try require(other == whole, "in pieces to \(pieces): \(other), whole: \(whole)")
        }
        let plain = PlainChunks(input)
        try require(plain.body == whole.body, "\(whole.body.count) bytes in place of \(plain.body.count)")
        switch (plain.end, whole.end) {
        case (.refused, .failed(let error)):
            try require(error.kind == .malformedResponse || error.kind == .tooLarge, "\(error)")
        case (.open, .failed(let error)): try require(error.kind == .truncatedBody, "\(error)")
        case (.open, .open): break
        case (.trailers(let start), .failed), (.trailers(let start), .open):
            try checkOpen(trailers: input[start...], whole)
        case (.trailers(let start), .complete(let isReusable)):
            let end = whole.consumed - head.count
            try require(end >= start + 1 && input[end - 1] == 0x0A, "the trailers end within a line")
            try require(isReusable == (end == input.count), "a connection with further bytes is kept")
            if !whole.trailers.isEmpty { try HeadCheck.check(lines: whole.trailers) }
            for name in ["Content-Length", "Transfer-Encoding", "Host", "Connection", "Set-Cookie"] {
                try require(!ResponseHeadParser.fields(whole.trailers).contains(name), "\(name) is a trailer")
            }
        default: throw Failure("\(plain.end) in place of \(whole.end)")
        }
        try checkWriter(input, choice)
        return whole.outcome + " \(plain.count)"
    }

    /// Checks that trailers that are not complete have no empty line, unless they are refused.
    private static func checkOpen(trailers: ArraySlice<UInt8>, _ result: HTTP1Result) throws {
        if case .failed(let error) = result.end, error.kind != .truncatedBody { return }
        let lines = trailers.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
        try require(lines.allSatisfy { !$0.isEmpty && $0 != [0x0D] }, "an empty line does not end the trailers")
    }

    /// Checks that a body that is written in chunks is read as the same body.
    private static func checkWriter(_ body: [UInt8], _ choice: UInt64) throws {
        var numbers = Numbers(state: choice)
        var bytes = head
        var rest = body[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(1 + numbers.below(rest.count))
            HTTP1ChunkFraming.appendSizeLine(of: chunk.count, to: &bytes)
            bytes += chunk + HTTP1ChunkFraming.dataEnd
            rest = rest.dropFirst(chunk.count)
        }
        try HTTP1ChunkFraming.appendEnd(to: &bytes)
        let request = HTTP1Connection.Request(
            method: "GET", fields: RequestFields(), hasBody: false, limits: HeadLimits(bytes: 4_000))
        let read = try HTTP1Result(request, isSecond: false, response: bytes, pieces: [bytes.count])
        try require(read.body == body && read.end == .complete(isReusable: true), "written chunks are read as \(read)")
    }
}

/// Reads a chunked body that is whole in memory, by the rules that `HTTP1ChunkReader` documents.
private struct PlainChunks {
    enum End: Equatable {
        case open, refused
        /// The trailers begin at this index.
        case trailers(Int)
    }

    private(set) var body: [UInt8] = []
    private(set) var end = End.open
    private(set) var count = 0

    init(_ input: [UInt8]) {
        var position = 0
        while true {
            let line = Self.sizeLine(input[position...])
            guard case .size(let size, let next) = line else {
                end = line == .open ? .open : .refused
                return
            }
            position = next
            if size == 0 {
                end = .trailers(position)
                return
            }
            count = min(count + 1, 3)
            let length = min(size, input.count - position)
            body += input[position..<(position + length)]
            position += length
            for byte: UInt8 in [0x0D, 0x0A] {
                if position == input.count { return }
                if input[position] != byte {
                    end = .refused
                    return
                }
                position += 1
            }
        }
    }

    private enum Line: Equatable {
        case open, refused
        case size(Int, next: Int)
    }

    private static func sizeLine(_ input: ArraySlice<UInt8>) -> Line {
        let digits = input.prefix { isDigit($0) }
        guard digits.count <= 15 else { return .refused }
        let rest = input[digits.endIndex...]
        if rest.isEmpty { return .open }
        if digits.isEmpty { return .refused }
        let content = rest.prefix { $0 != 0x0D && $0 != 0x0A }
        let blanks = content.prefix { $0 == 0x20 || $0 == 0x09 }
        let extensions = content[blanks.endIndex...]
        let isValid =
            (extensions.first ?? UInt8(ascii: ";")) == UInt8(ascii: ";")
            && extensions.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
            && digits.count + content.count <= 4_096
        guard isValid else { return .refused }
        let ending = input[content.endIndex...].prefix(2)
        guard ending.elementsEqual([0x0D, 0x0A].prefix(ending.count)) else { return .refused }
        guard ending.count == 2, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) else {
            return .open
        }
        return .size(size, next: ending.endIndex)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        0x30...0x39 ~= byte || 0x41...0x46 ~= byte || 0x61...0x66 ~= byte
    }
}
#endif
