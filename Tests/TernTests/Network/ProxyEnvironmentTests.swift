#if os(Linux)
import TernEngine
import Testing

@testable import Tern

@Suite("Proxies of the environment")
struct ProxyEnvironmentTests {
    private static func address(
        _ host: String, _ port: UInt16, _ kind: ProxyAddress.Kind = .http, user: String? = nil, password: String? = nil
    ) -> ProxyAddress {
        ProxyAddress(kind, host: host, port: port, user: user, password: password)
    }

    @Test func emptyEnvironmentHasNoProxy() {
        let proxies = ProxySelector(environment: [:])
        #expect(proxies.http == nil && proxies.https == nil && proxies.problem == nil)
        #expect(proxies.exceptions == ProxyExceptions([]))
    }

    @Test func eachSchemeHasItsOwnProxy() {
        let proxies = ProxySelector(environment: ["http_proxy": "http://a:1", "https_proxy": "http://b:2"])
        #expect(proxies.http == Self.address("a", 1))
        #expect(proxies.https == Self.address("b", 2))
    }

    @Test(arguments: ["all_proxy", "ALL_PROXY"])
    func allProxyServesSchemesWithoutTheirOwn(name: String) {
        let proxies = ProxySelector(environment: [name: "http://all:1", "https_proxy": "http://b:2"])
        #expect(proxies.http == Self.address("all", 1))
        #expect(proxies.https == Self.address("b", 2))
    }

    /// A CGI server makes HTTP_PROXY from the Proxy header of a request.
    @Test func upperCaseHTTPProxyIsIgnored() {
        let proxies = ProxySelector(environment: ["HTTP_PROXY": "http://evil:1", "HTTPS_PROXY": "http://b:2"])
        #expect(proxies.http == nil)
        #expect(proxies.https == Self.address("b", 2))
    }

    @Test func lowerCaseVariableWins() {
        let proxies = ProxySelector(environment: [
            "https_proxy": "low", "HTTPS_PROXY": "high", "no_proxy": "low.example", "NO_PROXY": "high.example",
            "all_proxy": "low-all", "ALL_PROXY": "high-all",
        ])
        #expect(proxies.https == Self.address("low", 1_080))
        #expect(proxies.exceptions == ProxyExceptions(["low.example"]))
        #expect(proxies.http == Self.address("low-all", 1_080))
    }

    @Test func emptyVariableMeansNoProxy() {
        let proxies = ProxySelector(environment: [
            "http_proxy": "", "all_proxy": "", "ALL_PROXY": "http://all:1", "no_proxy": "",
        ])
        #expect(proxies.http == Self.address("all", 1))
        #expect(proxies.exceptions == ProxyExceptions([]))
    }

    @Test func sessionWithoutProxiesDoesNotReadTheEnvironment() {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        #expect(ConnectionSettings(configuration).proxies == ProxySelector(environment: [:]))
    }

    @Test func givenProxiesAreCanonical() {
        let proxy = Proxy(.socks5, host: "[0:0::1]", port: 1, user: "ada", password: "p:@/")
        let other = Proxy(.https, host: "B\u{DC}CHER.example.", port: 2)
        let proxies = ProxySelector(.schemes(http: proxy, https: other, except: ["a.example"]))
        #expect(proxies.http == Self.address("::1", 1, .socks5, user: "ada", password: "p:@/"))
        #expect(proxies.https == Self.address("xn--bcher-kva.example", 2, .https))
        #expect(proxies.exceptions == ProxyExceptions(["a.example"]))
        #expect(!"\(proxies)".contains("ada"))
    }

    @Test func urlsOfTheEnvironmentAreParsed() {
        let samples: [(String, ProxyAddress)] = [
            ("h", Self.address("h", 1_080)), ("h:1", Self.address("h", 1)), ("http://h:", Self.address("h", 1_080)),
            ("h:80", Self.address("h", 80)), ("HTTP://H.:1/path?q#f", Self.address("h", 1)),
            ("https://h", Self.address("h", 443, .https)), ("https://h:80", Self.address("h", 80, .https)),
            ("socks4://h", Self.address("h", 1_080, .socks4)), ("socks4a://h", Self.address("h", 1_080, .socks4a)),
            ("socks5://127.1", Self.address("127.0.0.1", 1_080, .socks5WithLocalNames)),
            ("SOCKS5H://[::1]:2", Self.address("::1", 2, .socks5)), ("[::1]", Self.address("::1", 1_080)),
            ("u@h", Self.address("h", 1_080, user: "u", password: "")), ("@h:1", Self.address("h", 1)),
            ("http://D\\u:p%40:%20@h", Self.address("h", 1_080, user: "D\\u", password: "p@: ")),
            (":p@h", Self.address("h", 1_080, user: "", password: "p")),
            ("http://b\u{FC}cher.example", Self.address("xn--bcher-kva.example", 1_080)),
        ]
        for (url, address) in samples {
            let proxies = ProxySelector(environment: ["all_proxy": url])
            #expect(proxies.http == address && proxies.https == address && proxies.problem == nil, "\(url)")
        }
    }

