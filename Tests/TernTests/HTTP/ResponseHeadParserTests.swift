import Tern
import Testing

@Suite("ResponseHeadParser")
struct ResponseHeadParserTests {
    private func parse(_ text: String) throws -> ResponseHeadParser.Head {
        try ResponseHeadParser.parse(Array(text.utf8))
    }

    @Test(arguments: ["\r\n", "\n"])
    func headsAreParsedWithEitherLineEnd(end: String) throws {
        let text = ["HTTP/1.1 404 Not Found", "Server: x", "Set-Cookie: a=1; b", "set-cookie:b=2", "Empty:", "", ""]
        let head = try parse(text.joined(separator: end))
        #expect((head.version, head.status, head.reason) == ("HTTP/1.1", 404, "Not Found"))
        #expect(head.headers.map(\.name) == ["Server", "Set-Cookie", "set-cookie", "Empty"])
        #expect(head.headers.map(\.value) == ["x", "a=1; b", "b=2", ""])
    }

    @Test(arguments: [
        ("HTTP/2 200 \r\n\r\n", "HTTP/2", 200, ""), ("HTTP/2 204\r\n\r\n", "HTTP/2", 204, ""),
        ("HTTP/1.0 301 Moved Permanently\r\n\r\n", "HTTP/1.0", 301, "Moved Permanently"),
        ("HTTP/1.1 200 OK", "HTTP/1.1", 200, "OK"), ("HTTP/1.1 200 OK\r", "HTTP/1.1", 200, "OK"),
        ("HTTP/3 999  \t odd \r\n", "HTTP/3", 999, "odd"), ("HTTP/1.1 200 Très bien\r\n", "HTTP/1.1", 200, "Très bien"),
        ("HTTP/1.1  100 Continue\r\n\r\n", "HTTP/1.1", 100, "Continue"),
    ])
    func statusLinesAreParsed(text: String, version: String, status: Int, reason: String) throws {
        let head = try parse(text)
        #expect((head.version, head.status, head.reason) == (version, status, reason))
        #expect(head.headers.isEmpty)
    }

    @Test(arguments: [
        "", "\r\n", "HTTP", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2000 OK", "HTTP/1.1 abc OK",
        "HTTP/1.1 20x OK",
        "HTTP/1.1 200x OK", "HTTP/1.1 -20 OK", "HTTP/1.1 099 x", "ICY 200 OK", "http/1.1 200 OK", "<html>",
        "\u{1}\u{2}\r\nA: b\r\n", "HTTP/1.1 ٢٠٠ OK",
    ])
    func invalidBytesAreNotAHead(text: String) throws {
        let problem = #expect(throws: ResponseHeadParser.Problem.self) { try parse(text) }
        #expect(try !#require(problem).reason.utf8.contains { $0 < 0x20 })
    }

    @Test func whitespaceAroundNamesAndValuesIsRemoved() throws {
        let head = try parse("HTTP/1.1 200 OK\r\nA: \t x y \t\r\nB :z\r\nC:\t\r\n\r\n")
        #expect(head.headers == ["A": "x y", "B": "z", "C": ""])
    }

