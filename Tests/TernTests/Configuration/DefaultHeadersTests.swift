import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Default headers")
struct DefaultHeadersTests {
    @Test func languagesAreWeightedAndAtMostSix() {
        #expect(AcceptLanguage.text([]) == nil)
        #expect(AcceptLanguage.text(["de-AT", "en"]) == "de-AT;q=1, en;q=0.9")
        let many = AcceptLanguage.text(["a", "b", "c", "d", "e", "f", "g"])
        #expect(many == "a;q=1, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5")
    }

    @Test(arguments: [
        (["LANG": "de_AT.UTF-8@euro"], ["de-AT"]),
        (["LANG": "de_DE.UTF-8", "LANGUAGE": "fr:de:fr:C"], ["fr", "de"]),
        (["LANG": "de_DE", "LC_ALL": "C", "LANGUAGE": "fr"], []),
        (["LANG": "de_DE", "LC_MESSAGES": "sv_SE"], ["sv-SE"]),
        (["LANG": "POSIX"], []), (["LANG": ""], []), ([:], []), (["LANG": "a\r\nX: y"], []),
    ])
    func languagesAreThoseOfTheEnvironment(variables: [String: String], expected: [String]) {
        #expect(AcceptLanguage.languages { variables[$0] } == expected)
    }

    @Test(
        arguments: [
            ("demo", nil, "Linux", "demo (Linux) Tern/\(TernPackage.version)"),
            ("Größe", "1.2", "Linux", "Groesse/1.2 (Linux) Tern/\(TernPackage.version)"),
            ("日本 app", "1", nil, "%E6%97%A5%E6%9C%AC-app/1 Tern/\(TernPackage.version)"),
            ("e\u{301}t\u{E9}", nil, nil, "ete Tern/\(TernPackage.version)"),
            ("a(b)/c\r\n", nil, "X (y)", "a%28b%29%2Fc%0D%0A (X y) Tern/\(TernPackage.version)"),
            (nil, "1", nil, "Tern/\(TernPackage.version)"),
        ] as [(String?, String?, String?, String)])
    func theUserAgentIsTokensAndAComment(
        program: String?, version: String?, system: String?, expected: String
    ) {
        #expect(UserAgent.text(program: program, version: version, system: system) == expected)
        #expect((["User-Agent": expected] as Headers).firstProblem() == nil)
    }

    @Test func theDefaultsOfThisProcessCanBeSent() throws {
        let headers = Session.Configuration().headers
        #expect(headers.firstProblem() == nil)
        let agent = try #require(headers["User-Agent"])
        #expect(agent.hasSuffix("Tern/\(TernPackage.version)"))
        #expect(agent.contains("/") && agent.count > 12)
    }

    @Test func datesOfFieldsAreReadInThreeFormsAndWrittenInOne() {
        var headers: Headers = ["Date": "Sunday, 06-Nov-94 08:49:37 GMT"]
        #expect(headers.date("date")?.timeIntervalSince1970 == 784_111_777)
        #expect(headers.date("Expires") == nil)
        headers.setDate(headers.date("Date"), for: "If-Modified-Since")
        #expect(headers["If-Modified-Since"] == "Sun, 06 Nov 1994 08:49:37 GMT")
        headers.setDate(nil, for: "Date")
        #expect(!headers.contains("Date"))
    }
}
