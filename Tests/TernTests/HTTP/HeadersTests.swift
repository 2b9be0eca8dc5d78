import Tern
import Testing

@Suite("Headers")
struct HeadersTests {
    @Test(arguments: ["Content-Type", "content-type", "CONTENT-TYPE", "cOnTeNt-TyPe"])
    func namesAreComparedWithoutCase(name: String) {
        var headers: Headers = ["Content-Type": "text/plain"]
        #expect(headers[name] == "text/plain")
        #expect(headers.contains(name))
        #expect(headers.values(for: name) == ["text/plain"])
        headers[name] = nil
        #expect(headers.isEmpty)
    }

    @Test func namesAreFoldedAsASCIIAlone() {
        // Letters differ by 0x20; so do these pairs, which are not letters.
        for (a, b) in [("@", "`"), ("[", "{"), ("^", "~"), ("\\", "|"), ("É", "é")] {
            #expect(!Headers.namesMatch("x" + a, "x" + b))
        }
        // The Kelvin sign lowercases to k in Unicode, not in HTTP.
        #expect(!Headers.namesMatch("\u{212A}ey", "key"))
        #expect(Headers.namesMatch("", ""))
        #expect(!Headers.namesMatch("a", "ab"))
    }

    @Test func everyByteFoldsOnlyToItsOwnLetter() {
        for a in UInt8(0)..<128 {
            for b in UInt8(0)..<128 {
                let (left, right) = (Unicode.Scalar(a), Unicode.Scalar(b))
                let expected = left.properties.lowercaseMapping == right.properties.lowercaseMapping
                #expect(Headers.namesMatch(String(left), String(right)) == expected)
            }
        }
    }

    @Test func settingReplacesAllValuesInThePlaceOfTheFirst() {
        var headers: Headers = ["A": "1", "B": "2", "a": "3", "C": "4", "A": "5"]
        headers["a"] = "new"
        #expect(headers.map(\.name) == ["a", "B", "C"])
        #expect(headers.map(\.value) == ["new", "2", "4"])
    }

    @Test func settingAnUnknownNameAppends() {
        var headers: Headers = ["A": "1"]
        headers["B"] = "2"
        #expect(headers.map(\.name) == ["A", "B"])
        headers["C"] = nil
        #expect(headers.count == 2)
    }

    @Test func aNameKeepsItsValuesInOrder() {
        var headers = Headers()
        headers.append(name: "Set-Cookie", value: "a=1")
        headers.append(name: "Vary", value: "Accept")
        headers.append(.init(name: "set-cookie", value: "b=2"))
        #expect(headers.values(for: "SET-COOKIE") == ["a=1", "b=2"])
        #expect(headers["Set-Cookie"] == "a=1")
        headers.remove("set-cookie")
        #expect(headers.map(\.name) == ["Vary"])
    }

    @Test func literalsKeepDuplicatesAndOrder() {
        let headers: Headers = ["Z": "1", "A": "2", "Z": "3"]
        #expect(headers.map(\.value) == ["1", "2", "3"])
        #expect(headers.count == 3)
        #expect(headers[1].name == "A")
    }

    @Test func dictionariesAreTakenInTheOrderOfNames() {
        let headers = Headers(["b": "2", "a": "1", "c": "3"])
        #expect(headers.map(\.name) == ["a", "b", "c"])
        #expect(Headers([Headers.Field(name: "x", value: "y")]) == ["X": "y"])
    }

    @Test func overridingReplacesByNameAndKeepsTheRest() {
        let defaults: Headers = ["Accept": "a", "User-Agent": "tern", "X": "1", "accept": "b"]
        let call: Headers = ["ACCEPT": "c", "Y": "1", "Y": "2", "accept": "d"]
        let result = defaults.overriding(with: call)
        #expect(result.map(\.name) == ["ACCEPT", "accept", "User-Agent", "X", "Y", "Y"])
        #expect(result.map(\.value) == ["c", "d", "tern", "1", "1", "2"])
        #expect(defaults.overriding(with: [:]) == defaults)
        #expect(Headers().overriding(with: call) == call)
    }

