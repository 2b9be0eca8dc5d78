import Testing

@testable import TernEngine

/// Checks the length of bodies (RFC 9112 §6 and §7) and the use of the connection afterwards (§9), at every split.
@Suite struct HTTP1FramingTests {
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    private func parse(
        _ text: String, request: HTTP1Parser.Request = .test(), isCut: Bool = false,
        location: SourceLocation = #_sourceLocation
    ) -> ParsedResponse {
        let (whole, different) = ParsedResponse.everySplit(
            Array(latin: text), request: request, ends: true, isCut: isCut)
        #expect(different == nil, "\(text.debugDescription): \(whole)", sourceLocation: location)
        return whole
    }

    // MARK: Content-Length and Transfer-Encoding

    @Test(arguments: [
        "5", "5, 5", "5,5 , 5", "05", "000000000000000005", "5\r\nContent-Length: 5", "5\r\nA: b\r\ncontent-LENGTH:5",
    ])
    func equalLengthsAreAccepted(length: String) {
        let result = parse("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nfirst")
        #expect(result.text == "first" && result.end == .complete(isReusable: true))
    }

    @Test(arguments: [
        "-5", "+5", "abc", "5x", "x5", "", " ", ",", "5,", ",5", "5,,5", "5, 6", "5 5", "5;5", "0x5", "5.0", "5e0",
        "\u{B5}",
        "99999999999999999999999", "1000000000000000000", "5\r\nContent-Length: 6", "5\r\nContent-Length:",
        "5\r\nContent-Length: 05x",
        "\"5\"", "5,6,5", "٥",
    ])
    func invalidLengthsAreRefused(length: String) {
        let result = parse("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nfirst")
        #expect(result.error?.kind == .malformedResponse, "\(result)")
        #expect(result.error?.reason.contains("Content-Length is not one number (RFC 9112 §6.3)") == true)
    }

    @Test func theGreatestLengthFits() {
        let result = parse("HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999\r\n\r\nfirst")
        #expect(result.head?.contentLength == 999_999_999_999_999_999)
        #expect(result.error?.kind == .truncatedBody)
        #expect(result.error?.reason.contains("5 of 999999999999999999 bytes") == true)
    }

    @Test(arguments: [
        "Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: \"chunked\"", "Transfer-Encoding:", "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked,", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding: deflate",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: ch unked",
    ])
    func otherTransferCodingsAreRefused(field: String) {
        for fields in [field, "Content-Length: 5\r\n\(field)", "\(field)\r\nContent-Length: 5"] {
            let result = parse("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n5\r\nfirst\r\n0\r\n\r\n")
            #expect(result.error?.kind == .malformedResponse && result.body.isEmpty, "\(result)")
            #expect(result.error?.reason.contains("(RFC 9112 §7.4)") == true)
        }
    }

    @Test(arguments: [
        ("Content-Length: 9\r\nTransfer-Encoding: chunked", false),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", false),
        ("TRANSFER-ENCODING:Chunked", true), ("Transfer-Encoding: \tCHUNKED\t ", true),
    ])
    func chunksTakePrecedenceOverALength(fields: String, isReusable: Bool) {
        let result = parse("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n5\r\nfirst\r\n0\r\n\r\n")
        #expect(result.text == "first" && result.end == .complete(isReusable: isReusable))
        #expect(result.head?.contentLength == nil)
    }

    @Test func identityIsNoCoding() {
        let stated = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nfirst")
        #expect(stated.text == "first" && stated.end == .complete(isReusable: false))
        let open = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\n\r\nfirst")
        #expect(open.text == "first" && open.end == .complete(isReusable: false))
    }

    @Test func aTransferEncodingInHTTP10IsRefused() {
        let bytes = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(parse(bytes + "0\r\n\r\n").error?.reason.contains("is HTTP/1.0 and has a Transfer-Encoding") == true)
        #expect(parse(bytes, request: .test(isHead: true)).end == .complete(isReusable: false))
    }

    // MARK: Responses without a body

