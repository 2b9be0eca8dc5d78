import Tern
import Testing

@testable import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks that a recording keeps the names and places of secrets, and never their values.
@Suite struct RecordingRedactionTests {
    private static let secret = "s3cret"

    private func redacted(
        _ body: String, type: String = "application/json", by redaction: Recording.Redaction = .secrets
    ) -> String {
        var exchange = Recording.Exchange(
            request: Recording.Sent(
                method: "POST", url: "https://h/", headers: ["Content-Type: \(type)"], body: .text(body)),
            response: Recording.Received(
                status: 200, headers: ["Content-Type: \(type)", "Content-Length: \(body.utf8.count)"],
                body: .text(body)))
        redaction.change(&exchange)
        #expect(exchange.request.body == exchange.response?.body)
        let text = String(decoding: exchange.request.body?.data ?? Data(), as: UTF8.self)
        #expect(exchange.response?.headers.last == "Content-Length: \(text.utf8.count)")
        return text
    }

    @Test(arguments: [
        "password", "token", "secret", "access_token", "refresh_token", "api_key", "client_secret", "id_token",
        "accessToken", "API-KEY", "new_password", "apiToken", "jwt", "sessionId", "otp", "pass\\u0077ord",
    ])
    func valuesOfSecretKeysAreHidden(key: String) {
        #expect(
            redacted(#"{"a": "b", "\#(key)" : "s3cret\"x", "c": 1}"#)
                == #"{"a": "b", "\#(key)" : "<redacted>", "c": 1}"#)
        #expect(redacted(#"[{"\#(key)":-12.5e3}]"#) == #"[{"\#(key)":0}]"#)
        #expect(redacted(#"{"\#(key)":null,"x":true}"#) == #"{"\#(key)":null,"x":true}"#)
        #expect(
            redacted(#"{"\#(key)": {"a": ["s3cret", 7, {"b": "s3cret"}]}, "c": "d"}"#)
                == #"{"\#(key)": {"a": ["<redacted>", 0, {"b": "<redacted>"}]}, "c": "d"}"#)
    }

    @Test(arguments: [
        #"{"author": "Ada", "code": 404, "key": "k", "token_type": "Bearer", "total_tokens": 5, "keywords": ["a"]}"#,
        #"{"text": "the password is: none", "a": "\\", "b": []}"#, "plain text with \"quotes", "", "[1, 2",
    ])
    func otherBodiesAreUnchanged(body: String) {
        #expect(redacted(body) == body)
    }

    @Test(arguments: [
        (#"{"token": "s3cret"#, #"{"token": "<redacted>""#),
        (#"data: {"token":"s3cret"}"#, #"data: {"token":"<redacted>"}"#),
        ("{\"token\":\"s3cret\"}\n{\"token\":\"s3cret\"}", "{\"token\":\"<redacted>\"}\n{\"token\":\"<redacted>\"}"),
        (#"{"token": ["s3cret", "s3cr"#, #"{"token": ["<redacted>", "<redacted>""#), (#"{"token":"#, #"{"token":"#),
        (#"{"token": 12"#, #"{"token": 0"#),
    ])
    func incompleteJSONIsHidden(body: String, shown: String) {
        #expect(redacted(body, type: "text/plain") == shown)
    }

    @Test func formsAreHidden() {
        let type = "application/x-www-form-urlencoded"
        #expect(
            redacted("user=ada&password=s3cret&%74oken=s3cret&code=s3cret&a=b", type: type)
                == "user=ada&password=redacted&%74oken=redacted&code=redacted&a=b")
        let form = [
            "--x", "Content-Disposition: form-data; name=\"password\"", "", "s3cret", "--x",
            "Content-Disposition: form-data; name=\"a\"", "", "b", "--x",
            "Content-Disposition: form-data; name=\"j\"", "", #"{"token":"s3cret"}"#, "--x--", "",
        ].joined(separator: "\r\n")
        #expect(
            redacted(form, type: "multipart/form-data; boundary=x")
                == form.replacing("s3cret", with: "<redacted>"))
    }

    @Test func headersAndURLsAreHidden() {
        var exchange = Recording.Exchange(
            request: Recording.Sent(
                method: "GET", url: "https://h/a?access_token=s3cret&page=2&sig=s3cret",
                headers: ["Referer: https://h/?token=s3cret", "X-Functions-Key: s3cret", "Accept: a/b"]),
            response: Recording.Received(
                status: 302,
                headers: [
                    "Location: https://ada:s3cret@h/cb?code=s3cret&page=2#access_token=s3cret&x=y",
                    "Content-Location: /x?secret=s3cret", "Link: </n?token=s3cret>; rel=next, </p?page=1>; rel=prev",
                    "Refresh: 5; url=/n?token=s3cret", "Set-Cookie: sid=s3cret; Path=/", "Idempotency-Key: 1",
                ]))
        Recording.Redaction.secrets.change(&exchange)
        #expect(!"\(exchange)".contains("s3cret"))
        #expect(exchange.request.url == "https://h/a?access_token=redacted&page=2&sig=redacted")
        #expect(
            exchange.response?.headers.first
                == "Location: https://redacted@h/cb?code=redacted&page=2#access_token=redacted&x=y")
        #expect(
            exchange.response?.headers.contains("Link: </n?token=redacted>; rel=next, </p?page=1>; rel=prev") == true)
        #expect(exchange.response?.headers.contains("Set-Cookie: sid=<redacted>; Path=/") == true)
        #expect(exchange.response?.headers.contains("Idempotency-Key: 1") == true)
    }

    /// A separator followed by a combining mark is another character.
    @Test(arguments: [
        "Location: /?token=\u{301}s3cret", "Location: /?\u{301}token=\u{301}s3cret#\u{301}token=s3cret",
        "Location: //\u{301}ada:s3cret@\u{301}h/\u{301}?a=1&\u{301}token=s3cret",
        "Refresh: 5; url=\u{301}/?token=s3cret", "Link: <\u{301}/?token=s3cret>\u{301}; rel=next",
        "Set-Cookie: sid=\u{301}s3cret;\u{301} Path=/", "X-Token: \u{301}s3cret",
    ])
    func accentsBehindSeparatorsShowNoSecret(line: String) {
        var exchange = Recording.Exchange(
            request: Recording.Sent(method: "GET", url: "https://h/", headers: [line]),
            response: Recording.Received(status: 302, headers: [line]))
        Recording.Redaction.secrets.change(&exchange)
        #expect(!"\(exchange)".contains("s3cret") && exchange.response?.headers.first?.contains("s3cret") == false)
    }

    @Test func callerCanAddNamesAndDisableRedaction() {
        let body = #"{"card_number":"s3cret","password":"s3cret"}"#
        #expect(redacted(body, by: .secrets(naming: ["cardNumber"])) == body.replacing("s3cret", with: "<redacted>"))
        #expect(redacted(body, by: .secrets(inBodies: false)) == body)
        #expect(redacted(body, by: .none) == body)
    }

    /// JSON of any shape: every secret is removed, and the rest is unchanged.
    @Test(arguments: 0..<200) func secretsAreRemovedFromAnyJSON(seed: UInt64) throws {
        var random = Seeded(state: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        let (text, shown) = json(&random, depth: 4, isSecret: false)
        let result = redacted(text)
        #expect(result == shown, "\(text)")
        #expect(redacted(result) == result)
    }

    private func json(_ random: inout Seeded, depth: Int, isSecret: Bool) -> (text: String, shown: String) {
        let space = ["", " ", "\n  "][Int.random(in: 0..<3, using: &random)]
        switch Int.random(in: 0..<(depth > 0 ? 5 : 3), using: &random) {
        case 0: return isSecret ? ("7", "0") : ("7", "7")
        case 1: return ("true", "true")
        case 2: return isSecret ? (#""s3cret\"{\\""#, #""<redacted>""#) : (#""a\"}: [\\""#, #""a\"}: [\\""#)
        case 3:
            let items = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                json(&random, depth: depth - 1, isSecret: isSecret)
            }
            let join = { (parts: [String]) in "[" + parts.joined(separator: ",\(space)") + "\(space)]" }
            return (join(items.map(\.text)), join(items.map(\.shown)))
        default:
            let members = (0..<Int.random(in: 0..<4, using: &random)).map { _ -> (String, String) in
                let hides = Bool.random(using: &random)
                let key = hides ? "api_key" : "name"
                let value = json(&random, depth: depth - 1, isSecret: isSecret || hides)
                return ("\"\(key)\"\(space):\(space)\(value.text)", "\"\(key)\"\(space):\(space)\(value.shown)")
            }
            let join = { (parts: [String]) in "{\(space)" + parts.joined(separator: ",") + "}" }
            return (join(members.map(\.0)), join(members.map(\.1)))
        }
    }

    private struct Seeded: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }
}
