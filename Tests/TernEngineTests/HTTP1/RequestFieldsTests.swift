import Testing

@testable import TernEngine

@Suite struct RequestFieldsTests {
    private func fields(_ lines: [(String, String)]) throws(EngineError) -> RequestFields {
        var fields = RequestFields()
        for (name, value) in lines { try fields.append(name: name, value: value) }
        return fields
    }

    private func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

    private func head(
        _ lines: [(String, String)], method: String = "GET", framing: HTTP1RequestHead.Framing = .none,
        keepsProxyAuthorization: Bool = false, upgrade: String? = nil
    ) throws(EngineError) -> String {
        var head = HTTP1RequestHead(method: method, target: "/a?b", authority: "host:80", framing: framing)
        head.dropsProxyAuthorization = !keepsProxyAuthorization
        head.upgrade = upgrade
        var buffer: [UInt8] = []
        let fields = try fields(lines)
        try head.write(fields, into: &buffer)
        // The short way writes the same bytes, or leaves the head to this one.
        if let usual = usual(head, fields) { #expect(usual == buffer) }
        return text(buffer)
    }

    /// The bytes of the short way; nil if it does not write the head.
    private func usual(_ head: HTTP1RequestHead, _ fields: RequestFields, room: Int = 1_000) -> [UInt8]? {
        unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { memory in
            unsafe head.writeUsual(fields, into: memory).map { unsafe Array(memory[..<$0]) }
        }
    }

    // MARK: Lines

    @Test func fieldsAreWrittenInTheirOrder() throws {
        let fields = try fields([
            ("A", "b"), ("Empty", ""), ("Blank", " \t "), ("X-Trim", " \tc d\t "), ("a", "caf\u{E9}"),
        ])
        #expect(text(fields.bytes) == "A: b\r\nEmpty:\r\nBlank:\r\nX-Trim: c d\r\na: caf\u{E9}\r\n")
        let pairs = fields.fields.map { (text(fields.bytes[$0.name]), text(fields.bytes[$0.value])) }
        #expect(pairs.map(\.0) == ["A", "Empty", "Blank", "X-Trim", "a"])
        #expect(pairs.map(\.1) == ["b", "", "", "c d", "caf\u{E9}"])
        #expect(fields.fields.map { text(fields.bytes[$0.line]) }.joined() == text(fields.bytes))
    }

    @Test func aRawValueIsKeptByteForByte() throws {
        var fields = RequestFields()
        try fields.append(name: "Cookie", bytes: [0x61, 0x3D, 0xFF, 0x80])
        #expect(fields.bytes == Array("Cookie: a=".utf8) + [0xFF, 0x80, 0x0D, 0x0A])
        #expect(fields.summary == .cookie && fields.fields.first?.role == .cookie)
    }

    @Test(arguments: [
        ("", "a"), ("A B", "a"), ("A:", "a"), ("A\r\nB", "a"), ("\u{E9}", "a"), (" A", "a"), ("A ", "a"), ("A\0", "a"),
        ("A", "b\r\nC: d"),
        ("A", "b\n"), ("A", "\r"), ("A", "\0"), ("A", "b\u{1}c"), ("A", "\u{7F}"), ("A", "0123456789\n0123456789"),
        ("Host", "a b"), ("Host", "a,b"), ("Host", "a/b"), ("Host", "user@a"), ("Host", "a?b"), ("Host", "a#b"),
        ("Host", "a\\b"),
        ("Content-Length", "-1"), ("Content-Length", "+1"), ("Content-Length", "1, 1"), ("Content-Length", ""),
        ("content-length", "x"),
        ("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "gzip, chunked"), ("transfer-encoding", ""),
        ("Transfer-Encoding", "chunked, chunked"),
        ("Transfer-Encoding", "identity"), ("TE", "gzip"), ("TE", "trailers, deflate;q=0.5"),
        ("Trailer", "Content-Length"),
        ("Trailer", "X-Sum, transfer-encoding"), ("Trailer", "Host"), ("Connection", "content-length"),
        ("Connection", "close, Transfer-Encoding"),
        ("Connection", "Host"), ("Connection", "a b"), ("Connection", "\"close\""), ("Upgrade", "h2c"),
        ("Upgrade", "websocket"), ("Upgrade", "h2"),
        ("Expect", "200-ok"), ("Expect", "100-continue, x"), ("Expect", ""), ("HTTP2-Settings", "AAMAAABkAAQ"),
    ])
    func fieldsThatCannotBeSentAreRefused(name: String, value: String) throws {
        var fields = try fields([("First", "1")])
        let before = fields
        #expect(throws: EngineError.self) { try fields.append(name: name, value: value) }
        #expect(fields == before)
        do { try fields.append(name: name, bytes: Array(value.utf8)) } catch { #expect(error.kind == .invalidRequest) }
        #expect(fields == before)
    }

    @Test func aSecondHostIsRefused() throws {
        var fields = try fields([("Host", "a"), ("Content-Length", "5"), ("Content-Length", "5")])
        #expect(throws: EngineError.self) { try fields.append(name: "host", value: "a") }
        #expect(throws: EngineError.self) { try fields.append(name: "Content-Length", value: "6") }
        #expect(text(fields.bytes) == "Host: a\r\n" && fields.statedLength == 5)
    }

    @Test(
        arguments: [
            ("Accept", "a", RequestFields.Summary.accept), ("accept-ENCODING", "a", .acceptEncoding),
            ("User-Agent", "a", .userAgent),
            ("Content-Type", "a", .contentType), ("Expect", "100-Continue", .expectsContinue),
            ("TE", "Trailers", .te), ("Cookie", "a", .cookie), ("Authorization", "a", .authorization),
            ("Host", "a", .host),
            ("Proxy-Authorization", "a", .proxyAuthorization), ("Connection", "x, CLOSE", .asksToClose),
            ("Connection", "keep-alive", []),
            ("Connection", "Upgrade, te", [.namesUpgrade, .namesTE]), ("Transfer-Encoding", "Chunked", .chunked),
            ("X-Close", "close", []),
            ("Keep-Alive", "timeout=5", []), ("Proxy-Connection", "close", []), ("Trailer", "X-Sum", []),
            ("Connection", "closed", []),
        ] as [(String, String, RequestFields.Summary)])
    func fieldsThatMatterAreNoted(name: String, value: String, summary: RequestFields.Summary) throws {
        #expect(try fields([(name, value)]).summary == summary)
    }

    // MARK: Heads

    @Test func aHeadHasItsHostFirst() throws {
        #expect(try head([("A", "b")]) == "GET /a?b HTTP/1.1\r\nHost: host:80\r\nA: b\r\n\r\n")
        #expect(try head([("A", "b"), ("hOST", "c")]) == "GET /a?b HTTP/1.1\r\nA: b\r\nhOST: c\r\n\r\n")
        #expect(try head([]) == "GET /a?b HTTP/1.1\r\nHost: host:80\r\n\r\n")
    }

    @Test(arguments: [
        ("GET", HTTP1RequestHead.Framing.none, ""), ("DELETE", .none, ""), ("HEAD", .none, ""), ("OPTIONS", .none, ""),
        ("POST", .none, "Content-Length: 0\r\n"), ("PUT", .none, "Content-Length: 0\r\n"),
        ("PATCH", .none, "Content-Length: 0\r\n"),
        ("POST", .length(0), "Content-Length: 0\r\n"),
        ("PUT", .length(1_234_567_890_123), "Content-Length: 1234567890123\r\n"),
        ("PUT", .length(.max), "Content-Length: 9223372036854775807\r\n"),
        ("POST", .chunked, "Transfer-Encoding: chunked\r\n"),
    ])
    func theEngineWritesTheFraming(method: String, framing: HTTP1RequestHead.Framing, line: String) throws {
        let expected = "\(method) /a?b HTTP/1.1\r\nHost: host:80\r\n\(line)\r\n"
        #expect(try head([], method: method, framing: framing) == expected)
    }

    @Test func framingOfTheCallerThatAgreesIsNotSentTwice() throws {
        let five = try head([("Content-Length", "5")], method: "POST", framing: .length(5))
        #expect(five == "POST /a?b HTTP/1.1\r\nHost: host:80\r\nContent-Length: 5\r\n\r\n")
        #expect(try head([("Content-Length", "0")]) == "GET /a?b HTTP/1.1\r\nHost: host:80\r\n\r\n")
        let chunked = try head([("Transfer-Encoding", "chunked")], method: "POST", framing: .chunked)
        #expect(chunked == "POST /a?b HTTP/1.1\r\nHost: host:80\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    @Test(arguments: [
        ("Content-Length", "5", HTTP1RequestHead.Framing.none), ("Content-Length", "5", .length(6)),
        ("Content-Length", "5", .chunked),
        ("Content-Length", "0", .length(1)), ("Transfer-Encoding", "chunked", .none),
        ("Transfer-Encoding", "chunked", .length(5)),
    ])
    func framingOfTheCallerThatContradictsIsRefused(name: String, value: String, framing: HTTP1RequestHead.Framing) {
        #expect { try head([(name, value)], method: "POST", framing: framing) } throws: { error in
            (error as? EngineError)?.kind == .invalidRequest
        }
    }

    @Test(arguments: [
        ("G ET", "/", "a"), ("", "/", "a"), ("GET\r\n", "/", "a"), ("GET", "", "a"), ("GET", "/a b", "a"),
        ("GET", "/a\r\nX: 1", "a"),
        ("GET", "/\u{E9}", "a"), ("GET", "/\u{7F}", "a"), ("GET", "/\0", "a"), ("GET", "/", ""), ("GET", "/", "a b"),
        ("GET", "/", "a\r\nX: 1"),
        ("GET", "/", "user@a"), ("GET", "/", "a/b"), ("GÉT", "/", "a"),
    ])
    func aRequestLineThatCannotBeSentIsRefused(method: String, target: String, authority: String) throws {
        var buffer: [UInt8] = [1]
        let head = HTTP1RequestHead(method: method, target: target, authority: authority, framing: .none)
        #expect(throws: EngineError.self) { try head.write(RequestFields(), into: &buffer) }
        #expect(buffer == [1])
        #expect(usual(head, RequestFields()) == nil)
    }

    @Test func usualHeadsTakeTheShortWay() throws {
        var head = HTTP1RequestHead(method: "GET", target: "http://host/a?b", authority: "host:80", framing: .none)
        head.targetStart = 11
        let fields = try fields([("Accept", "*/*"), ("Connection", "close"), ("Cookie", "a=b")])
        var buffer: [UInt8] = []
        try head.write(fields, into: &buffer)
        #expect(text(buffer).hasPrefix("GET /a?b HTTP/1.1\r\nHost: host:80\r\nAccept: */*\r\n"))
        #expect(usual(head, fields) == buffer)
        // Not into memory that could be too small.
        #expect(usual(head, fields, room: buffer.count) == nil)
        for name in ["Host", "Expect", "Proxy-Authorization", "TE", "Content-Length"] {
            let value = ["Expect": "100-continue", "TE": "trailers", "Content-Length": "0"][name] ?? "host"
            #expect(try usual(head, self.fields([(name, value)])) == nil, "\(name)")
        }
        for method in ["POST", "PUT", "PATCH"] {
            let other = HTTP1RequestHead(method: method, target: "/", authority: "host", framing: .none)
            #expect(usual(other, fields) == nil)
        }
    }

    @Test func proxyAuthorizationIsForProxiesAlone() throws {
        let lines = [("A", "b"), ("Proxy-Authorization", "secret"), ("C", "d")]
        #expect(try !head(lines).contains("secret"))
        #expect(try head(lines).hasSuffix("A: b\r\nC: d\r\n\r\n"))
        #expect(try head(lines, keepsProxyAuthorization: true).contains("Proxy-Authorization: secret\r\n"))
    }

    @Test func anExpectationNeedsABody() throws {
        let lines = [("Expect", "100-continue"), ("A", "b")]
        #expect(try !head(lines).contains("Expect"))
        #expect(try !head(lines, method: "POST", framing: .length(0)).contains("Expect"))
        #expect(try head(lines, method: "POST", framing: .length(1)).contains("Expect: 100-continue\r\n"))
        #expect(try head(lines, method: "POST", framing: .chunked).contains("Expect: 100-continue\r\n"))
    }

    @Test func fieldsOfOneHopAreNamedInConnection() throws {
        #expect(try head([("TE", "trailers")]).contains("TE: trailers\r\nConnection: TE\r\n"))
        #expect(try head([], upgrade: "websocket").contains("\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"))
        let named = try head([("Connection", "Upgrade, TE"), ("TE", "trailers")], upgrade: "websocket")
        #expect(named.components(of: "Connection:") == 1 && named.contains("Upgrade: websocket\r\n"))
    }

    @Test func onlyARequestWithoutABodyAsksForAnotherProtocol() throws {
        for name in ["", "a b", "a\r\nb", "a,b", "h2c", "H2"] {
            #expect(throws: EngineError.self) { try head([], upgrade: name) }
        }
        #expect(throws: EngineError.self) { try head([], method: "POST", framing: .chunked, upgrade: "websocket") }
    }

    // MARK: Chunks

    @Test(arguments: [
        (1, "1"), (9, "9"), (10, "a"), (15, "f"), (16, "10"), (255, "ff"), (65_536, "10000"),
        (Int.max, "7fffffffffffffff"),
    ])
    func sizeLinesAreHexadecimal(count: Int, digits: String) {
        var buffer: [UInt8] = []
        HTTP1ChunkFraming.appendSizeLine(of: count, to: &buffer)
        #expect(text(buffer) == "\(digits)\r\n")
    }

    @Test func theLastChunkCarriesTheTrailers() throws {
        var buffer: [UInt8] = []
        try HTTP1ChunkFraming.appendEnd(to: &buffer)
        #expect(text(buffer) == "0\r\n\r\n")
        buffer = []
        try HTTP1ChunkFraming.appendEnd(trailers: fields([("X-Sum", "1"), ("Y", "")]), to: &buffer)
        #expect(text(buffer) == "0\r\nX-Sum: 1\r\nY:\r\n\r\n")
    }

    @Test(arguments: [
        ("Content-Length", "1"), ("Host", "a"), ("Transfer-Encoding", "chunked"), ("Connection", "close"),
        ("Trailer", "X"), ("TE", "trailers"),
        ("Content-Type", "a"), ("Authorization", "a"), ("Cookie", "a"), ("Expect", "100-continue"),
        ("Proxy-Authorization", "a"), ("Content-Encoding", "gzip"), ("content-range", "bytes 0-1/2"),
        ("Set-Cookie", "a=b"),
        ("Range", "bytes=0-"), ("If-Match", "*"), ("If-None-Match", "*"), ("If-Modified-Since", "x"),
        ("If-Unmodified-Since", "x"), ("IF-RANGE", "x"), ("Cache-Control", "no-cache"), ("Pragma", "no-cache"),
        ("Max-Forwards", "1"), ("Keep-Alive", "x"), ("Proxy-Connection", "x"),
    ])
    func framingFieldsCannotBeTrailers(name: String, value: String) throws {
        let trailers = try fields([(name, value)])
        var buffer: [UInt8] = [1]
        #expect(throws: EngineError.self) { try HTTP1ChunkFraming.appendEnd(trailers: trailers, to: &buffer) }
        #expect(buffer == [1])
    }
}

extension String {
    fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
