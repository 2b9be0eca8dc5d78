import Tern
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Target")
struct TargetTests {
    @Test(arguments: [
        // Kept as written.
        ("https://example.com/a/b?c=d", "https://example.com/a/b?c=d"),
        ("http://localhost:8080/", "http://localhost:8080/"),
        ("http://127.0.0.1:65535/x", "http://127.0.0.1:65535/x"),
        ("http://a_b.c-d~e/x", "http://a_b.c-d~e/x"),
        // The normal form.
        ("HTTPS://EXAMPLE.COM/Path", "https://example.com/Path"),
        ("http://h", "http://h/"),
        ("http://h?q", "http://h/?q"),
        ("http://h#f", "http://h/"),
        ("http://h/?", "http://h/?"),
        ("http://h:80/", "http://h/"),
        ("https://h:443/", "https://h/"),
        ("https://h:80/", "https://h:80/"),
        ("http://h:/x", "http://h/x"),
        ("http://h:0080/x", "http://h/x"),
        ("http://h/a/../b/./c", "http://h/b/c"),
        ("http://h/..", "http://h/"),
        ("http://h/a/.", "http://h/a/"),
        ("http://h/a?x=../y", "http://h/a?x=../y"),
        ("http://h/a//b", "http://h/a//b"),
        ("http://h/%2e%2e/x", "http://h/%2e%2e/x"),
        ("http://h/p#frag?no", "http://h/p"),
        ("http://h/p?q#frag", "http://h/p?q"),
        // Percent encoding.
        ("http://h/a b", "http://h/a%20b"),
        ("http://h/\"<>\\^`{|}", "http://h/%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("http://h/?\"<>\\^`{|} ", "http://h/?%22%3C%3E%5C%5E%60%7B%7C%7D%20"),
        ("http://h/é漢😀", "http://h/%C3%A9%E6%BC%A2%F0%9F%98%80"),
        ("http://h/%41%zz%4", "http://h/%41%25zz%254"),
        ("http://h/100%", "http://h/100%25"),
        ("http://h/a[]=1;x:y@z!$&'()*+,", "http://h/a[]=1;x:y@z!$&'()*+,"),
        // Hosts.
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://[2001:DB8::1]", "http://[2001:db8::1]/"),
        ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
        ("http://[fe80::1%Eth0]/", "http://[fe80::1%25Eth0]/"),
        ("http://[::ffff:192.0.2.1]/", "http://[::ffff:c000:201]/"),
        ("http://[0:0:0:0:0:0:0:1]:8080/x", "http://[::1]:8080/x"),
        ("http://127.1:8080/x", "http://127.0.0.1:8080/x"),
        ("https://example.com./x", "https://example.com/x"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://b%C3%BCcher.EXAMPLE/", "http://xn--bcher-kva.example/"),
        // User information is separate.
        ("http://user:pass@h/x", "http://h/x"),
        ("http://@h/x", "http://h/x"),
    ])
    func urlsAreNormalized(input: String, expected: String) throws {
        let target = try Target(absolute: input)
        #expect(target.string == expected)
        // The form is stable, and the parts make up the whole.
        #expect(try Target(absolute: target.string) == Target(absolute: expected))
        #expect(try Target(absolute: expected).string == expected)
        #expect(target.string.hasSuffix(target.pathAndQuery))
        #expect(target.pathAndQuery == target.path + (target.query.map { "?" + $0 } ?? ""))
        #expect(target.pathAndQuery.hasPrefix("/"))
    }

    @Test func partsAreAvailable() throws {
        let target = try Target(absolute: "https://us%65r:p%40ss:x@Host.Example:8443/a/b?c=d&e#f")
        #expect(target.scheme == "https")
        #expect(target.isSecure)
        #expect(target.host == "host.example")
        #expect(target.port == 8443)
        #expect(target.origin == "https://host.example:8443")
        #expect(target.user == "user")
        #expect(target.password == "p@ss:x")
        #expect(target.path == "/a/b")
        #expect(target.query == "c=d&e")
        #expect(target.url?.absoluteString == "https://host.example:8443/a/b?c=d&e")
    }

    @Test func defaultPortsAppearInTheOriginOnly() throws {
        let plain = try Target(absolute: "http://h/x")
        #expect((plain.port, plain.origin, plain.scheme, plain.isSecure) == (80, "http://h:80", "http", false))
        #expect(try Target(absolute: "https://h").origin == "https://h:443")
        #expect(try Target(absolute: "https://h:443").origin == "https://h:443")
        #expect(plain.query == nil)
        #expect(try Target(absolute: "http://h/x?").query == "")
    }

    @Test(arguments: [
        ("http://[::1]/", "::1"), ("http://[FE80::A%25eth0]:1/", "fe80::a%eth0"), ("http://[::]/", "::"),
        ("http://[1:2:3:4:5:6:7:8]/", "1:2:3:4:5:6:7:8"), ("http://[1::]/", "1::"),
        ("http://[1:2:3:4:5:6:1.2.3.4]/", "1:2:3:4:5:6:102:304"), ("http://[1:2:3:4:5:6:7::]/", "1:2:3:4:5:6:7:0"),
        ("http://[::2:3:4:5:6:7:8]/", "0:2:3:4:5:6:7:8"),
    ])
    func ipv6AddressesComeWithoutBrackets(input: String, host: String) throws {
        #expect(try Target(absolute: input).host == host)
    }

    @Test(
        arguments: [
            ("a@h", "a", nil), ("a:@h", "a", ""), (":b@h", "", "b"), ("a:b:c@h", "a", "b:c"), ("a%40b:c@h", "a@b", "c"),
            ("a%5Cb@h", "a\\b", nil),
            ("%C3%A9:%25@h", "é", "%"), ("h", nil, nil), ("@h", nil, nil),
        ] as [(String, String?, String?)])
    func userInformationIsSplitAndDecoded(authority: String, user: String?, password: String?) throws {
        let target = try Target(absolute: "http://\(authority)/")
        #expect(target.user == user)
        #expect(target.password == password)
        #expect(target.host == "h")
    }

    @Test(arguments: [
        ("", "no scheme"), ("foo", "no scheme"), ("/foo", "no scheme"), ("//h/x", "no scheme"),
        ("1http://h", "no scheme"),
        (" http://h", "no scheme"), ("ftp://h/x", "scheme ftp"), ("file:///etc/passwd", "scheme file"),
        ("mailto:a@b", "scheme mailto"), ("localhost:8080/x", "scheme localhost"),
        ("javascript:x", "scheme javascript"),
        ("ws://h", "scheme ws"), ("http:", "no host"), ("http:/h", "no host"), ("http:h", "no host"),
        ("http://", "empty host"), ("http:///x", "empty host"), ("http://:80/", "empty host"),
        ("http://u@/", "empty host"),
        ("http://?q", "empty host"), ("http://h:99999/", "port"), ("http://h:0/", "port"), ("http://h:65536/", "port"),
        ("http://h:8o/", "port"), ("http://h:-1/", "port"), ("http://h:+1/", "port"), ("http://h: 80/", "port"),
        ("http://h:99999999999999999999/", "port"), ("http://::1/", "brackets"), ("http://a:b:c/", "colons"),
        ("http://[::1/", "not closed"), ("http://[::1]x/", "text after ]"), ("http://[]/", "IPv6"),
        ("http://[h]/", "IPv6"),
        ("http://[v1.x]/", "IPv6"), ("http://[1:2:3]/", "IPv6"), ("http://[1::2::3]/", "IPv6"),
        ("http://[:1]/", "IPv6"),
        ("http://[1:2:3:4:5:6:7:]/", "IPv6"), ("http://[12345::]/", "IPv6"), ("http://[::1.2.3]/", "IPv6"),
        ("http://[::1.2.3.256]/", "IPv6"), ("http://[:::]/", "IPv6"), ("http://[1:2:3:4:5:6:7:8:9]/", "IPv6"),
        ("http://[1:2:3:4:5:6:7:8::]/", "IPv6"), ("http://[fe80::1%25]/", "zone"), ("http://[fe80::1%a/b]/", "bracket"),
        ("http://a b/", "host contains"), ("http://h\\@evil/", "backslash"), ("http://a:\\@b/", "backslash"),
        ("http://a@b@c/", "an @"), ("http://a:b@c:d@h/", "an @"), ("http://h\\/x", "host contains"),
        ("http://h\\:80/", "host contains"), ("http://h:80\\/", "port"), ("http:\\\\h/", "no host"),
        ("http:/\\h/", "no host"), ("ht\ttp://h/", "no scheme"), ("http:\n//h/", "no host"),
        ("http://\th/", "host contains"),
        ("http://a\tb@h/", "control character"), ("http://h:8\n0/", "port"), ("http://[::1\n]/", "IPv6"),
        ("http://a\\b/", "host contains"),
        ("http://a%2fb/", "host contains"), ("http://a%00b/", "host contains"), ("http://a%0d%0ab/", "host contains"),
        ("http://a*b/", "host contains"), ("http://<h>/", "host contains"), ("http://%ff/", "UTF-8"),
        ("http://a%b/", "host contains"), ("http://h\n/", "host contains"), ("http://h/a\r\nX: y", "control character"),
        ("http://h/\0", "control character"), ("http://h/\u{7F}", "control character"),
        ("http://h/\n", "control character"),
        ("http://h/?a\tb", "control character"), ("http://h/#\r\n", "control character"),
        ("http://a%0d:b@h/", "control character"), ("http://a:b%00@h/", "control character"),
    ])
    func invalidURLIsRefusedWithItsReason(input: String, part: String) throws {
        let problem = #expect(throws: Target.Problem.self) { try Target(absolute: input) }
        let reason = try #require(problem).reason
        #expect(reason.contains(part), "\(reason)")
        #expect(!reason.utf8.contains { $0 < 0x20 || $0 == 0x7F })
    }

    @Test func everyByteOfAPathIsPlainEncodedOrRefused() throws {
        for byte in UInt8(0)..<128 {
            let scalar = Unicode.Scalar(byte)
            for prefix in ["http://h/x", "http://h/?x"] {
                let input = "\(prefix)\(scalar)y"
                if byte < 0x20 || byte == 0x7F {
                    #expect(throws: Target.Problem.self) { try Target(absolute: input) }
                } else if scalar == "#" {
                    #expect(try Target(absolute: input).string == prefix)
                } else if " \"<>\\^`{|}%".unicodeScalars.contains(scalar) {
                    let code = String(byte, radix: 16, uppercase: true)
                    #expect(try Target(absolute: input).string == "\(prefix)%\(code)y")
                } else {
                    #expect(try Target(absolute: input).string == input)
                }
            }
        }
    }

    @Test(arguments: [
        ("http://h/", "http://h/?a=1&b"), ("http://h/x?y=2", "http://h/x?y=2&a=1&b"),
        ("http://h/x?", "http://h/x?a=1&b"),
        ("http://h/x?y&", "http://h/x?y&a=1&b"), ("http://h/x&", "http://h/x&?a=1&b"),
    ])
    func queryItemsAreAppended(input: String, expected: String) throws {
        let target = try Target(absolute: input)
        #expect(target.appending(queryItems: [("a", "1"), ("b", nil)]).string == expected)
        #expect(target.appending(["a": 1, "b": .null]).string == expected)
        #expect(target.appending(queryItems: []).string == target.string)
        #expect(target.appending([:]) == target)
    }

    @Test func equalityCoversCredentials() throws {
        let target = try Target(absolute: "http://a:b@h/x")
        #expect(try target == Target(absolute: "HTTP://a:b@H:80/x"))
        #expect(try target != Target(absolute: "http://h/x"))
        #expect(try target != Target(absolute: "http://a:c@h/x"))
        #expect(try Set([target, Target(absolute: "http://a:b@h/x#y")]).count == 1)
    }

    @Test func foundationURLsAreConverted() throws {
        let url = try #require(URL(string: "https://example.com/a%20b?c=d#e"))
        #expect(try Target(url).string == "https://example.com/a%20b?c=d")
        let relative = try #require(URL(string: "c", relativeTo: URL(string: "http://h/a/b")))
        #expect(try Target(relative).string == "http://h/a/c")
        #expect(throws: Target.Problem.self) { try Target(#require(URL(string: "a/b"))) }
    }
}
