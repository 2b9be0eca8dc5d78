import Testing

@testable import Tern

/// Checks the host parser of the WHATWG URL standard, as a table.
@Suite("CanonicalHost")
struct CanonicalHostTests {
    private func host(_ text: String) throws(Target.Problem) -> CanonicalHost {
        try CanonicalHost(url: Array(text.utf8)[...])
    }

    #if os(Linux)
    /// The first interface of Linux is the loopback.
    @Test(arguments: ["[fe80::1%251]", "[fe80::1%1]", "[fe80::1%2501]", "[fe80::1%25lo]", "[fe80::1%lo]"])
    func anInterfaceIsOneHostByNameAndByNumber(text: String) throws {
        #expect(try host(text).text == "fe80::1%lo")
    }
    #endif

    @Test(arguments: [
        // IPv4, in all spellings.
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"), ("0X7F.0.0.0x1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"), ("127.0.0.1.", "127.0.0.1"), ("127.0.0.0x", "127.0.0.0"), ("0", "0.0.0.0"),
        ("0x", "0.0.0.0"), ("4294967295", "255.255.255.255"), ("255.255.255", "255.255.0.255"),
        ("1.16777215", "1.255.255.255"), ("00000000000000000000177.1", "127.0.0.1"), ("%31%32%37.1", "127.0.0.1"),
        ("\u{FF11}\u{FF12}\u{FF17}.0.0.\u{FF11}", "127.0.0.1"), ("127\u{3002}0\u{FF0E}0\u{FF61}1", "127.0.0.1"),
        ("\u{2460}\u{2461}\u{2466}.1", "127.0.0.1"), ("0\u{FF58}7f.1", "127.0.0.1"),
        // IPv6.
        ("[::1]", "::1"), ("[0:0:0:0:0:0:0:1]", "::1"), ("[0000:0000:0000:0000:0000:0000:0000:0001]", "::1"),
        ("[::127.0.0.1]", "::7f00:1"), ("[::ffff:127.0.0.1]", "::ffff:7f00:1"), ("[::FFFF:7F00:1]", "::ffff:7f00:1"),
        ("[2001:DB8:0:0:1:0:0:1]", "2001:db8::1:0:0:1"), ("[2001:db8::0:1]", "2001:db8::1"), ("[::]", "::"),
        ("[1:0:0:2:0:0:0:3]", "1:0:0:2::3"), ("[1:2:3:4:5:6:7::]", "1:2:3:4:5:6:7:0"), ("[1::]", "1::"),
        ("[::2:3:4:5:6:7:8]", "0:2:3:4:5:6:7:8"), ("[1:2:3:4:5:6:255.0.255.1]", "1:2:3:4:5:6:ff00:ff01"),
        // Zones.
        ("[fe80::1%25eth0]", "fe80::1%eth0"), ("[FE80:0::1%Eth0]", "fe80::1%Eth0"),
        ("[febf::1%254001]", "febf::1%4001"),
        ("[fe80::1%25004001]", "fe80::1%4001"),
        // Names.
        ("EXAMPLE.com", "example.com"), ("example.com.", "example.com"), ("%65xample.com", "example.com"),
        ("a_b.c-d~e", "a_b.c-d~e"), ("1.com", "1.com"), ("1.2.3.com", "1.2.3.com"), ("0x7f.com", "0x7f.com"),
        ("1a", "1a"), ("0xg", "0xg"), ("a.0x1g", "a.0x1g"), ("r3---sn-x.googlevideo.com", "r3---sn-x.googlevideo.com"),
        ("-a-.b", "-a-.b"), ("r3---sn-x.b\u{FC}cher.example", "r3---sn-x.xn--bcher-kva.example"),
        // International names (UTS #46, non-transitional).
        ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("B\u{DC}CHER.example", "xn--bcher-kva.example"),
        ("bu\u{308}cher.example", "xn--bcher-kva.example"), ("b%C3%BCcher.example", "xn--bcher-kva.example"),
        ("fa\u{DF}.example", "xn--fa-hia.example"), ("\u{65E5}\u{672C}\u{8A9E}.jp", "xn--wgv71a119e.jp"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"), ("xn--ls8h.la", "xn--ls8h.la"),
        ("\u{FF45}xample\u{3002}com", "example.com"), ("exam\u{AD}ple.com", "example.com"),
        ("\u{24D4}xample.com", "example.com"),
    ])
    func hostsHaveOneForm(input: String, expected: String) throws {
        let host = try host(input)
        #expect(host.text == expected)
        // The form is stable, in a URL and in a host that a user names.
        #expect(try CanonicalHost(url: Array(host.urlText.utf8)[...]) == host)
        #expect(try CanonicalHost(host.text) == host)
        #expect(try CanonicalHost(host.urlText) == host)
        #expect(try Target(absolute: "http://\(input)/").string == "http://\(host.urlText)/")
    }

    #if os(Linux) && !TERN_URLSESSION
    /// IDNA 2008 allows no emoji. The ASCII form of such a name passes.
    @Test(arguments: [("\u{1F4A9}.la", "xn--ls8h.la"), ("i\u{2764}.ws", "xn--i-7iq.ws")])
    func anEmojiIsRefusedAndItsASCIIFormPasses(name: String, ascii: String) throws {
        let problem = #expect(throws: Target.Problem.self) { try host(name) }
        #expect(problem?.reason.contains("IDNA") == true)
        #expect(try host(ascii).text == ascii)
    }
    #endif

    @Test(arguments: [
        ("", "empty host"), (".", "empty host"), ("..", "empty label"), ("a..b", "empty label"), (".a", "empty label"),
        ("a..", "empty label"), ("\u{AD}", "empty host"), ("a.\u{AD}.b", "empty label"),
        // A host that ends in a number is an IPv4 address or invalid.
        ("1.2.3.256", "IPv4"), ("256.1.1.1", "IPv4"), ("1.2.3.4.5", "IPv4"), ("4294967296", "IPv4"),
        ("1.2.3.08", "IPv4"),
        ("09", "IPv4"), ("a.1", "IPv4"), ("a.0x1", "IPv4"), ("a.0x", "IPv4"), ("1.2.65536", "IPv4"),
        ("0x100000000", "IPv4"),
        ("99999999999999999999999999", "IPv4"), ("1..1", "empty label"), ("1.2.3.4..", "empty label"),
        ("a.\u{FF11}", "IPv4"),
        // Characters.
        ("a b", "host contains"), ("a%20b", "host contains"), ("a%2Fb", "host contains"), ("a%00b", "host contains"),
        ("a%2541", "host contains"), ("a%", "host contains"), ("a:b", "host contains"), ("a@b", "host contains"),
        ("a\\b", "host contains"), ("a%5Cb", "host contains"), ("a[b", "host contains"), ("a]", "host contains"),
        ("a^b", "host contains"), ("a|b", "host contains"), ("a<b", "host contains"), ("a\tb", "host contains"),
        ("a\u{7F}", "host contains"), ("\u{FC}%2F", "host contains"), ("%FF", "UTF-8"),
        ("\u{FF05}41", "after conversion to ASCII"),
        ("\u{FF41}\u{FF0F}\u{FF42}", "after conversion to ASCII"), ("\u{FF20}", "after conversion to ASCII"),
        ("\u{FF1A}80", "after conversion to ASCII"),
        ("\u{FF3B}::1\u{FF3D}", "host contains"),
        // IDNA.
        ("xn--", "IDNA"), ("xn--a", "IDNA"), ("xn--ab-", "IDNA"), ("a.xn--0.b", "IDNA"), ("XN--A", "IDNA"),
        ("xn--\u{FC}", "IDNA"), ("a\u{200D}b", "IDNA"), ("xn--ab-j1t", "IDNA"), ("\u{FFFD}", "IDNA"),
        ("xn--zn7c.com", "IDNA"), ("\u{338}", "IDNA"),
        // Lengths.
        (String(repeating: "a", count: 64), "63 bytes"), (String(repeating: "a.", count: 126) + "aa", "253 bytes"),
        // IPv6.
        ("[]", "IPv6"), ("[:]", "IPv6"), ("[:1]", "IPv6"), ("[1:]", "IPv6"), ("[:::]", "IPv6"), ("[1::2::3]", "IPv6"),
        ("[1:2:3:4:5:6:7]", "IPv6"), ("[1:2:3:4:5:6:7:8:9]", "IPv6"), ("[1:2:3:4:5:6:7:8::]", "IPv6"),
        ("[::1:2:3:4:5:6:7:8]", "IPv6"), ("[12345::]", "IPv6"), ("[::g]", "IPv6"), ("[::1.2.3]", "IPv6"),
        ("[::1.2.3.4.5]", "IPv6"), ("[::1.2.3.256]", "IPv6"), ("[::01.2.3.4]", "IPv6"), ("[::0x1.2.3.4]", "IPv6"),
        ("[1.2.3.4]", "IPv6"), ("[1.2.3.4::]", "IPv6"), ("[1:2:3:4:5:6:7:1.2.3.4]", "IPv6"), ("[::1.2.3.4:5]", "IPv6"),
        ("[::%31]", "link-local"), ("[::1", "not closed"), ("[", "not closed"), ("[::1]]", "IPv6"), ("[[::1]]", "IPv6"),
        // Zones.
        ("[::1%251]", "link-local"), ("[::1%lo]", "link-local"), ("[2001:db8::1%25eth0]", "link-local"),
        ("[fec0::1%25eth0]", "link-local"), ("[fe80::1%]", "zone"), ("[fe80::1%25]", "zone"),
        ("[fe80::1%25a%25b]", "zone"),
        ("[fe80::1%250]", "zone"), ("[fe80::1%254294967296]", "zone"), ("[fe80::1%25a/b]", "zone"),
        ("[fe80::1%25abcdefghijklmnop]", "zone"), ("[fe80::1%25a%00]", "zone"),
    ])
    func invalidHostsAreRefused(input: String, part: String) {
        let problem = #expect(throws: Target.Problem.self) { try host(input) }
        #expect(problem?.reason.contains(part) == true, "\(input): \(problem?.reason ?? "")")
    }

    @Test(arguments: [
        ("::1", "::1"), ("0:0::1", "::1"), ("[::1]", "::1"), ("fe80::1%eth0", "fe80::1%eth0"),
        ("[fe80::1%25eth0]", "fe80::1%eth0"), ("fe80::1%251", "fe80::1%251"),
        ("b\u{FC}cher.example", "xn--bcher-kva.example"),
    ])
    func bracketsOfIPv6AddressesAreOptionalForUsers(input: String, expected: String) throws {
        #expect(try CanonicalHost(input).text == expected)
    }

    @Test(arguments: ["h:80", "http://h/", "::1%1", "[::1]:80", ":", "1.2.3.4:80"])
    func otherUserHostsAreRefused(input: String) {
        #expect(throws: Target.Problem.self) { try CanonicalHost(input) }
    }

    /// The labels of a name that is too long are not converted, which would take as long as the server likes.
    @Test func aLongInternationalNameIsRefusedBeforeItIsConverted() throws {
        // The last label would be refused for another reason if the labels were converted first.
        let invalid = #expect(throws: Target.Problem.self) {
            try CanonicalHost(String(repeating: "\u{E9}.", count: 400) + "\u{AD}\u{E000}")
        }
        #expect(invalid?.reason == "the host is longer than 253 bytes")
    }

