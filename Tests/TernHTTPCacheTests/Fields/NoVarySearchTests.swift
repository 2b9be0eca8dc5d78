import Tern
import Testing

@testable import TernHTTPCache

/// Tests `No-Vary-Search` and the structured fields that it and the cache groups are written in.
@Suite struct NoVarySearchTests {
    private func isEquivalent(_ field: String, _ first: String?, _ second: String?) -> Bool {
        let rule = NoVarySearch(["No-Vary-Search": field])
        return rule.canonical(first) == rule.canonical(second)
    }

    @Test(
        arguments: [
            ("params", "a=1&b=2", "c=3", true), ("params", "a=1", nil, true),
            ("params, except=(\"id\")", "id=1&x=2", "id=1", true),
            ("params, except=(\"id\")", "id=1", "id=2", false),
            ("params=(\"utm\" \"ref\")", "utm=1&a=2", "a=2&ref=3", true),
            ("params=(\"utm\")", "a=1", "a=2", false), ("key-order", "a=1&b=2", "b=2&a=1", true),
            ("key-order", "a=1&a=2", "a=2&a=1", false), ("key-order=?0", "a=1&b=2", "b=2&a=1", false),
            ("key-order, params=(\"x\")", "b=2&x=1&a=1", "a=1&b=2", true), ("params=?0", "a=1", "b=1", false),
            ("params=(\"ü\")", "a=1", "a=1&ü=2", false), ("params=(\"a b\")", "a+b=1", "a%20b=2", true),
            ("params=(\"c\")", "a=%31", "a=1", true), ("params=(\"c\")", "a=%", "a=%25", true),
            ("params=(\"c\")", "a=%+1", "a=%25+1", true), ("params=(\"c\")", "a&&b", "a=&b", true),
            // The Kelvin sign is another name than K, which it equals by canonical equivalence.
            ("params=(\"K\")", "%E2%84%AA=1", "%E2%84%AA=2", false), ("params=(\"K\")", "K=1", "K=2", true),
            ("params, except=(\"K\")", "%E2%84%AA=1", "x=1", true),
            ("params;x=1", "a=1", "b=2", true), ("params=(\"a\";x \"b\");y=\"z\"", "a=1", "b=2", true),
        ] as [(String, String?, String?, Bool)])
    func queriesAreComparedByTheRule(_ field: String, first: String?, second: String?, expected: Bool) {
        #expect(isEquivalent(field, first, second) == expected)
    }

    @Test(arguments: [
        "", "params=1", "params=\"a\"", "params=(a)", "params=(\"a\" 1)", "except=(\"a\")",
        "params=(\"a\"), except=(\"b\")", "params=?0, except=(\"a\")", "key-order=1", "params=(\"a\"", "params,",
        "PARAMS",
        "params=(\"a\"\"b\")", "params=?2", "params, except", "params=(\"\\x\")", "=", "params;", "params=:YQ", "\"",
    ])
    func malformedAndContradictoryRulesHaveNoEffect(_ field: String) {
        #expect(NoVarySearch(["No-Vary-Search": field]) == .exact)
        #expect(!isEquivalent(field, "a=1", "a=2"))
    }

    @Test func theLastOfEqualMembersCounts() {
        #expect(isEquivalent("params=?0, params", "a=1", "a=2"))
        var headers: Headers = ["No-Vary-Search": "params"]
        headers.append(name: "No-Vary-Search", value: "except=(\"a\")")
        #expect(NoVarySearch(headers).ignored == .allExcept(["a"]))
    }

    @Test func stringListsAreReadWhole() {
        #expect(StructuredFields.strings("G", in: ["G": "\"a\", \"b c\";x, \"d\\\"\""]) == ["a", "b c", "d\""])
        #expect(StructuredFields.strings("G", in: ["G": "\"a\", b"]) == nil)
        #expect(StructuredFields.strings("G", in: ["G": "\"a\" \"b\""]) == nil)
        #expect(StructuredFields.strings("G", in: ["G": "\"a"]) == nil)
        #expect(StructuredFields.strings("G", in: ["G": "\"ä\""]) == nil)
        #expect(StructuredFields.strings("G", in: [:]) == nil)
        #expect(StructuredFields.strings("G", in: ["G": ""]) == [])
        let many = Array(repeating: "\"a\"", count: 300).joined(separator: ",")
        #expect(StructuredFields.strings("G", in: ["G": many]) == nil)
    }

    @Test func equivalentURLsShareAKeyAndOthersDoNot() throws {
        let rule = NoVarySearch(["No-Vary-Search": "params=(\"utm\")"])
        func key(_ url: String) throws -> CacheKey { CacheKey(try Target(absolute: url)) }
        let one = try key("http://h/p?a=1&utm=2")
        #expect(one.isEquivalent(to: try key("http://h/p?a=1"), under: rule))
        #expect(!one.isEquivalent(to: try key("http://h/q?a=1"), under: rule))
        #expect(!one.isEquivalent(to: try key("https://h/p?a=1"), under: rule))
        #expect(!one.isEquivalent(to: try key("http://h/p?a=1"), under: .exact))
        #expect(one.canonical(rule) == (try key("http://h/p?utm=5&a=1")).canonical(rule))
    }
}
