import Testing

@testable import TernInspector

/// The table of requests that a page answers and refuses.
@Suite("Inspector: access") struct InspectorAccessTests {
    private static let token = "0123456789abcdef0123456789abcdef"
    private let access = InspectorAccess(port: 8_077, token: token)

    private func status(
        _ target: String, method: String = "GET", hosts: [String] = ["127.0.0.1:8077"], origin: String? = nil,
        site: String? = nil
    ) -> Int {
        let question = InspectorAccess.Question(
            method: method, target: target, hosts: hosts, origin: origin, fetchSite: site)
        switch access.decision(about: question) {
        case .answer: return 200
        case .refuse(let status, _): return status
        }
    }

    private var page: String { "/\(Self.token)/" }

    @Test func resourcesAreFoundBelowTheToken() {
        func resource(_ path: String) -> InspectorAccess.Decision {
            access.decision(about: .init(target: page + path, hosts: ["127.0.0.1:8077"]))
        }
        #expect(resource("") == .answer(.page))
        #expect(resource("?a=b") == .answer(.page))
        #expect(resource("events") == .answer(.events))
        #expect(resource("cache") == .answer(.cache))
        #expect(resource("requests.har") == .answer(.har))
        #expect(resource("tasks/17") == .answer(.task(17)))
    }

    @Test(arguments: [
        "", "/", "//", "*", "/favicon.ico", "/\(token)", "/\(token)/nothing", "/\(token)/tasks", "/\(token)/tasks/",
        "/\(token)/tasks/-1", "/\(token)/tasks/+1", "/\(token)/tasks/1/2", "/\(token)/tasks/99999999999999999999",
        "/\(token)/tasks/\u{664}", "/\(token)//", "/\(token)/events/", "/x/\(token)/", "//\(token)/",
        "/0123456789abcdef0123456789abcdee/", "/0123456789abcdef/", "/\(token)0/",
        "/%30123456789abcdef0123456789abcdef/", "http://127.0.0.1:8077/\(token)/",
    ])
    func everythingElseIsNotThere(target: String) {
        #expect(status(target) == 404)
    }

    @Test(arguments: [
        [], [""], ["127.0.0.1"], ["127.0.0.1:80"], ["127.0.0.1:80770"], ["attacker.example:8077"], ["localhost"],
        ["127.0.0.1:8077", "127.0.0.1:8077"], ["127.0.0.1:8077, a"], ["127.0.0.1.nip.io:8077"], ["[::1]:8077"],
        ["0.0.0.0:8077"], ["user@127.0.0.1:8077"], ["127.0.0.1:8077."],
    ])
    func otherHostsAreRefused(hosts: [String]) {
        #expect(status(page, hosts: hosts) == 403)
    }

    @Test func bothNamesOfThisMachineAreAccepted() {
        #expect(status(page, hosts: ["localhost:8077"]) == 200)
        #expect(status(page, hosts: ["LOCALHOST:8077"]) == 200)
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PRI", ""])
    func otherMethodsAreRefused(method: String) {
        #expect(status(page, method: method) == 405)
    }

    @Test func headIsAccepted() { #expect(status(page, method: "HEAD") == 200) }

    @Test func otherOriginsAreRefused() {
        #expect(status(page, origin: "http://127.0.0.1:8077") == 200)
        #expect(status(page, origin: "http://localhost:8077") == 200)
        for origin in ["null", "", "https://127.0.0.1:8077", "http://127.0.0.1", "http://attacker.example:8077"] {
            #expect(status(page, origin: origin) == 403, "\(origin)")
        }
    }

    @Test func otherSitesAreRefused() {
        for site in ["none", "same-origin"] { #expect(status(page, site: site) == 200) }
        for site in ["cross-site", "same-site", ""] { #expect(status(page, site: site) == 403, "\(site)") }
    }

    @Test func longTargetsAreRefused() {
        #expect(status(page + "?" + String(repeating: "a", count: 400)) == 200)
        #expect(status(page + "?" + String(repeating: "a", count: 600)) == 414)
        #expect(status("/" + String(repeating: "a", count: 100_000)) == 414)
    }

    @Test func tokensAreNotGuessed() {
        let tokens = Set((0..<100).map { _ in InspectorAccess.randomText() })
        #expect(tokens.count == 100)
        #expect(tokens.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
    }
}
