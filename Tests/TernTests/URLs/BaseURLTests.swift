import Tern
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("BaseURL")
struct BaseURLTests {
    @Test func aClientGivesTheURLOfAPath() throws {
        let client = try Client(baseURL: "https://example.com/v1")
        #expect(try client.url("a b", query: ["page": 2]).absoluteString == "https://example.com/v1/a%20b?page=2")
        #expect(try client.url("/files/").absoluteString == "https://example.com/files/")
        #expect(try client.url("").absoluteString == client.request(.get, "").urlString)
        let base = try #require(URL(string: "https://example.com/v1/"))
        #expect(try Client(baseURL: base, interceptors: []).url("a").absoluteString == "https://example.com/v1/a")
        #expect(throws: NetworkError.self) { try client.url("http://[") }
        #expect(throws: NetworkError.self) { try Client().url("no-base") }
    }

    /// The table of AFNetworking, with the base in both spellings.
    @Test(
        arguments: ["http://example.com/v1/", "http://example.com/v1"],
        [
            ("foo", "/v1/foo"), ("foo?bar=baz", "/v1/foo?bar=baz"), ("/foo", "/foo"), ("foo/", "/v1/foo/"),
            ("/foo/", "/foo/"), ("", "/v1/"), ("?q=1", "/v1/?q=1"), ("#frag", "/v1/"), ("foo#frag", "/v1/foo"),
            ("../x", "/x"), ("./x", "/v1/x"), ("/", "/"), ("a b", "/v1/a%20b"), ("%41", "/v1/%41"),
            ("50%", "/v1/50%25"),
            ("a/../b", "/v1/b"), (".hidden", "/v1/.hidden"), ("a.b/c..d", "/v1/a.b/c..d"), ("a/.b", "/v1/a/.b"),
            ("a:b/c", ""), ("a/b:c", "/v1/a/b:c"), ("./a:b", "/v1/a:b"), ("?a:b", "/v1/?a:b"), ("/a:b", "/a:b"),
            ("a?b:c/../d", "/v1/a?b:c/../d"), ("a//b", "/v1/a//b"), ("é", "/v1/%C3%A9"), ("?é#x", "/v1/?%C3%A9"),
            ("1:2", "/v1/1:2"), ("@me", "/v1/@me"),
        ])
    func referencesAreResolved(base: String, row: (reference: String, path: String)) throws {
        let base = try BaseURL(absolute: base)
        if row.path.isEmpty {
            let problem = #expect(throws: Target.Problem.self) { try base.resolve(row.reference) }
            #expect(try #require(problem).reason.contains("./path"))
            return
        }
        #expect(try base.resolve(row.reference).string == "http://example.com" + row.path)
    }

    @Test(arguments: [
        ("https://other.example/x?y", "https://other.example/x?y"), ("HTTP://OTHER:80", "http://other/"),
        ("//other/x", "https://other/x"), ("//other:444", "https://other:444/"),
        ("//u:p@other/a b", "https://other/a%20b"),
    ])
    func hostOfTheReferenceWins(reference: String, expected: String) throws {
        let base = try BaseURL(absolute: "https://user:secret@example.com/v1")
        let target = try base.resolve(reference)
        #expect(target.string == expected)
        // The credentials of the base are for the base only.
        #expect(target.password != "secret")
    }

    @Test func baseWithoutAPathIsItsRoot() throws {
        for base in ["http://h", "http://h/", "http://h?q", "http://h#f"] {
            let base = try BaseURL(absolute: base)
            #expect(try base.resolve("foo").string == "http://h/foo")
            #expect(try base.resolve("/foo").string == "http://h/foo")
            #expect(try base.resolve("").string == "http://h/")
            #expect(base.root.string == "http://h/")
        }
    }

    @Test func queryOfTheBaseIsDropped() throws {
        let base = try BaseURL(absolute: "http://h/v1?key=1#f")
        #expect(try base.resolve("a").string == "http://h/v1/a")
        #expect(try base.resolve("").string == "http://h/v1/")
    }

