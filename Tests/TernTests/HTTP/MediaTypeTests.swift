import Tern
import Testing

@Suite("MediaType")
struct MediaTypeTests {
    @Test func partsAreAvailable() throws {
        let type = try #require(MediaType("Text/HTML; Charset=\"UTF-8\" ; boundary=a=b;;flag; q=\"x;\\\"y\""))
        #expect((type.type, type.subtype, type.essence) == ("text", "html", "text/html"))
        #expect(type.parameters.map(\.name) == ["charset", "boundary", "q"])
        #expect(type.parameters.map(\.value) == ["UTF-8", "a=b", "x;\"y"])
        #expect(type.charset == "UTF-8")
    }

    @Test(
        arguments: [
            ("text/plain", nil), ("text/plain; charset=utf-8", "utf-8"), ("text/plain;charset=UTF-8", "UTF-8"),
            ("text/plain; CHARSET = latin1", "latin1"), ("text/plain; charset=\"\"", nil),
            ("text/plain; charset=", nil),
            ("text/plain; charset='utf-8'", "utf-8"), ("text/plain; a=b; charset=x; charset=y", "x"),
            ("text/plain; charset=\"utf-8", "utf-8"), ("text/plain; charset", nil),
            ("text/plain; x=\"; charset=a\"; charset=b", "b"),
        ] as [(String, String?)])
    func charsetIsFound(text: String, charset: String?) throws {
        #expect(try #require(MediaType(text)).charset == charset)
    }

    @Test(arguments: [
        ("application/json", true), ("text/json", true), ("APPLICATION/JSON; charset=utf-8", true),
        ("application/vnd.api+json", true), ("application/problem+json;v=1", true), ("image/json", false),
        ("application/jsonp", false), ("application/json-seq", false), ("text/plain", false),
        ("application/xml", false),
    ])
    func jsonIsRecognised(text: String, isJSON: Bool) throws {
        #expect(try #require(MediaType(text)).isJSON == isJSON)
    }

    @Test(arguments: [
        "", "text", "text/", "/plain", "/", "a/b/c", "te xt/plain", ";charset=x", "text/pl\u{E9}in", "a,b/c",
        "text/\u{301}plain", "text\u{301}/plain", "//", "text//plain",
    ])
    func invalidMediaTypeIsRefused(text: String) {
        #expect(MediaType(text) == nil)
    }

    /// The type of a head whose fields nobody has asked for is that of the parsed fields.
    @Test(
        arguments: [
            ("Content-Type: text/plain\r\n", "text/plain"),
            ("content-type:application/json;a=b\r\n", "application/json"),
            ("A: b\r\nCONTENT-TYPE: \t a/b \r\nContent-Type: c/d\r\n", "a/b"),
            ("Content-Type:\r\n a/b;\r\n\tcharset=x\r\n", "a/b"), ("Content-Type : a/b\r\n", "a/b"),
            ("X-Content-Type: a/b\r\nContent-Types: a/b\r\nContent-Typ: a/b\r\n", nil), ("", nil),
            ("Content-Type: \r\nContent-Type: a/b\r\n", nil),
            ("A: Content-Type: a/b\r\n Content-Type: c/d\r\n", nil),
            ("Content-Type: a/\u{E9}\r\n", nil), ("Content-Type: a/b\n", "a/b"),
        ] as [(String, String?)])
    func typeOfAHead(fields: String, essence: String?) throws {
        let target = try Target(absolute: "https://example.com/")
        let head = ResponseHead(
            status: 200, version: .http11, target: target, rawHead: Array("HTTP/1.1 200 OK\r\n\(fields)\r\n".utf8))
        #expect(head.mediaType?.essence == essence)
        #expect(head.headers["Content-Type"].flatMap { MediaType($0) } == head.mediaType)
        #expect(head.mediaType?.essence == essence)
    }
}