    @Test(arguments: [
        ("204 No Content", true), ("204 No Content\r\nContent-Length: 0", true),
        // The body that the server states may still come.
        ("204 No Content\r\nContent-Length: 5", false), ("204 No Content\r\nTransfer-Encoding: chunked", false),
        ("304 Not Modified\r\nContent-Length: 100", true),
        ("304 Not Modified", true), ("205 Reset\r\nContent-Length: 0", true), ("205 Reset", false),
        ("200 OK\r\nContent-Length: 0", true), ("200 OK\r\nContent-Length: 0, 0", true),
        ("204 No\r\nConnection: close", false),
    ])
    func statusWithoutABodyEndsAtTheHead(rest: String, isReusable: Bool) {
        let text = "HTTP/1.1 \(rest)\r\n\r\n"
        let result = parse(text + "HTTP/1.1 200 OK\r\n")
        #expect(result.body.isEmpty && result.end == .complete(isReusable: isReusable), "\(result)")
        #expect(result.consumed == text.utf8.count)
    }

    @Test(arguments: [
        ("Content-Length: 1000", 1_000, true), ("Transfer-Encoding: chunked", nil, true), ("A: b", nil, true),
        ("Transfer-Encoding: gzip", nil, true), ("Content-Length: 5\r\nTransfer-Encoding: chunked", nil, false),
        ("Connection: close", nil, false),
    ])
    func aResponseToHeadHasNoBody(fields: String, length: Int64?, isReusable: Bool) {
        let result = parse("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n", request: .test(isHead: true))
        #expect(result.end == .complete(isReusable: isReusable) && result.head?.contentLength == length)
    }

    @Test(arguments: [
        "200 Connected", "200 OK\r\nContent-Length: 5", "299 X\r\nTransfer-Encoding: chunked",
        "200 OK\r\nContent-Length: x", "200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
        "200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "200 OK\r\nContent-Length:\r\n 5",
    ])
    func aTunnelBeginsAfterTheHead(rest: String) {
        let text = "HTTP/1.1 \(rest)\r\n\r\n"
        let result = parse(text + "\u{16}\u{3}", request: .test(isConnect: true))
        #expect(result.end == .upgraded && result.consumed == text.utf8.count && result.head != nil)
    }

    @Test(arguments: ["407 X\r\nContent-Length: x", "407 X\r\nContent-Length: 1\r\nContent-Length: 2"])
    func theFramingOfARefusedTunnelIsChecked(rest: String) {
        let result = parse("HTTP/1.1 \(rest)\r\n\r\n", request: .test(isConnect: true))
        #expect(result.error?.reason.contains("not one number") == true)
    }

    @Test func aRefusedTunnelHasABody() {
        let text = "HTTP/1.1 407 Authenticate\r\nContent-Length: 2\r\n\r\nno"
        let result = parse(text, request: .test(isConnect: true))
        #expect(result.end == .complete(isReusable: true) && result.text == "no")
    }

    // MARK: Interim responses and 101