    @Test(arguments: ["http://u%FF:s3cret@h:1", "http://u:s3cret%C3@h:1"])
    func credentialsThatAreNotUTF8AreAProblem(url: String) {
        let proxies = ProxySelector(environment: ["all_proxy": url])
        #expect(proxies.http == nil && proxies.problem?.contains("not UTF-8") == true)
        #expect(proxies.problem?.contains("s3cret") == false)
    }

    @Test(arguments: ["http://u%0A:p@h:1", "http://u:p%00@h:1", "socks5://u:p%7f@h:1", "u\t:p@h:1", "http://h\n:1"])
    func controlCharactersAreAProblem(url: String) {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            let problem = ProxySelector(environment: [name: url]).problem
            #expect(problem?.contains("control character") == true && problem?.contains("p%") == false)
        }
        #expect(ProxySelector(environment: ["http_proxy": "http://u%20x:p%25@h:1", "HTTP_PROXY": url]).problem == nil)
    }

    @Test(arguments: [
        "http://u:s3cret@h:99999", "http://u:s3cret@h:x", "http://u:s3@cret@h:1", "http://u:s3/cret@h:1",
        "http://u:s3#cret@h:1", "u:s3cret", "http://u:s3cret@", "http://", "http:s3cret:1", "ftp://u:s3cret@h:1",
        "s3cret://h:1", "http://u:s3cret@h h:1", "http://u:s3cret@[::1:1", "http://u:s3cret@[x]:1", "h:1:2", " h:1",
        "http://u:s3cret@1.2.3.256:1", "http://u:s3cret@h..x:1", "h:0", ":1", "@",
    ])
    func malformedURLsAreAProblem(url: String) throws {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            let problem = try #require(ProxySelector(environment: [name: url]).problem)
            #expect(problem.hasPrefix("the environment's proxy for http"))
            #expect(!problem.contains("s3") && !problem.contains("cret"))
        }
    }

    @Test(arguments: [
        "h", "h:1", "u:p@h:1", "http://h", "HTTP://h:1/", "https://h:1/path?q", "socks4://h", "socks4a://h:1",
        "socks5://u:p@127.0.0.1:1", "SOCKS5H://[::1]:1", "http://D\\u:p@h:1", "http://u:p%40@h_x.example.:1",
        "http://@h:1",
        "http://b\u{FC}cher.example:1", "http://h:", "[fe80::1%25eth0]:1", "http://u%20x:p%25:z@h:1",
    ])
    func usableProxiesAreAccepted(url: String) {
        #expect(ProxySelector(environment: ["all_proxy": url]).problem == nil)
    }

    @Test(arguments: [
        ("http://p:1", true), ("https://p:1", true), ("p:1", true), ("HTTP://p:1", true), ("socks5://p:1", false),
        ("socks5h://p:1", false), ("socks4a://p:1", false),
    ])
    func onlyPlainRequestsAreForwardedByHTTPProxies(url: String, isForwarded: Bool) throws {
        let proxies = ProxySelector(environment: ["all_proxy": url, "no_proxy": "direct.example"])
        #expect(try proxies.forwards(Target(absolute: "http://a.example/")) == isForwarded)
        #expect(try proxies.forwards(Target(absolute: "https://a.example/")) == false)
        #expect(try proxies.forwards(Target(absolute: "http://x.direct.example/")) == false)
        #expect(try proxies.proxy(for: Target(absolute: "http://x.direct.example./")) == nil)
        #expect(try ProxySelector(environment: [:]).forwards(Target(absolute: "http://a.example/")) == false)
    }
}
#endif
