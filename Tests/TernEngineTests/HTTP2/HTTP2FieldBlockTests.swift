import Testing

@testable import TernEngine

@Suite struct HTTP2FieldBlockTests {
    private func request(_ fields: String = "") -> HTTP2Request {
        HTTP2Request(
            method: "GET", scheme: "https", authority: "example.com", path: "/a?b", fields: Array(fields.utf8))
    }

    private func lines(_ block: HTTP2FieldBlock) -> [String] {
        block.fields.map { field in
            String(decoding: block.bytes[field.name], as: UTF8.self) + ": "
                + String(decoding: block.bytes[field.value], as: UTF8.self)
        }
    }

    /// The lines after the pseudo-header fields.
    private func regularLines(_ fields: String, length: Int64? = nil) -> [String] {
        var block = HTTP2FieldBlock()
        var request = request(fields)
        request.contentLength = length
        #expect(block.take(request) == nil)
        return Array(lines(block).dropFirst(4))
    }

    @Test func pseudoFieldsComeFirst() {
        var block = HTTP2FieldBlock()
        #expect(block.take(request("Accept: */*\r\n")) == nil)
        #expect(
            lines(block) == [
                ":method: GET", ":scheme: https", ":authority: example.com", ":path: /a?b", "accept: */*",
            ])
    }

    @Test func connectHasNoSchemeAndNoPath() {
        var block = HTTP2FieldBlock()
        var request = request()
        request.method = "CONNECT"
        request.path = ""
        #expect(block.take(request) == nil)
        #expect(lines(block) == [":method: CONNECT", ":authority: example.com"])
    }

    @Test(arguments: [
        ("X-Name:  a b \t\r\n", ["x-name: a b"]),
        ("X-Empty:\r\nY:\t\r\n", ["x-empty: ", "y: "]),
        ("Connection: close\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nUpgrade: y\r\n", []),
        ("Transfer-Encoding: chunked\r\nHTTP2-Settings: AA\r\nA: b\r\n", ["a: b"]),
        ("TE: trailers\r\n", ["te: trailers"]),
        ("TE: gzip\r\nTE: trailers, gzip\r\n", []),
        ("Content-Length: 5\r\n", ["content-length: 5"]),
    ])
    func fieldsOfTheConnectionAreLeftOut(_ fields: String, expected: [String]) {
        #expect(regularLines(fields) == expected)
    }

    @Test func theStatedLengthReplacesTheField() {
        #expect(regularLines("Content-Length: 9\r\nA: b\r\n", length: 5) == ["a: b", "content-length: 5"])
    }

    @Test func anExpectationIsSentOnlyWithABody() {
        #expect(regularLines("Expect: 100-continue\r\nA: b\r\n") == ["a: b"])
        var block = HTTP2FieldBlock()
        var request = request("Expect: 100-continue\r\n")
        request.hasBody = true
        #expect(block.take(request) == nil)
        #expect(lines(block).last == "expect: 100-continue")
    }

    @Test func aHostFieldBecomesTheAuthority() {
        var block = HTTP2FieldBlock()
        #expect(block.take(request("Host: other.example:8443\r\n")) == nil)
        #expect(lines(block)[2...] == [":authority: other.example:8443", ":path: /a?b"])
    }

    @Test func onlyAuthorizationIsSecret() {
        var block = HTTP2FieldBlock()
        #expect(block.take(request("Authorization: Basic x\r\nAccept: y\r\n")) == nil)
        #expect(block.fields.map(\.isSecret) == [false, false, false, false, true, false])
    }

    @Test func aPriorityIsSentUnlessTheCallerHasOne() {
        var request = request()
        request.priority = HTTP2Priority(urgency: 9, isIncremental: true)
        var block = HTTP2FieldBlock()
        #expect(block.take(request) == nil)
        #expect(lines(block).last == "priority: u=7, i")
        request.fields = Array("Priority: u=1\r\n".utf8)
        #expect(block.take(request) == nil)
        #expect(lines(block).last == "priority: u=1")
        #expect(block.fields.count == 5)
    }

    @Test(arguments: [
        "no colon\r\n", ": no name\r\n", "a b: c\r\n", "a : c\r\n", " a: c\r\n", "a: b", "a: b\n", "\r\n",
        "a: b\u{0}\r\n", "a: b\rc\r\n", "a: b\u{7F}\r\n", ":path: /\r\n", "é: b\r\n",
    ])
    func aMalformedLineIsRefused(_ fields: String) {
        var block = HTTP2FieldBlock()
        #expect(block.take(request(fields))?.kind == .invalidRequest)
        #expect(block.takeTrailers(Array(fields.utf8))?.kind == .invalidRequest)
    }

    @Test func malformedPseudoFieldsAreRefused() {
        let changes: [(inout HTTP2Request) -> Void] = [
            { $0.method = "" }, { $0.method = "GE T" }, { $0.method = "G\u{0}" }, { $0.scheme = "" },
            { $0.authority = "" }, { $0.authority = "a b" }, { $0.path = "" }, { $0.path = "/a b" },
            { $0.path = "/\r\nx" }, { $0.path = "/" + String(repeating: "a", count: 1 << 20) },
        ]
        for change in changes {
            var request = request()
            change(&request)
            var block = HTTP2FieldBlock()
            #expect(block.take(request)?.kind == .invalidRequest)
        }
    }

    @Test func aBlockIsUsedAgain() {
        var block = HTTP2FieldBlock()
        #expect(block.take(request("A: b\r\n")) == nil)
        #expect(block.takeTrailers(Array("X-Sum: 1\r\nContent-Length: 3\r\n".utf8)) == nil)
        #expect(lines(block) == ["x-sum: 1"])
    }

    @Test func theCharactersOfTokensAreThoseOfTheRFC() {
        let token = Set("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(HTTP2Syntax.isTokenCharacter(byte) == token.contains(byte))
        }
    }
}