    @Test func locationsOfRedirectsAreCanonical() throws {
        let base = try Target(absolute: "https://a.example/dir/x")
        for (location, expected) in [
            ("//127.1/x", "https://127.0.0.1/x"), ("https://A.Example.:443/y", "https://a.example/y"),
            ("https://b\u{FC}cher.example/\u{E4}", "https://xn--bcher-kva.example/%C3%A4"),
            ("//[::0.0.0.1]/", "https://[::1]/"), ("/\\evil.example/", "https://a.example/%5Cevil.example/"),
            ("\\\\evil.example/", "https://a.example/dir/%5C%5Cevil.example/"),
        ] { #expect(try base.resolving(location).string == expected) }
        for location in ["//[::1%251]/", "//a@b@c/", "//a\\@b/", "//1.2.3.256/", "//xn--a/"] {
            #expect(throws: Target.Problem.self) { try base.resolving(location) }
        }
    }
}

@Suite("Hosts that users name")
struct NamedHostTests {
    @Test func fixedAddressesApplyToCanonicalHosts() {
        let hosts = ["B\u{DC}CHER.example.": ["192.0.2.7"], "127.1:8080": ["::1"]]
        #expect(HostOverride.problem(hosts) == nil)
        #expect(
            HostOverride.addresses(hosts) == [
                "127.0.0.1:8080": ["::1"], "xn--bcher-kva.example": ["192.0.2.7"],
            ])
        for twice in ["a.example.", "A.example"] {
            #expect(HostOverride.problem(["a.example": ["192.0.2.7"], twice: ["192.0.2.8"]]) != nil)
        }
        #expect(HostOverride.problem(["a.example:443": ["192.0.2.7"], "A.example:0443": ["192.0.2.8"]]) != nil)
        #expect(HostOverride.problem(["a.example": ["192.0.2.7"], "a.example:443": ["192.0.2.8"]]) == nil)
        for wrong in ["a b", "h:", "h:-1", "h:x", "[::1]:80", "::1", "xn--a", ""] {
            #expect(HostOverride.problem([wrong: ["192.0.2.7"]]) != nil, "\(wrong)")
        }
    }

