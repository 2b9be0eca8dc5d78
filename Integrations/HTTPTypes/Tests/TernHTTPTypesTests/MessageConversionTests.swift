import HTTPTypes
import Tern
import TernHTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Requests of swift-http-types")
struct MessageConversionTests {
    private static func request(
        _ method: HTTPRequest.Method = .get, scheme: String? = "https", authority: String? = "example.com",
        path: String? = "/"
    ) -> HTTPRequest {
        HTTPRequest(method: method, scheme: scheme, authority: authority, path: path)
    }

    @Test(arguments: [
        ("https://example.com/", "example.com", "/"),
        ("http://127.0.0.1:8080/a/b?c=d&e", "127.0.0.1:8080", "/a/b?c=d&e"),
        ("https://[::1]:8443/x?", "[::1]:8443", "/x?"),
        ("https://example.com/%2F//%20?q=%26", "example.com", "/%2F//%20?q=%26"),
        ("https://example.com//other.example/x", "example.com", "//other.example/x"),
    ])
    func aRequestSurvivesTheWayThereAndBack(url: String, authority: String, path: String) throws {
        let original = try Request(.put, url, headers: ["X-B": "1", "X-A": "2", "X-B": "3"])
        let there = try HTTPRequest(original)
        #expect(there.method == .put && there.authority == authority && there.path == path)
        #expect(there.scheme == String(url.prefix { $0 != ":" }))
        #expect(there.headerFields.map(\.value) == ["1", "2", "3"])
        let back = try Request(there)
        #expect(back.urlString == original.urlString && back.method == .put)
        #expect(back.headers.map(\.name) == ["X-B", "X-A", "X-B"])
    }

    @Test func userInformationAndFragmentAreNotInTheRequest() throws {
        let request = try HTTPRequest(Request(.get, "https://ada:s3cret@example.com/x#part"))
        #expect(request.authority == "example.com" && request.path == "/x")
    }

    @Test func anyMethodThatIsATokenIsKept() throws {
        let method = try #require(HTTPRequest.Method("PURGE"))
        #expect(try Request(Self.request(method)).method == "PURGE")
        #expect(try HTTPRequest(Request("PURGE", "https://example.com/")).method == method)
    }

    @Test(arguments: ["", "GE T", "GET\r\nX: y", "G\u{E9}T"])
    func aMethodThatIsNoTokenIsAnError(method: String) {
        let error = #expect(throws: ConversionError.self) {
            try HTTPRequest(Request(Request.Method(method), "https://example.com/"))
        }
        #expect(error?.reason.contains("is not a token (RFC 9110 §9.1)") == true)
    }

    @Test(
        arguments: [
            (nil, "example.com", "/", "has no scheme"), ("https", nil, "/", "has no authority"),
            (nil, nil, "/", "no scheme and no authority"), ("https", "example.com", nil, "has no path"),
            ("https", "example.com", "", "has no path"), ("https", "example.com", "x", "does not begin with"),
            ("https", "example.com", "*", "does not begin with"),
            ("https", "example.com", "http://other.example/", "does not begin with"),
            ("https", "example.com", "/a#b", "%23"), ("ftp", "example.com", "/", "only http and https"),
            ("https", "", "/", "is empty"), ("https", "ada:s3cret@example.com", "/", "user information"),
            ("https", "example.com/x", "/", "not a host"), ("https", "example.com?x=y", "/", "not a host"),
            ("https", "example.com#", "/", "not a host"), ("https", "other.example\\x", "/", "not a host"),
            ("https", "a b", "/", "not a host"), ("https", "example.com:99999", "/", "port"),
            ("https", "[::1", "/", ""),
        ] as [(String?, String?, String?, String)])
    func aRequestThatCannotBeSentIsAnError(scheme: String?, authority: String?, path: String?, reason: String) {
        let error = #expect(throws: ConversionError.self) {
            try Request(Self.request(scheme: scheme, authority: authority, path: path))
        }
        #expect(error?.reason.contains(reason) == true && error?.reason.contains("s3cret") == false)
    }

    @Test func connectIsAnError() {
        let error = #expect(throws: ConversionError.self) { try Request(Self.request(.connect)) }
        #expect(error?.reason.contains("CONNECT") == true)
        var extended = Self.request()
        extended.extendedConnectProtocol = "websocket"
        #expect(throws: ConversionError.self) { try Request(extended) }
    }

    @Test func theHostFieldIsTheAuthority() throws {
        let host = try #require(HTTPField.Name("host"))
        var request = Self.request(authority: "Example.com:8443")
        request.headerFields[host] = "example.com:8443"
        let equal = try Request(request)
        #expect(equal.urlString == "https://example.com:8443/" && !equal.headers.contains("Host"))
        request.authority = nil
        #expect(try Request(request).urlString == "https://example.com:8443/")
        request.authority = "other.example"
        let error = #expect(throws: ConversionError.self) { try Request(request) }
        #expect(error?.reason.contains("different servers") == true)
        request.authority = nil
        request.headerFields.append(HTTPField(name: host, value: "other.example"))
        #expect(throws: ConversionError.self) { try Request(request) }
    }

    @Test func aHostFieldOfTernMustNameTheServerOfTheURL() throws {
        let equal = try HTTPRequest(Request(.get, "https://example.com/", headers: ["Host": "EXAMPLE.com"]))
        #expect(equal.headerFields.isEmpty)
        #expect(throws: ConversionError.self) {
            try HTTPRequest(Request(.get, "https://127.0.0.1/", headers: ["Host": "example.com"]))
        }
    }

    @Test func theHeadOfAnInterceptorMustHaveAStatusOfThreeDigits() throws {
        let request = try Request(.get, "https://example.com/")
        #expect(try HTTPResponse(Reply(to: request, status: 299).head).status.code == 299)
        for status in [-1, 0, 99, 1_000] {
            #expect(throws: ConversionError.self) { try HTTPResponse(Reply(to: request, status: status).head) }
        }
    }
}