    /// The host is decoded as UTF-8 even if the bytes as a whole are not UTF-8, and no other bytes change it.
    @Test(arguments: [
        ("http://\\xC3\\xAA.test/?\\xFF", "http://\u{EA}.test/?%FF"),
        ("http://\\xC3\\xAA.test/\\xC3\\xA4#\\xE4", "http://\u{EA}.test/%C3%A4#%E4"),
        ("HTTPS://u@\\xC3\\xAA.test:1?\\xFF", "HTTPS://u@\u{EA}.test:1?%FF"),
        ("//\\xC3\\xAA.test#\\xFF", "//\u{EA}.test#%FF"), ("/a//\\xC3\\xAA\\xFF", "/a//%C3%AA%FF"),
        ("\\xFF", "%FF"), ("?q=\\xE4", "?q=%E4"), ("http:/\\xFF", "http:/%FF"), ("h\\xFF://a", "h%FF://a"),
        ("http://\\xFF.test/", "http://\u{FFFD}.test/"), ("http://\\xC3\\xAA\\xFF/", "http://\u{EA}\u{FFFD}/"),
        ("http://[fe80::1\\xFF]/", "http://[fe80::1\u{FFFD}]/"),
        ("http://\\xC3\\xAA.test/\\xC3\\xAA", "http://\u{EA}.test/\u{EA}"),
    ])
    func locationKeepsItsHost(escaped: String, expected: String) throws {
        var bytes = Array("HTTP/1.1 302 Found\r\nLOCATION: ".utf8)
        let parts = escaped.split(separator: "\\x", omittingEmptySubsequences: false)
        bytes += parts[0].utf8
        for part in parts.dropFirst() {
            bytes.append(try #require(UInt8(part.prefix(2), radix: 16)))
            bytes += part.dropFirst(2).utf8
        }
        bytes += "\r\n\r\n".utf8
        #expect(try ResponseHeadParser.parse(bytes).headers["Location"] == expected)
        #expect(ResponseHeadParser.value(of: "location", in: bytes) == expected)
    }

    @Test func foldedLinesAreJoinedByOneSpace() throws {
        let text = "HTTP/1.1 200 OK\r\nA: one\r\n two\r\n\t three \r\nB: x\r\nC:\r\n late\r\n\r\n"
        #expect(try parse(text).headers == ["A": "one two three", "B": "x", "C": "late"])
        #expect(ResponseHeadParser.value(of: "A", in: Array(text.utf8)) == "one two three")
        #expect(ResponseHeadParser.value(of: "C", in: Array(text.utf8)) == "late")
    }

    @Test func linesWithoutAColonOrANameAreIgnored() throws {
        #expect(try parse("HTTP/1.1 200 OK\r\nnonsense\r\n: x\r\nA: b:c\r\n\r\n").headers == ["A": "b:c"])
    }

    @Test func bytesAfterTheEmptyLineAreNotParsed() throws {
        let bytes = Array("HTTP/1.1 200 OK\r\nA: b\r\n\r\nC: d\r\n".utf8)
        #expect(try ResponseHeadParser.parse(bytes).headers == ["A": "b"])
        #expect(ResponseHeadParser.value(of: "C", in: bytes) == nil)
    }

    @Test func bytesThatAreNotUTF8AreLatin1() throws {
        var bytes = Array("HTTP/1.1 200 OK\r\nA: caf".utf8)
        bytes += [0xE9, 0x0D, 0x0A] + Array("B: café\r\n\r\n".utf8)
        let head = try ResponseHeadParser.parse(bytes)
        #expect(head.headers["A"] == "café")
        #expect(head.headers["B"] == "café")
        #expect(ResponseHeadParser.value(of: "a", in: bytes) == "café")
    }

    @Test func strayCarriageReturnsAndNULsBecomeSpaces() throws {
        #expect(try parse("HTTP/1.1 200 OK\r\nA: x\rB: y\0z\r\n\r\n").headers == ["A": "x B: y z"])
    }

    @Test func singleValueIsFound() {
        let bytes = Array(
            "HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Type-X: b\r\nContent: c\r\ncontent-type: d\r\n\r\n".utf8)
        #expect(ResponseHeadParser.value(of: "CONTENT-TYPE", in: bytes) == "a")
        #expect(ResponseHeadParser.value(of: "content", in: bytes) == "c")
        #expect(ResponseHeadParser.value(of: "conten", in: bytes) == nil)
        #expect(ResponseHeadParser.value(of: "", in: bytes) == nil)
        #expect(ResponseHeadParser.value(of: "A", in: []) == nil)
    }

    @Test func trailersHaveNoStatusLine() {
        #expect(ResponseHeadParser.fields(Array("A: b\r\nC: d\r\n".utf8)) == ["A": "b", "C": "d"])
        #expect(ResponseHeadParser.fields([]).isEmpty)
    }

    @Test func prefixesAndDamagedHeadsDoNotCrash() {
        let whole = Array("HTTP/1.1 200 OK\r\nA: one\r\n two\r\nContent-Length: 5\r\n\r\n".utf8)
        for length in 0...whole.count {
            let prefix = Array(whole[..<length])
            let head = try? ResponseHeadParser.parse(prefix)  // The outcome does not matter.
            #expect((head != nil) == (length >= 12))
            _ = ResponseHeadParser.value(of: "content-length", in: prefix)
        }
        for position in whole.indices {
            for byte in [0x00, 0x0A, 0x0D, 0x20, 0x3A, 0xFF] as [UInt8] {
                var damaged = whole
                damaged[position] = byte
                let head = try? ResponseHeadParser.parse(damaged)  // The outcome does not matter.
                #expect(head?.headers.allSatisfy { !$0.value.utf8.contains(0x0A) } ?? true)
                for name in ["A", "Content-Length"] where position > 16 && byte != 0x20 && byte != 0x3A {
                    #expect(ResponseHeadParser.value(of: name, in: damaged) == head?.headers[name])
                }
            }
        }
    }

    @Test func rawMemoryIsParsedInPlace() throws {
        let bytes = Array("HTTP/1.1 200 OK\r\nA: b\r\n\r\n".utf8)
        let (head, value) = try unsafe bytes.withUnsafeBytes { raw in
            (try unsafe ResponseHeadParser.parse(raw), unsafe ResponseHeadParser.value(of: "a", in: raw))
        }
        #expect(head.headers == ["A": "b"])
        #expect(value == "b")
    }
}
