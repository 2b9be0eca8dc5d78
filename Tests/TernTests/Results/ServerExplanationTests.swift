import Foundation
import Testing

@testable import Tern

@Suite("ServerExplanation")
struct ServerExplanationTests {
    private func text(
        _ body: String, type: String = "application/problem+json",
        quoting rule: Session.Configuration.QuotedExplanations = .problems
    ) -> String? {
        ServerExplanation.text(in: Data(body.utf8), of: MediaType(type), quoting: rule)
    }

    @Test func titleAndDetailOfAProblemAreQuoted() {
        let body = #"{"type": "https://a.example/out-of-credit", "title": "No credit", "detail": "30 is less than 50"}"#
        #expect(text(body) == "No credit: 30 is less than 50")
        #expect(text(body, type: "Application/Problem+JSON; charset=utf-8") == "No credit: 30 is less than 50")
        #expect(text(#"{"title": "No credit"}"#) == "No credit")
        #expect(text(#"{"detail": "30"}"#) == "30")
        #expect(text(#"{"title": "Same", "detail": "Same"}"#) == "Same")
        #expect(text(body, quoting: .none) == nil)
    }

    /// Each row: the body, and the explanation with `.json`. With `.problems`, there is none.
    @Test(
        arguments: [
            (#"{"message": "Not Found", "documentation_url": "https://a.example"}"#, "Not Found"),
            (#"{"error": "invalid_grant", "error_description": "expired"}"#, "invalid_grant: expired"),
            (#"{"error": {"message": "no model", "type": "x"}}"#, "no model"), (#"{"error": 7}"#, nil),
            (#"{"message": ["a"]}"#, nil), (#"["message"]"#, nil), ("7", nil), ("{}", nil), ("", nil),
            (#"{"message": ""}"#, nil), ("not JSON", nil), (#"{"message": "cut"#, nil),
        ] as [(String, String?)])
    func otherTextsAreQuotedIfAskedFor(body: String, expected: String?) {
        #expect(text(body, type: "application/json", quoting: .json) == expected)
        #expect(text(body, type: "application/json") == nil)
        #expect(text(body, type: "text/html", quoting: .json) == nil)
        #expect(ServerExplanation.text(in: Data(body.utf8), of: nil, quoting: .json) == nil)
    }

    @Test func hostileTextsAreEscapedAndCut() {
        #expect(text(#"{"title": "a\u001b[31m\nb\u202e"}"#) == #"a\u{1B}[31m\u{A}b\u{202E}"#)
        let long = String(repeating: "x", count: 1_000)
        #expect(text(#"{"title": "\#(long)"}"#) == String(repeating: "x", count: 200) + "…")
        #expect(text(#"{"title": "\#(String(repeating: "x", count: 70_000))"}"#) == nil)
        #expect(text(String(repeating: "[", count: 60_000)) == nil)
    }
}
