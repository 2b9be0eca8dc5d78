#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Checks that policies see the host that is contacted, in every spelling.
@Suite("Wire: hosts", .timeLimit(.minutes(1)))
struct HostTests {
    private static let hello: LoopbackServer.Handler = { exchange in
        let cookie = exchange.request["Cookie"].map { " " + $0 } ?? ""
        try exchange.respond(headers: [("Set-Cookie", "a=1")], text: "\(exchange.request["Host"] ?? "none")\(cookie)")
    }

    @Test func everySpellingOfAnAddressIsOneHost() async throws {
        try await withServer(Self.hello) { server, client in
            for host in ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "\u{FF11}27\u{3002}1", "%3127.1"]
            {
                let request = try Request(.get, "http://\(host):\(server.port)/")
                let text = try await client.session.response(for: request, decode: .string).value
                let cookie = host == "127.1" ? "" : " a=1"
                #expect(text == "127.0.0.1:\(server.port)\(cookie)")
            }
            #expect(Set(server.requests.map(\.connectionIndex)) == [0])
        }
    }

    @Test(arguments: ["[::1%251]", "[::1%25lo]", "1.2.3.256", "a\\@b", "a@b@c", "xn--a", "a..b"])
    func hostsThatParsersReadDifferentlyAreRefused(host: String) async throws {
        let error = try await failure {
            try await Session(configuration: .test()).response(for: Request(.get, "http://\(host)/"))
        }
        #expect(error.kind == .invalidRequest)
    }

    @Test func aDotAtTheEndIsNotSent() async throws {
        try await withServer(Self.hello) { server, client in
            let request = try Request(.get, "http://localhost.:\(server.port)/")
            let text = try await client.session.response(for: request, decode: .string).value
            #expect(text == "localhost:\(server.port)")
        }
    }

    @Test(arguments: ["b\u{FC}cher.test", "B\u{DC}CHER.test.", "b%C3%BCcher.test", "xn--bcher-kva.test"])
    func internationalNamesAreConverted(host: String) async throws {
        let server = try LoopbackServer(handler: Self.hello)
        defer { server.stop() }
        let session = Session(
            configuration: .test { $0.hostAddresses = ["b\u{FC}cher.test:\(server.port)": ["127.0.0.1"]] })
        let request = try Request(.get, "http://\(host):\(server.port)/")
        let text = try await session.response(for: request, decode: .string).value
        #expect(text == "xn--bcher-kva.test:\(server.port)")
    }

    /// A host without a port stands for all of its ports. One with the port has precedence.
    @Test func theAddressesOfAHostApplyToEveryPort() async throws {
        let server = try LoopbackServer(handler: Self.hello)
        defer { server.stop() }
        let hosts = ["a.test": ["127.0.0.1"], "b.test": ["192.0.2.1"], "b.test:\(server.port)": ["127.0.0.1"]]
        let session = Session(configuration: .test { $0.hostAddresses = hosts })
        for host in ["a.test", "b.test"] {
            let request = try Request(.get, "http://\(host):\(server.port)/")
            let text = try await session.response(for: request, decode: .string).value
            #expect(text == "\(host):\(server.port)")
        }
    }

    @Test func anAddressCanNameItsPort() async throws {
        let server = try LoopbackServer(handler: Self.hello)
        defer { server.stop() }
        let session = Session(configuration: .test { $0.hostAddresses = ["a.test": ["127.0.0.1:\(server.port)"]] })
        let request = try Request(.get, "http://a.test:81/")
        #expect(try await session.response(for: request, decode: .string).value == "a.test:81")
    }

    @Test(arguments: [
        ("127.0.0.1:80", true), ("[::1]:80", true), ("::1", true), ("127.0.0.1:0", false), ("127.0.0.1:", false),
        ("127.0.0.1:65536", false), ("[::1]", false), ("[127.0.0.1]:80", false), ("a:80", false), ("", false),
    ])
    func addressesAreChecked(address: String, isValid: Bool) {
        var configuration = Session.Configuration()
        configuration.hostAddresses = ["a.test": [address]]
        do {
            try configuration.check()
            #expect(isValid)
        } catch {
            #expect(!isValid && error.kind == .invalidRequest && error.reason.contains("a.test"), "\(error)")
        }
    }

    @Test func redirectCanNameAHostInUTF8() async throws {
        let target = try LoopbackServer(handler: Self.hello)
        defer { target.stop() }
        let location = "http://b\u{FC}cher.test:\(target.port)/\u{E4}?\u{FC}"
        try await withServer(
            configuration: .test { $0.hostAddresses = ["xn--bcher-kva.test:\(target.port)": ["127.0.0.1"]] }
        ) { exchange in
            try exchange.write("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
        } test: { _, client in
            let text = try await client.get("/", as: String.self)
            #expect(text == "xn--bcher-kva.test:\(target.port)")
            #expect(target.requests.map(\.target) == ["/%C3%A4?%C3%BC"])
        }
    }

    /// The bytes as a whole are not UTF-8. Decoded as Latin-1, the host would differ.
    @Test func aLocationThatIsNotUTF8KeepsItsHost() async throws {
        let target = try LoopbackServer(handler: Self.hello)
        defer { target.stop() }
        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://"
        let port = ":\(target.port)/"
        let configuration = Session.Configuration.test {
            $0.hostAddresses = ["\u{EA}.test:\(target.port)": ["127.0.0.1"]]
        }
        try await withServer(configuration: configuration) { exchange in
            let isWhole = exchange.request.path == "/good"
            let host: [UInt8] = isWhole ? [0xC3, 0xAA] : [0xEA]
            try exchange.write(
                Array(head.utf8) + host + Array(".test\(port)?".utf8) + [0xC3, 0xBC, 0xFF, 13, 10, 13, 10])
        } test: { _, client in
            let text = try await client.get("good", as: String.self)
            #expect(text == "xn--bda.test\(port.dropLast())")
            #expect(target.requests.map(\.target) == ["/?%C3%BC%FF"])
            let error = try await failure { try await client.get("bad") }
            #expect(error.kind == .redirect)
            #expect(target.counts.requestsReceived == 1)
        }
    }

    @Test func aRedirectToAnotherSpellingStaysWithItsOrigin() async throws {
        try await withServer { exchange in
            if exchange.request.target == "/there" {
                return try exchange.respond(text: exchange.request["Authorization"] ?? "none")
            }
            let location = "http://0x7f.1:\(exchange.request["Host"]?.split(separator: ":").last ?? "")/there"
            try exchange.respond(status: 302, headers: [("Location", location)])
        } test: { _, client in
            let text = try await client.get("/", headers: ["Authorization": "Bearer t"], as: String.self)
            #expect(text == "Bearer t")
        }
    }
}
#endif