    @Test func equalityFollowsValuesOfEachNameAlone() {
        #expect(["A": "1", "B": "2"] as Headers == ["b": "2", "a": "1"])
        #expect(["A": "1", "A": "2"] as Headers != ["A": "2", "A": "1"])
        #expect(["A": "1", "A": "1", "B": "1"] as Headers != ["A": "1", "B": "1", "B": "1"])
        #expect(["A": "1"] as Headers != ["A": "1", "A": "1"])
        #expect(["A": "x"] as Headers != ["A": "X"])
        #expect(Headers() == Headers())
    }

    /// A server distinguishes values whose bytes differ, although their texts are canonically equivalent.
    @Test(arguments: [("\u{212A}", "K"), ("\u{E9}", "e\u{301}"), ("\u{212B}", "A\u{30A}"), ("a\u{37E}", "a;")])
    func valuesAreComparedByTheirBytes(left: String, right: String) {
        #expect(left == right)
        #expect(["X": left] as Headers != ["X": right])
        #expect(["A": "1", "X": left] as Headers != ["X": right, "a": "1"])
        #expect(Set([Headers.Field(name: "X", value: left), Headers.Field(name: "X", value: right)]).count == 2)
        #expect(["X": left] as Headers == ["x": left])
    }

    @Test func equalHeadersHashEqually() {
        let left: Headers = ["A": "1", "B": "2", "A": "3"]
        let right: Headers = ["b": "2", "a": "1", "a": "3"]
        #expect(left == right)
        #expect(left.hashValue == right.hashValue)
        #expect(Set([left, right]).count == 1)
        #expect(Headers.Field(name: "X", value: "v") == Headers.Field(name: "x", value: "v"))
        #expect(Headers.Field(name: "X", value: "v").hashValue == Headers.Field(name: "x", value: "v").hashValue)
    }

    @Test(arguments: [
        "Authorization", "proxy-authorization", "Cookie", "Set-Cookie", "X-API-Key", "x-api-key", "ApiKey",
        "X-Auth-Token", "X-Amz-Security-Token", "X-CSRF-Token", "Client-Secret", "X-Session-ID",
        "X-Auth-Key", "X-Auth", "X-Session", "Authentication", "Ocp-Apim-Subscription-Key", "X-Functions-Key",
        "X-Goog-Iap-Jwt-Assertion", "X-Passphrase", "X-Ms-Client-Principal", "X-Amzn-Oidc-Accesstoken", "Key",
        "X-Sig", "X-Signature", "X-Pass", "X-Otp", "X-TOTP", "X-Pin", "X-Sid", "X-Hmac", "X-HMACSHA256", "X-Access",
        "X-Access-Code", "X-Login", "Login", "Client-Cert", "Client-Cert-Chain", "X-Forwarded-Client-Cert", "x_sig",
        "X-Hub-Signature-256", "X-XSRF", "X-Saml-Response", "Cookie2", "x_api_key", "X-Sec-WebSocket-Key",
    ])
    func secretsAreNotDescribed(name: String) {
        let headers: Headers = [name: "s3cret", "Accept": "text/plain"]
        for text in ["\(headers)", String(reflecting: headers), "\(headers[0])", String(reflecting: headers[0])] {
            #expect(!text.contains("s3cret"))
            #expect(text.contains("\(name): <redacted>"))
        }
        #expect("\(headers)".contains("Accept: text/plain"))
        #expect(headers.map(\.isSecret) == [true, false])
    }

    /// A bracket or an equals sign followed by a combining mark is another character.
    @Test(arguments: [
        ("Location", "/?token=\u{301}s3cret"), ("Refresh", "5; url=\u{301}/?token=s3cret"),
        ("Link", "<\u{301}/?token=s3cret>; rel=next"), ("Link", "</?token=s3cret>\u{301}; rel=next"),
    ])
    func accentsBehindSeparatorsShowNoSecret(name: String, value: String) {
        let text = "\([name: value] as Headers)"
        #expect(!text.contains("s3cret") && text.contains("token=<redacted>"), "\(text)")
    }