    @Test func credentialsAndOriginAreKept() throws {
        let base = try BaseURL(absolute: "http://u:p@h:81/v1")
        for reference in ["x", "/x", "../x", "?x"] {
            let target = try base.resolve(reference)
            #expect((target.user, target.password) == ("u", "p"))
            #expect(target.origin == "http://h:81")
            #expect(target.string.hasPrefix("http://h:81/"))
        }
        #expect(!"\(base)".contains("u:p"))
    }

    @Test func baseCanBeAFoundationURL() throws {
        let base = try BaseURL(#require(URL(string: "https://example.com/v1")))
        #expect(try base.resolve("users/1").string == "https://example.com/v1/users/1")
        #expect(throws: Target.Problem.self) { try BaseURL(#require(URL(string: "file:///x"))) }
    }

    @Test(arguments: [
        "a\r\nb", "a\0", "/a\n", "?a\u{1}", "a#\r\n", "ftp://h", "http://", "//", "///x", "//:80/", "//h:x/",
    ])
    func invalidURLIsRefused(reference: String) throws {
        let base = try BaseURL(absolute: "http://h/v1")
        let problem = #expect(throws: Target.Problem.self) { try base.resolve(reference) }
        #expect(try !#require(problem).reason.contains { $0.isNewline })
    }

    /// The examples of RFC 3986 §5.4.1 and §5.4.2, with a base that ends in a slash, as every base of Tern does.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/?y"), ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"), ("g;x", "/b/c/g;x"),
        ("g;x?y#s", "/b/c/g;x?y"), ("", "/b/c/"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"),
        ("../g", "/b/g"), ("../..", "/"), ("../../", "/"), ("../../g", "/g"), ("../../../g", "/g"),
        ("../../../../g", "/g"), ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), (".g", "/b/c/.g"),
        ("g..", "/b/c/g.."), ("..g", "/b/c/..g"), ("./../g", "/b/g"), ("./g/.", "/b/c/g/"), ("g/./h", "/b/c/g/h"),
        ("g/../h", "/b/c/h"), ("g;x=1/./y", "/b/c/g;x=1/y"), ("g;x=1/../y", "/b/c/y"), ("g?y/./x", "/b/c/g?y/./x"),
        ("g?y/../x", "/b/c/g?y/../x"), ("g#s/../x", "/b/c/g"),
    ])
    func examplesOfTheStandardPass(reference: String, path: String) throws {
        let base = try BaseURL(absolute: "http://a/b/c/")
        #expect(try base.resolve(reference).string == "http://a" + path)
    }

    /// Compares every text of up to seven of the characters that steer the algorithm with the standard's own steps.
    @Test func resolutionAgreesWithTheStandardsAlgorithm() throws {
        let base = try BaseURL(absolute: "http://h/b/c")
        var references = [""]
        for length in 1...7 {
            references += references.filter { $0.utf8.count == length - 1 }.flatMap { text in
                [".", "/", "a", "?"].map { text + $0 }
            }
        }
        for reference in references where !reference.hasPrefix("//") {
            let path = reference.prefix { $0 != "?" }
            let query = reference.dropFirst(path.count)
            let merged = path.hasPrefix("/") ? String(path) : "/b/c/" + path
            let expected = "http://h" + Self.removeDotSegments(merged) + query
            let actual = try base.resolve(reference).string
            if actual != expected { Issue.record("\(reference): \(actual), expected \(expected)") }
        }
    }

    /// Implements RFC 3986 §5.2.4 step by step.
    private static func removeDotSegments(_ path: String) -> String {
        var input = path[...]
        var output = ""
        while !input.isEmpty {
            if input.hasPrefix("../") {
                input = input.dropFirst(3)
            } else if input.hasPrefix("./") {
                input = input.dropFirst(2)
            } else if input.hasPrefix("/./") {
                input = input.dropFirst(2)
            } else if input == "/." {
                input = "/"
            } else if input.hasPrefix("/../") || input == "/.." {
                input = input == "/.." ? "/" : input.dropFirst(3)
                while let last = output.popLast(), last != "/" {}
            } else if input == "." || input == ".." {
                input = ""
            } else {
                let end = input.dropFirst().firstIndex(of: "/") ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return output
    }
}
