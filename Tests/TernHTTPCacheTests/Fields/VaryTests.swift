import Tern
import Testing

@testable import TernHTTPCache

/// Tests the selection of stored responses by the fields of a request (RFC 9111 §4.1).
@Suite struct VaryTests {
    private func matches(_ vary: String, _ first: Headers, _ second: Headers) -> Bool {
        guard let selection = VarySelection(Vary(["Vary": vary]), of: first) else { return false }
        return selection.matches(second)
    }

    @Test(arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo", " * "])
    func aStarMatchesNothing(_ value: String) {
        #expect(Vary(["Vary": value]) == .everything)
        #expect(VarySelection(Vary(["Vary": value]), of: [:]) == nil)
    }

    @Test func starsOnSeveralLinesMatchNothing() {
        var headers: Headers = ["Vary": ""]
        headers.append(name: "Vary", value: "*")
        #expect(Vary(headers) == .everything)
    }

    @Test func namesAreComparedWithoutCaseAndOrder() {
        #expect(Vary(["Vary": "Foo, bar,foo ,, "]) == .names(["bar", "foo"]))
        #expect(Vary(["Vary": ""]) == .names([]))
        #expect(Vary([:]) == .names([]))
        let names = (0...Vary.limit).map { "n\($0)" }.joined(separator: ",")
        #expect(Vary(["Vary": names]) == .everything)
    }

    @Test func fieldsMustBeEqualOrBothMissing() {
        #expect(matches("Foo", ["Foo": "1"], ["foo": "1"]))
        #expect(!matches("Foo", ["Foo": "1"], ["Foo": "2"]))
        #expect(!matches("Foo", ["Foo": "1"], [:]))
        #expect(!matches("Foo", [:], ["Foo": "1"]))
        #expect(!matches("Foo", [:], ["Foo": ""]))
        #expect(matches("Foo, Bar", ["Foo": "1"], ["Foo": "1", "Other": "2"]))
        #expect(!matches("Foo, Bar", ["Foo": "1"], ["Foo": "1", "Bar": "2"]))
        // Canonically equivalent texts are different values.
        #expect(!matches("Foo", ["Foo": "\u{212A}"], ["Foo": "K"]))
        #expect(!matches("Foo", ["Foo": "\u{E9}"], ["Foo": "e\u{301}"]))
    }

    @Test func whitespaceLinesAndEmptyMembersMakeNoDifference() {
        var lines: Headers = ["Foo": "1"]
        lines.append(name: "Foo", value: "2")
        #expect(matches("Foo", ["Foo": "1, 2"], lines))
        #expect(matches("Foo", ["Foo": "1,2"], ["Foo": " 1 ,, 2 "]))
        #expect(!matches("Foo", ["Foo": "1, 2"], ["Foo": "2, 1"]))
        #expect(!matches("Foo", ["Foo": "a"], ["Foo": "A"]))
        #expect(!matches("Foo", ["Foo": "\"a, b\""], ["Foo": "\"a,b\""]))
    }

    @Test func caseAndOrderMakeNoDifferenceWhereTheyHaveNoMeaning() {
        #expect(matches("Accept-Encoding", ["Accept-Encoding": "gzip, BR"], ["Accept-Encoding": "br,gzip"]))
        #expect(matches("Accept", ["Accept": "a/b ; q=1, c/d"], ["Accept": "c/d, a/b;q=1"]))
        #expect(matches("Accept-Language", ["Accept-Language": "DE, en"], ["Accept-Language": "de,EN"]))
        // Some servers prefer the first of equal weight.
        #expect(!matches("Accept-Language", ["Accept-Language": "de, en"], ["Accept-Language": "en, de"]))
    }

    @Test func secretsAndLongValuesAreKeptAsDigests() throws {
        let long = String(repeating: "x", count: 300)
        let request: Headers = ["Cookie": "secret=1", "X-Long": long, "Plain": "p"]
        let selection = try #require(VarySelection(Vary(["Vary": "Cookie, X-Long, Plain"]), of: request))
        let values = selection.fields.compactMap(\.value)
        #expect(values.count == 3)
        #expect(!values.contains { $0.contains("secret") || $0.contains("xxx") })
        #expect(values.contains("p"))
        #expect(selection.matches(request))
        #expect(!selection.matches(request.overriding(with: ["Cookie": "secret=2"])))
        #expect(!selection.matches(request.overriding(with: ["X-Long": long + "y"])))
    }
}