    @Test(arguments: [
        "Accept", "Content-Type", "ETag", "WWW-Authenticate", "Location", "Host", "Date", "Idempotency-Key",
        "Surrogate-Key", "Sec-WebSocket-Key", "Sec-WebSocket-Accept", "Author", "Proxy-Authenticate",
        "Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Access-Control-Request-Headers",
        "Public-Key-Pins", "X-Design", "Compass", "X-Passed", "X-Pins", "Shipping", "Certainty", "X-Side",
        "X-RateLimit-Remaining-Tokens", "Keep-Alive", "Keywords",
    ])
    func plainHeadersAreDescribed(name: String) {
        #expect("\([name: "value"] as Headers)" == "\(name): value")
    }

    @Test(arguments: [
        ("Location", "https://ada:s3cret@h/cb?code=s3cret#s3cret", "https://<redacted>@h/cb?code=<redacted>"),
        ("content-location", "/a?token=s3cret", "/a?token=<redacted>"),
        ("Referer", "https://h/?s=s3cret", "https://h/?s=<redacted>"),
        (
            "Link", "<https://h/?page=s3cret>; rel=next, </b?c=s3cret>",
            "<https://h/?page=<redacted>>; rel=next, </b?c=<redacted>>"
        ),
        ("Refresh", "5; url=https://h/?t=s3cret", "5; url=https://h/?t=<redacted>"),
    ])
    func secretsInURLsAreNotDescribed(name: String, value: String, shown: String) {
        #expect("\([name: value] as Headers)" == "\(name): \(shown)")
    }

    @Test func descriptionsStayOnTheirLine() {
        #expect("\(["A": "x\r\nB: y"] as Headers)" == "A: x\\u{D}\\u{A}B: y")
    }
}

@Suite("Header validation")
struct HeaderValidationTests {
    static let tokenPunctuation = "!#$%&'*+-.^_`|~"

    @Test func namesAreExactlyTheTokensOfTheRFC() {
        for byte in UInt8(0)..<128 {
            let scalar = Unicode.Scalar(byte)
            let isAlphanumeric = scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
            let isToken = isAlphanumeric || Self.tokenPunctuation.unicodeScalars.contains(scalar)
            let headers: Headers = ["X\(scalar)": "v"]
            #expect((headers.firstProblem() == nil) == isToken, "byte \(byte)")
            #expect(Request.Method("X\(scalar)").isValidToken == isToken, "byte \(byte)")
        }
    }

    @Test(arguments: ["", "Näme", "a b", "a:", "a\r\nb", " a", "a\0"])
    func invalidNamesAreQuotedOnOneLine(name: String) throws {
        let problem = try #require(([name: "s3cret"] as Headers).firstProblem())
        #expect(!problem.contains("s3cret"))
        #expect(!problem.contains { $0.isNewline })
    }

    @Test func valuesAreFreeOfControlCharactersButTheTab() {
        for byte in UInt8(0)..<128 {
            let headers: Headers = ["X-Test": "s3cret\(Unicode.Scalar(byte))"]
            let problem = headers.firstProblem()
            let isControl = byte < 0x20 && byte != 0x09 || byte == 0x7F
            #expect((problem != nil) == isControl, "byte \(byte)")
            if let problem {
                #expect(problem.contains("X-Test") && problem.contains("byte 6") && !problem.contains("s3cret"))
            }
        }
    }

    @Test func valuesCanContainAnyOtherText() {
        #expect((["A": "", "B": "é 漢字 😀", "C": "a\tb"] as Headers).firstProblem() == nil)
        #expect(Headers().firstProblem() == nil)
    }

    @Test func combinedLineBreakIsRefused() {
        // "\r
        // " is one Character of Swift, but two bytes of HTTP.
        #expect((["A": "x\r\nEvil: 1"] as Headers).firstProblem()?.contains("carriage return") == true)
        #expect((["A": "x\nEvil: 1"] as Headers).firstProblem()?.contains("line feed") == true)
        #expect((["A": "x", "B": "\0"] as Headers).firstProblem()?.contains("NUL") == true)
    }
}
