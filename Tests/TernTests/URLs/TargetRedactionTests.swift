import Tern
import Testing

@Suite("Target redaction")
struct TargetRedactionTests {
    @Test(arguments: [
        ("https://h/a/b", "https://h/a/b"),
        ("https://user:s3cret@h/a", "https://<redacted>@h/a"),
        ("https://user:s3cret@h:99999", "https://<redacted>@h:99999"),
        ("//user:s3cret@h/a", "//<redacted>@h/a"),
        ("user:s3cret@h/a", "<redacted>@h/a"),
        ("https://h/?token=s3cret&b&c=", "https://h/?token=<redacted>&b&c=<redacted>"),
        ("https://h?a=s3cret#s3cret", "https://h?a=<redacted>"),
        ("https://h/#access_token=s3cret", "https://h/"),
        ("https://h/#s3cret?s3cret", "https://h/"),
        ("users/@me", "users/@me"),
        ("https://h/users/@me", "https://h/users/@me"),
        ("https://h:8080/x", "https://h:8080/x"),
        ("https://[::1]/x", "https://[::1]/x"),
        ("https://user:s3cret/more@h/x", "https://user:<redacted>"),
        ("http:/user:s3cret@h/a", "http:/<redacted>@h/a"),
        ("http:///user:s3cret/more@h/a", "http:///<redacted>@h/a"),
        ("http://http://user:s3cret@h/a", "http://http://<redacted>@h/a"),
        ("/user:s3cret@h/a", "/<redacted>@h/a"),
        ("https://h/a:b/c", "https://h/a:b/c"),
        ("https://u:s3cret@h/b/a:s3cret@x", "https://<redacted>@h/b/<redacted>@x"),
        ("https://h/\r\nX", "https://h/\\u{D}\\u{A}X"),
        ("https://h/?token=\u{301}s3cret&\u{301}a=\u{20DD}s3cret", "https://h/?token=<redacted>&\u{301}a=<redacted>"),
        ("", ""),
    ])
    func secretsAreRemoved(input: String, expected: String) {
        #expect(Target.redact(input) == expected)
    }

    @Test(arguments: [
        "https://u:s3cret@h/?a=s3cret#s3cret", "ftp://u:s3cret@h/", "http://u:s3cret@/", "http://u:s3cret@h:x/",
        "http://u:s3cret/w@h/", "http://u:s3cret@h/\n?s=s3cret", "u:s3cret@h", "http://[?s3cret=s3cret",
        "http://u:s3cret@[::1", "http:u:s3cret@h/", "http:/u:s3cret@h", "http:///u:s3cret@h", "http:////u:s3cret@h",
        "/u:s3cret@h", "http://u:s3cret%40h", "http://http://u:s3cret@h",
    ])
    func problemsAndDescriptionsKeepSecrets(input: String) {
        do throws(Target.Problem) {
            let target = try Target(absolute: input)
            for text in ["\(target)", String(reflecting: target)] { #expect(!text.contains("s3cret"), "\(text)") }
        } catch {
            #expect(!error.reason.replacing("s3cret=<redacted>", with: "").contains("s3cret"), "\(error)")
        }
    }

    @Test func longTextsAreCut() {
        let text = Target.redact("https://h/" + String(repeating: "x", count: 10_000))
        #expect(text.count == 401)
        #expect(text.hasSuffix("…"))
    }
}