    @Test(arguments: [100, 102, 103, 110, 199])
    func interimResponsesComeBeforeTheResponse(status: Int) {
        let interim = "HTTP/1.1 \(status) Soon\r\nLink: </a>\r\n\r\n"
        let result = parse(interim + interim + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        #expect(result.interims.map(\.status) == [status, status] && result.text == "ok")
        #expect(result.interims.first?.bytes == Array(interim.utf8))
        #expect(result.end == .complete(isReusable: true))
    }

    @Test func factsOfAnInterimResponseDoNotReachTheNext() {
        let interim =
            "HTTP/1.1 103 Hints\r\nSet-Cookie: a\r\nConnection: close\r\nContent-Length: 0\r\nContent-Encoding: br\r\n\r\n"
        let result = parse(interim + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        #expect(result.end == .complete(isReusable: true) && result.head?.setsCookies == false)
        #expect(result.head?.isEncoded == false && result.head?.contentLength == 2)
    }

    /// A recipient that believes in the body sees another response than the one after the head.
    @Test(arguments: ["Content-Length: 9", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"])
    func anInterimResponseThatStatesABodyEndsTheReuse(field: String) {
        let interim = "HTTP/1.1 103 Hints\r\n\(field)\r\n\r\n"
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        for text in [interim + response, interim + "HTTP/1.1 102 Processing\r\n\r\n" + response] {
            let result = parse(text)
            #expect(result.end == .complete(isReusable: false) && result.text == "ok", "\(result)")
        }
    }

    @Test(arguments: [(100, true), (101, false)])
    func interimResponsesAreLimited(count: Int, isTaken: Bool) {
        let interims = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: count)
        let bytes = Array("\(interims)HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
        for splits in [[], Array(1..<bytes.count)] {
            let result = ParsedResponse(bytes, splits: splits)
            #expect((result.error == nil) == isTaken)
            guard let error = result.error else { continue }
            #expect(error.kind == .tooLarge && error.reason.contains("more than 100 interim responses"))
        }
    }

    @Test func switchingProtocolsNeedsARequest() {
        let text = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
        #expect(parse(text).error?.reason.contains("without being asked (RFC 9110 §15.2.2)") == true)
        #expect(parse("HTTP/1.1 103 Hints\r\n\r\n" + text).error?.kind == .malformedResponse)
        let asked = parse(text + "bytes", request: .test(allowsUpgrade: true))
        #expect(asked.end == .upgraded && asked.consumed == text.utf8.count && asked.head?.status == 101)
        let declined = parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", request: .test(allowsUpgrade: true))
        #expect(declined.end == .complete(isReusable: true))
    }

    // MARK: Chunks

    @Test(arguments: [
        "5\r\nfirst\r\n0\r\n\r\n", "1\r\nf\r\n4\r\nirst\r\n0\r\n\r\n", "005\r\nfirst\r\n000\r\n\r\n",
        "000000000000005\r\nfirst\r\n0\r\n\r\n", "5;x\r\nfirst\r\n0;y=z\r\n\r\n",
        "5;x=\"a;b\\\"\";y\r\nfirst\r\n0\r\n\r\n",
        "5 \r\nfirst\r\n0 \t\r\n\r\n", "5 ; x\r\nfirst\r\n0\r\n\r\n", "5;\r\nfirst\r\n0\r\n\r\n",
        "5;\u{E9}\r\nfirst\r\n0\r\n\r\n",
        "1\r\nf\r\n1\r\ni\r\n1\r\nr\r\n1\r\ns\r\n1\r\nt\r\n0\r\n\r\n",
    ])
    func chunksAreJoined(body: String) {
        let result = parse(Self.chunked + body)
        #expect(result.text == "first" && result.end == .complete(isReusable: true), "\(result)")
        #expect(result.trailers.isEmpty)
    }

    @Test func chunkSizesAreHexadecimal() {
        for size in ["a", "A", "1f", "1F", "fF", "1a0"] {
            guard let count = Int(size, radix: 16) else { continue }
            let data = String(repeating: "x", count: count)
            let result = ParsedResponse(Array("\(Self.chunked)\(size)\r\n\(data)\r\n0\r\n\r\n".utf8))
            #expect(result.body.count == count && result.end == .complete(isReusable: true))
        }
    }

    @Test(arguments: [
        "0x2\r\nhi\r\n0\r\n\r\n", "x\r\nhi\r\n0\r\n\r\n", "-2\r\nhi\r\n0\r\n\r\n", "+2\r\nhi\r\n0\r\n\r\n",
        " 2\r\nhi\r\n0\r\n\r\n", "\t2\r\nhi\r\n0\r\n\r\n", "10000000000000000\r\nhi", "\r\nhi\r\n0\r\n\r\n", "\nhi",
        "0000000000000002\r\nhi\r\n0\r\n\r\n", "fffffffffffffffff\r\n", ";x\r\nhi", "2 x\r\nhi\r\n0\r\n\r\n",
        "2,\r\nhi\r\n0\r\n\r\n", "2 2\r\nhi", "g\r\n", "2h\r\nhi\r\n", "2\0\r\nhi", "2.\r\nhi", "2_0\r\nhi",
        "\u{1B}[2J\r\n",
    ])
    func invalidChunkSizesAreRefused(body: String) {
        let result = parse(Self.chunked + body)
        #expect(result.error?.kind == .malformedResponse && result.body.isEmpty, "\(result)")
        #expect(result.error?.reason.contains("hexadecimal number of at most 15 digits") == true)
    }

    @Test(arguments: [
        ("2\nhi\r\n0\r\n\r\n", "CRLF"), ("2\rhi\r\n0\r\n\r\n", "CRLF"), ("2;x\nhi\r\n0\r\n\r\n", "CRLF"),
        ("2 \nhi", "CRLF"),
        ("2\r\r\nhi\r\n0\r\n\r\n", "CRLF"), ("2;x\r;y\r\nhi", "CRLF"), ("2\r\nhi\n0\r\n\r\n", "does not end"),
        ("2\r\nhi\r0\r\n\r\n", "does not end"), ("2\r\nhix\r\n0\r\n\r\n", "does not end"),
        ("2\r\nhi0\r\n\r\n", "does not end"),
        ("2\r\nhi\r\r\n0\r\n\r\n", "does not end"), ("2\r\nhi\n\r\n", "does not end"), ("2;\0\r\nhi", "extension"),
        ("2;a\u{7F}\r\nhi", "extension"), ("0\n\n", "CRLF"), ("2\r\nhi\r\n0\n\r\n", "CRLF"),
    ])
    func chunksWithoutTheirLineEndsAreRefused(body: String, reason: String) {
        let result = parse(Self.chunked + body)
        #expect(result.error?.kind == .malformedResponse, "\(result)")
        #expect(result.error?.reason.contains(reason) == true, "\(result)")
    }

    @Test func chunkExtensionsAreLimited() {
        let line = String(repeating: "x", count: HTTP1ChunkReader.lineLimit - 2)
        let long = ParsedResponse(Array("\(Self.chunked)1;\(line)\r\na\r\n0\r\n\r\n".utf8))
        #expect(long.text == "a" && long.error == nil)
        let tooLong = ParsedResponse(Array("\(Self.chunked)1;\(line)x".utf8))
        #expect(tooLong.error?.kind == .tooLarge)
        let chunk = "1;\(String(repeating: "x", count: 1_023))\r\na\r\n"
        let most = ParsedResponse(Array("\(Self.chunked)\(String(repeating: chunk, count: 64))0\r\n\r\n".utf8))
        #expect(most.body.count == 64 && most.error == nil)
        let tooMany = ParsedResponse(Array("\(Self.chunked)\(String(repeating: chunk, count: 64))0;\r\n\r\n".utf8))
        #expect(tooMany.error?.kind == .tooLarge && tooMany.body.count == 64)
    }

    // MARK: Trailers (RFC 9110 §6.5)

    @Test func trailersAreReturnedAndFramingFieldsAreDropped() {
        let dropped = [
            "Content-Length: 9", "transfer-encoding: chunked", "Host: a", "TRAILER: b", "Connection: close\r\n folded",
            "Keep-Alive: x", "Proxy-Connection: x", "Upgrade: x", "TE: x", "Content-Type: a/b", "Content-Encoding: br",
            "Content-Range: x", "Set-Cookie: a=b",
        ]
        let lines = dropped.map { "X-Kept: 1\r\n\($0)\r\nX-Sum: 2\r\n" }.joined()
        let result = parse("\(Self.chunked)5\r\nfirst\r\n0\r\n\(lines)\r\n")
        #expect(result.text == "first" && result.end == .complete(isReusable: true))
        let kept = String(repeating: "X-Kept: 1\r\nX-Sum: 2\r\n", count: dropped.count)
        #expect(String(decoding: result.trailers, as: UTF8.self) == kept)
    }

    @Test func onlyDroppedTrailersAreNoTrailers() {
        let result = parse("\(Self.chunked)0\r\nContent-Length: 9\r\n\r\n")
        #expect(result.trailers.isEmpty && result.end == .complete(isReusable: true))
    }

    // MARK: Limits

    @Test func theBytesOfAHeadAreLimited() {
        let head = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n"
        let count = head.utf8.count
        #expect(parse(head, request: .test(headLimit: count)).error == nil)
        for limit in 6..<count {
            let result = parse(head, request: .test(headLimit: limit))
            #expect(result.error == EngineError(.tooLarge, "the head of the response has more than \(limit) bytes"))
        }
        let interim = "HTTP/1.1 103 Hints\r\n\r\n"
        #expect(parse(interim + head, request: .test(headLimit: count + interim.utf8.count)).error == nil)
        let over = parse(interim + head, request: .test(headLimit: count + interim.utf8.count - 1))
        #expect(over.error?.kind == .tooLarge)
    }

    @Test func theLimitIsTheSameForAnySplitOfALineThatIsNotHTTP() {
        for limit in 0..<40 {
            let text = "HTTP/1.1 103 Hints\r\n\r\nHTTPlose\r\n\r\n"
            let result = parse(text, request: .test(headLimit: limit))
            #expect(result.error?.kind == (limit < 26 ? .tooLarge : .malformedResponse), "\(limit)")
        }
    }

    @Test func aLineThatNeverEndsIsTooLarge() {
        for start in [
            "HTTP/1.1 200 ", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nX: a\r\n ", "HTTP/1.1 200 OK\r\nX",
        ] {
            let bytes = Array((start + String(repeating: "x", count: 4_096)).utf8)
            for splits in [[], Array(1..<bytes.count)] {
                let result = ParsedResponse(bytes, splits: splits, request: .test(headLimit: 4_000))
                #expect(result.error?.kind == .tooLarge)
            }
        }
    }

    @Test(arguments: [(1_000, true), (1_001, false)])
    func theFieldsOfAHeadAndItsTrailersAreLimited(count: Int, isTaken: Bool) {
        let all = String(repeating: "A: b\r\n", count: count - 1)
        let head = ParsedResponse(Array("HTTP/1.1 200 OK\r\n\(all)Content-Length: 0\r\n\r\n".utf8))
        let trailers = ParsedResponse(Array("\(Self.chunked)0\r\n\(all)\r\n".utf8))
        for result in [head, trailers] {
            #expect((result.error == nil) == isTaken)
            #expect(isTaken || result.error?.reason.contains("more than 1000 fields") == true)
        }
    }

    @Test func theBytesOfTrailersAreLimited() {
        let trailers = "X: \(String(repeating: "x", count: 200))\r\n\r\n"
        let bytes = "\(Self.chunked)0\r\n\(trailers)"
        #expect(parse(bytes, request: .test(headLimit: trailers.utf8.count)).error == nil)
        let over = parse(bytes, request: .test(headLimit: trailers.utf8.count - 1))
        #expect(over.error?.kind == .tooLarge && over.error?.reason.contains("trailers") == true)
    }

    // MARK: The end of the connection

    @Test(arguments: [
        "HT", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-", "HTTP/1.1 103 Hints\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: 1\r\n\r",
    ])
    func anEndWithinTheHeadIsALostConnection(text: String) {
        let result = parse(text)
        #expect(result.error == EngineError(.connectionLost, "the head is not whole"))
    }

    @Test func anEndWithoutAByteIsALostConnection() {
        #expect(parse("").error == EngineError(.connectionLost, "the connection ended without a response"))
    }

    @Test(arguments: [
        ("Content-Length: 10\r\n\r\nabc", "3 of 10 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "3 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n9\r\nabc", "3 bytes"), ("Transfer-Encoding: chunked\r\n\r\n", "0 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "3 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\n", "3 bytes"),
        ("Content-Length: 1\r\n\r\n", "0 of 1 bytes"),
    ])
    func anEndWithinTheBodyIsATruncation(rest: String, count: String) {
        let result = parse("HTTP/1.1 200 OK\r\n" + rest)
        #expect(result.error?.kind == .truncatedBody && result.error?.reason.contains(count) == true, "\(result)")
    }

    @Test func theEndOfTheConnectionEndsABodyWithoutALength() {
        for version in ["1.0", "1.1"] {
            let text = "HTTP/\(version) 200 OK\r\nX: 1\r\n\r\nuntil the end"
            #expect(parse(text).end == .complete(isReusable: false) && parse(text).text == "until the end")
            let cut = parse(text, isCut: true)
            #expect(cut.error?.kind == .truncatedBody && cut.error?.reason.contains("was cut") == true)
        }
    }

    @Test(arguments: [
        ("1.1", "A: b", true), ("1.1", "Connection: close", false), ("1.1", "connection: CLOSE", false),
        ("1.1", "Connection: keep-alive, close", false), ("1.1", "Connection: close, keep-alive", false),
        ("1.1", "Connection: x\r\nConnection: ,close,", false), ("1.1", "Connection: closed", true),
        ("1.1", "Connection: \"close\"", true), ("1.1", "Proxy-Connection: close", true), ("1.0", "A: b", false),
        ("1.0", "Connection: keep-alive", true), ("1.0", "Connection: Keep-Alive, close", false),
        ("1.0", "Connection: x ,\tkeep-alive", true), ("1.0", "Keep-Alive: timeout=5", false),
    ])
    func versionAndConnectionDetermineReuse(version: String, field: String, isReusable: Bool) {
        let result = parse("HTTP/\(version) 200 OK\r\n\(field)\r\nContent-Length: 2\r\n\r\nok")
        #expect(result.end == .complete(isReusable: isReusable))
    }
}