    @Test(arguments: [
        ("example.com", ["example.com", "www.example.com"], ["xexample.com", "com"]),
        (".Example.com.", ["example.com", "a.b.example.com"], ["example.org"]),
        ("b\u{FC}cher.example", ["xn--bcher-kva.example"], ["bucher.example"]),
        ("127.1", ["127.0.0.1"], ["127.0.0.2", "a.127.0.0.1x"]), ("[0:0::1]", ["::1"], ["::2"]), ("::1", ["::1"], []),
        ("10.0.0.0/8", ["10.1.2.3", "10.255.0.0"], ["11.0.0.1", "::a00:1", "ten.example"]),
        ("192.0.2.64/26", ["192.0.2.64", "192.0.2.127"], ["192.0.2.128", "192.0.2.1"]),
        ("0.0.0.0/0", ["8.8.8.8"], ["example.com", "::1"]), ("192.0.2.7/32", ["192.0.2.7"], ["192.0.2.6"]),
        ("fd00::/8", ["fd12::1"], ["fe80::1", "10.0.0.1"]), ("[fe80::]/10", ["fe80::1%eth0"], ["::1"]),
        ("*", ["example.com", "127.0.0.1", "::1"], []), ("0.0.1", ["0.0.0.1"], ["127.0.0.1"]),
    ])
    func exceptionsOfAProxyAreMatched(entry: String, inside: [String], outside: [String]) {
        let exceptions = ProxyExceptions([entry])
        #expect(ProxyExceptions.Entry(entry) != nil)
        for host in inside { #expect(exceptions.contain(host, port: 80), "\(host)") }
        for host in outside { #expect(!exceptions.contain(host, port: 80), "\(host)") }
    }

    @Test(arguments: [
        "", "*.example.com", "a b", "10/8", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/", "a/8", "::/129", "h:0",
        "h:65536", "h:x", "h:-1", "*:80", "10.0.0.0/8:80", "[::1]:x", ":80", "[::1",
    ])
    func invalidProxyExceptionsAreRefused(entry: String) {
        #expect(ProxyExceptions.Entry(entry) == nil)
        var configuration = Session.Configuration()
        configuration.proxies = .only(Proxy(.http, host: "p.example", port: 1), except: [entry])
        #expect(configuration.problem?.kind == .invalidRequest)
        // Other programs write the environment: a value that no tool understands excepts nothing.
        #expect(ProxyExceptions(list: "\(entry), a.example").contain("a.example", port: 80))
    }

    /// Each row of the table in Documentation/Reachability.md: an entry, the requests that it excepts, and others.
    @Test(arguments: [
        ("example.com", ["http://example.com/", "https://a.example.com:8443/"], ["http://notexample.com/"]),
        (".example.com", ["http://example.com/", "http://a.example.com/"], ["http://notexample.com/"]),
        ("*.example.com", [], ["http://example.com/", "http://a.example.com/"]),
        (
            "example.com:8080", ["http://example.com:8080/", "https://a.example.com:8080/"],
            ["http://example.com/", "http://example.com:80800/", "http://a.example:8080/"]
        ),
        ("example.com:80", ["http://example.com/", "http://example.com:80/"], ["https://example.com/"]),
        ("example.com:", ["http://example.com/", "http://example.com:8080/"], ["http://example.org/"]),
        ("127.0.0.1", ["http://127.0.0.1/", "http://127.0.0.1:8080/"], ["http://127.0.0.2/", "http://localhost/"]),
        ("127.0.0.1:8080", ["http://127.0.0.1:8080/", "http://127.1:8080/"], ["http://127.0.0.1/"]),
        ("::1", ["http://[::1]/", "http://[::1]:8080/"], ["http://[::2]/"]),
        ("[::1]", ["http://[::1]/", "http://[::1]:8080/"], ["http://[::2]/"]),
        ("[::1]:8080", ["http://[::1]:8080/", "http://[0::1]:8080/"], ["http://[::1]/", "http://[::2]:8080/"]),
        ("10.0.0.0/8", ["http://10.1.2.3/", "http://10.1.2.3:8080/"], ["http://11.0.0.1/"]),
        ("*", ["http://example.com/", "https://[::1]:8080/"], []),
        ("", [], ["http://localhost/", "http://127.0.0.1/"]),
    ])
    func entriesOfNoProxyCoverTheRequestsOfTheirRow(entry: String, direct: [String], proxied: [String]) throws {
        #if os(Linux)
        let environment = ProxySelector(environment: ["all_proxy": "http://p.example:1", "NO_PROXY": "x.y:1,\(entry)"])
        for url in direct { #expect(environment.proxy(for: try Target(absolute: url)) == nil, "\(url)") }
        for url in proxied {
            // A port that does not exist is no request.
            guard let target = try? Target(absolute: url) else { continue }
            #expect(environment.proxy(for: target) != nil, "\(url)")
        }
        guard ProxyExceptions.Entry(entry) != nil else { return }
        let proxy = Proxy(.http, host: "p.example", port: 1)
        let given = ProxySelector(.only(proxy, except: [entry]))
        for url in direct { #expect(given.proxy(for: try Target(absolute: url)) == nil, "\(url)") }
        #endif
    }

    @Test func exceptionsAreSeparatedByCommasAndBlanks() {
        let exceptions = ProxyExceptions(list: "a.example,,b.example  .c.example\t127.0.0.1,")
        for host in ["a.example", "b.example", "x.c.example", "127.0.0.1"] {
            #expect(exceptions.contain(host, port: 1))
        }
        #expect(!exceptions.contain("d.example", port: 1) && !ProxyExceptions(list: "").contain("a", port: 1))
    }

    @Test func fixedCredentialsApplyToTheCanonicalOrigin() async throws {
        let credentials = try FixedCredentials(
            ["https://127.1": .bearer("t"), "https://B\u{DC}CHER.example.": .bearer("u")], isPreemptive: true)
        for (url, token) in [("https://2130706433/", "t"), ("https://xn--bcher-kva.example/x", "u")] {
            let request = try Request(.get, url)
            #expect(try await credentials.preemptiveCredential(for: request) == .bearer(token))
        }
    }

    @Test func manualCookiesApplyToTheCanonicalHost() throws {
        let store = CookieStore()
        for (name, domain) in [("a", "B\u{DC}CHER.example"), ("b", "127.1"), ("c", "[::0:1]"), ("d", "example.com.")] {
            try store.insert(Cookie(name: name, value: "1", domain: domain))
        }
        for (url, expected) in [
            ("https://xn--bcher-kva.example/", "a=1"), ("http://0x7f.1/", "b=1"), ("http://[::1]/", "c=1"),
            ("http://example.com./", "d=1"),
        ] {
            #expect(store.header(for: try Target(absolute: url), method: .get) == expected)
        }
        for domain in ["a b", "::1%1", "xn--a", "1.2.3.256", ".example.com"] {
            #expect(throws: Cookie.Refusal.self) { try store.insert(Cookie(name: "n", value: "1", domain: domain)) }
        }
    }

    /// Spellings of one address are one host: cookies that a server sets under one are sent under the others.
    @Test func cookiesApplyToEverySpellingOfTheHost() throws {
        let store = CookieStore()
        store.store(["a=1"], from: try Target(absolute: "http://127.1/"))
        #expect(store.header(for: try Target(absolute: "http://2130706433/"), method: .get) == "a=1")
        #expect(store.header(for: try Target(absolute: "http://127.0.0.2/"), method: .get) == nil)
    }
}
