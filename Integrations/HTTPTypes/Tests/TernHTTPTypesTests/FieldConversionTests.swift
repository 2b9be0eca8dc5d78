import HTTPTypes
import Tern
import TernHTTPTypes
import Testing

@Suite("Header fields of swift-http-types")
struct FieldConversionTests {
    private static func name(_ text: String) throws -> HTTPField.Name { try #require(HTTPField.Name(text)) }

    @Test func orderAndRepeatedFieldsAreKept() throws {
        let headers: Headers = [
            "Set-Cookie": "a=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT", "Link": "</a>; rel=next", "set-cookie": "b=2",
            "X-Empty": "",
        ]
        let fields = try HTTPFields(headers)
        #expect(fields.map(\.name.rawName) == ["Set-Cookie", "Link", "set-cookie", "X-Empty"])
        #expect(fields[values: .setCookie] == ["a=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT", "b=2"])
        let back = try Headers(fields)
        #expect(back.map(\.name) == headers.map(\.name) && back.map(\.value) == headers.map(\.value))
    }

    @Test(arguments: [
        ("Authorization", true), ("cookie", true), ("Set-Cookie", true), ("X-API-Key", true), ("Accept", false),
        ("WWW-Authenticate", false), ("X-RateLimit-Remaining-Tokens", false),
    ])
    func secretFieldsAreNeverIndexed(name: String, isSecret: Bool) throws {
        let field = try HTTPField(Headers.Field(name: name, value: "v"))
        #expect(field.indexingStrategy == (isSecret ? .disallow : .automatic))
    }

    @Test(arguments: ["", "a b", "Näme", "X\r\nY", "X:", ":authority", "\0"])
    func aNameThatIsNoTokenIsAnError(name: String) {
        let error = #expect(throws: ConversionError.self) { try HTTPFields([name: "v"]) }
        #expect(error?.reason.contains("is not a token") == true)
        #expect(error.map { $0.reason.utf8.allSatisfy { $0 >= 0x20 } } == true)
    }

    @Test(arguments: ["a\r\nX-Other: b", "a\nb", "a\rb", "a\0b", "\u{7F}", "a\u{1B}[31m"])
    func aValueWithAControlCharacterIsAnErrorThatDoesNotQuoteIt(value: String) {
        let error = #expect(throws: ConversionError.self) { try HTTPFields(["X-Name": value]) }
        #expect(error?.reason == "the value of the header X-Name contains a control character (RFC 9110 §5.5)")
    }

    @Test(arguments: [("\t a \t", "a"), ("a\tb", "a\tb"), ("grüße 🐦", "grüße 🐦"), (" \t ", "")])
    func valuesLoseOnlyTheWhitespaceAround(value: String, expected: String) throws {
        #expect(try HTTPFields(["X-Name": value]).map(\.value) == [expected])
    }

    @Test func aValueThatIsNotUTF8IsAnError() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: try Self.name("X-Name"), value: [0x66, 0xFC, 0x72]))
        let error = #expect(throws: ConversionError.self) { try Headers(fields) }
        #expect(error?.reason == "the value of the header X-Name is not UTF-8")
    }

    @Test func theReplacementCharacterIsUTF8() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: try Self.name("X-Name"), value: "a\u{FFFD}"))
        #expect(try Headers(fields)["X-Name"] == "a\u{FFFD}")
    }

    @Test func splitCookiesBecomeOneField() throws {
        var fields = HTTPFields()
        fields[.accept] = "*/*"
        // swift-http-types splits it, as HTTP/2 may.
        fields[.cookie] = "a=1; b=2; c=3"
        fields[.userAgent] = "x"
        #expect(fields.count == 5)
        let headers = try Headers(fields)
        #expect(headers.map(\.value) == ["*/*", "a=1; b=2; c=3", "x"])
    }

    @Test func moreFieldsThanSwiftHTTPTypesHoldsAreAnError() {
        var headers = Headers()
        for _ in 0..<65_535 { headers.append(name: "a", value: "") }
        #expect(throws: ConversionError.self) { try HTTPFields(headers) }
    }
}
