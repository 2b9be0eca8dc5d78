import Testing

@testable import Tern

@Suite("ProxyEnvironment")
struct ProxyEnvironmentTests {
    @Test func emptyEnvironmentHasNoProxy() {
        let proxies = ProxyEnvironment([:])
        #expect(proxies.http == nil)
        #expect(proxies.https == nil)
        #expect(proxies.exceptions == ProxyExceptions([]))
    }

    @Test func eachSchemeHasItsOwnProxy() {
        let proxies = ProxyEnvironment(["http_proxy": "http://a:1", "https_proxy": "http://b:2"])
        #expect(proxies.http == "http://a:1")
        #expect(proxies.https == "http://b:2")
    }

    @Test(arguments: ["all_proxy", "ALL_PROXY"])
    func allProxyServesSchemesWithoutTheirOwn(name: String) {
        let proxies = ProxyEnvironment([name: "http://all:1", "https_proxy": "http://b:2"])
        #expect(proxies.http == "http://all:1")
        #expect(proxies.https == "http://b:2")
    }

    /// A CGI server makes HTTP_PROXY from the Proxy header of a request.
    @Test func upperCaseHTTPProxyIsIgnored() {
        let proxies = ProxyEnvironment(["HTTP_PROXY": "http://evil:1", "HTTPS_PROXY": "http://b:2"])
        #expect(proxies.http == nil)
        #expect(proxies.https == "http://b:2")
    }

    @Test func lowerCaseVariableWins() {
        let proxies = ProxyEnvironment([
            "https_proxy": "low", "HTTPS_PROXY": "high", "no_proxy": "low.example", "NO_PROXY": "high.example",
            "all_proxy": "low all", "ALL_PROXY": "high all",
        ])
        #expect(proxies.https == "low")
        #expect(proxies.exceptions == ProxyExceptions(["low.example"]))
        #expect(proxies.http == "low all")
    }

    @Test func emptyVariableMeansNoProxy() {
        let proxies = ProxyEnvironment(["http_proxy": "", "all_proxy": "", "ALL_PROXY": "http://all:1", "no_proxy": ""])
        #expect(proxies.http == "http://all:1")
        #expect(proxies.exceptions == ProxyExceptions([]))
    }

    @Test func sessionWithoutProxiesDoesNotReadTheEnvironment() {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        #expect(PoolSettings(configuration).proxies == ProxyEnvironment([:]))
    }

    @Test(arguments: ["http://u%0A:p@h:1", "http://u:p%00@h:1", "socks5://u:p%7f@h:1", "u\t:p@h:1", "http://h\n:1"])
    func controlCharactersAreAProblem(url: String) {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            let problem = ProxyEnvironment([name: url]).problem
            #expect(problem?.contains("control character") == true && problem?.contains("p%") == false)
        }
        #expect(ProxyEnvironment(["http_proxy": "http://u%20x:p%25@h:1", "HTTP_PROXY": url]).problem == nil)
    }

    @Test(arguments: [
        "http://u:s3cret@h:99999", "http://u:s3cret@h:x", "http://u:s3@cret@h:1", "http://u:s3/cret@h:1",
        "http://u:s3#cret@h:1", "u:s3cret", "http://u:s3cret@", "http://", "http:s3cret:1", "ftp://u:s3cret@h:1",
        "s3cret://h:1", "http://u:s3cret@h h:1", "http://u:s3cret@[::1:1", "http://u:s3cret@[x]:1", "h:1:2", " h:1",
        "http://u:s3cret@1.2.3.256:1", "http://u:s3cret@h..x:1", "h:0", ":1", "@",
    ])
    func malformedURLsAreAProblem(url: String) throws {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            let problem = try #require(ProxyEnvironment([name: url]).problem)
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
        #expect(ProxyEnvironment(["all_proxy": url]).problem == nil)
    }

    @Test(arguments: [
        ("http://p:1", true), ("https://p:1", true), ("p:1", true), ("HTTP://p:1", true), ("socks5://p:1", false),
        ("socks5h://p:1", false), ("socks4a://p:1", false),
    ])
    func onlyPlainRequestsAreForwardedByHTTPProxies(url: String, isForwarded: Bool) throws {
        let proxies = ProxyEnvironment(["all_proxy": url, "no_proxy": "direct.example"])
        #expect(try proxies.forwards(Target(absolute: "http://a.example/")) == isForwarded)
        #expect(try proxies.forwards(Target(absolute: "https://a.example/")) == false)
        #expect(try proxies.forwards(Target(absolute: "http://x.direct.example/")) == false)
        #expect(try proxies.url(for: Target(absolute: "http://x.direct.example./")) == nil)
        #expect(try ProxyEnvironment([:]).forwards(Target(absolute: "http://a.example/")) == false)
    }

    #if os(Linux) && !TERN_URLSESSION
    @Test(arguments: [
        "Unsupported proxy syntax in 'http://zuser:z@secret@127.0.0.1:99999'",
        "Unsupported proxy syntax in 'zuser:zs#ecret@127.0.0.1'", "Unsupported proxy scheme for 'ftp://zuser:secret@h'",
        "Could not resolve proxy: zuser@secret",
    ])
    func errorsOfLibcurlShowNoURL(text: String) {
        let shown = CurlTransfer.withoutURL(text)
        #expect(!shown.contains("secret") && !shown.contains("zuser"))
        #expect(shown.contains("proxy") && CurlTransfer.withoutURL("Connection refused") == "Connection refused")
    }
    #endif
}
