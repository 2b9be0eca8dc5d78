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
    ])
    func invalidMediaTypeIsRefused(text: String) {
        #expect(MediaType(text) == nil)
    }
}
