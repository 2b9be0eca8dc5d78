import Foundation
import Tern

extension FuzzTarget {
    /// `Set-Cookie` fields of one server, and the `Cookie` field of a request that follows.
    static let cookies = [
        FuzzTarget(
            name: "cookies",
            seeds: { _ in CookieFuzzing.seeds.map { Array($0.joined(separator: "\n").utf8) } + CookieFuzzing.rawSeeds },
            run: { input, choice in try CookieFuzzing(Array(input), choice).run() })
    ]
}

/// One input: the server's URL, the request's URL and the fields, one on each line.
private struct CookieFuzzing {
    private let server: Target
    private let request: Target
    private let fields: [[UInt8]]
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    static let seeds = [
        ["https://www.a.example/b/c", "https://www.a.example/b/d", "a=1; Path=/b; Secure; HttpOnly", "c=2"],
        ["http://a.example/", "http://x.a.example/y", "a=b; Domain=a.example; Max-Age=60", "=nameless", "flag"],
        [
            "https://a.example/", "https://a.example/", "__Host-sid=1; Secure; Path=/", "__Secure-x=2; Secure",
            "=__Host-x",
        ],
        ["https://a.co.uk/", "https://b.co.uk/", "a=b; Domain=co.uk", "c=d; SameSite=None; Secure; Partitioned"],
        ["http://127.0.0.1/", "http://127.0.0.1/", "a=b; Expires=Fri, 07 Aug 2093 08:04:19 GMT; Max-Age=-", "a=c"],
        ["http://[::1]/", "http://[::1]/", "ü=é; Path=/", "a=\t b \t; Max-Age=99999999999999999999", "a=\"b;c\""],
        ["https://a.example/", "http://a.example/", "sid=1; Secure", "sid=2", "=sid=3", "a=; Max-Age=0", "==b"],
        ["https://a.example/", "https://a.example/"] + (0..<4).map { "n\($0)=" + String(repeating: "v", count: 1_900) },
    ]
    static let rawSeeds: [[UInt8]] = [
        Array("http://a.example/\nhttp://a.example/\na=".utf8) + [0xE9, 0x80, 0xFF] + Array("\nb=\r; Path=\u{1}".utf8),
        Array("http://a.example/\nhttp://a.example/\n".utf8) + [0xFC, 0x3D, 0x31] + Array("; Domain=.A.EXAMPLE".utf8),
    ]

    init(_ input: [UInt8], _ choice: UInt64) throws {
        let lines = input.split(separator: 10, omittingEmptySubsequences: false)
        func target(_ number: Int, _ fallback: String) throws -> Target {
            let text = lines.count > number ? String(decoding: lines[number], as: UTF8.self) : ""
            // Most mutated URLs are invalid: the cookies are tried with a valid one instead.
            do { return try Target(absolute: text) } catch { return try Target(absolute: fallback) }
        }
        server = try target(0, choice & 1 == 0 ? "https://www.a.example/b/c" : "http://a.example/")
        request = try target(1, choice & 2 == 0 ? "https://www.a.example/b/d" : "http://a.example/")
        fields = lines.dropFirst(2).map(Array.init)
    }

    func run() throws -> String {
        var jar = CookieJar()
        var outcomes: [String] = []
        for field in fields {
            switch jar.store(bytes: field, from: server, now: now) {
            case .stored: outcomes.append("stored")
            case .removed: outcomes.append("removed")
            case .refused(let refusal): outcomes.append(refusal.reason)
            }
        }
        for target in [server, request] { try check(&jar, target) }
        // Neither a host beside the server nor one with the same ending.
        for host in ["stranger.test", "x\(server.host)", "\(server.host).test"] {
            guard let foreign = try? Target(absolute: "https://\(host)/") else { continue }  // An address, as a rule.
            for cookie in jar.cookies(for: foreign, method: .get, isCrossSite: false, now: now) {
                let ending = "." + cookie.domain
                // A cookie of a domain above both.
                require(
                    !cookie.isHostOnly && foreign.host.hasSuffix(ending) && server.host.hasSuffix(ending),
                    "\(host) got a cookie of \(server.host)")
            }
        }
        try checkFile(&jar)
        let kind = outcomes.allSatisfy { $0 != "stored" } ? "rejected " : ""
        return kind + Set(outcomes).sorted().joined(separator: ", ") + ", \(jar.count)"
    }

    private func header(_ jar: inout CookieJar, _ target: Target) -> [UInt8]? {
        jar.headerBytes(for: target, method: .get, isCrossSite: false, now: now)
    }

    private func check(_ jar: inout CookieJar, _ target: Target) throws {
        let cookies = jar.cookies(for: target, method: .get, isCrossSite: false, now: now)
        guard let field = header(&jar, target) else { return require(cookies.isEmpty, "a cookie was not sent") }
        require(field.count <= 8_192, "a field of \(field.count) bytes")
        require(field.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }, "a control character in the field")
        let pairs = field.split(separator: UInt8(ascii: ";")).map { $0.drop { $0 == 0x20 } }
        require(pairs.count == cookies.count, "\(pairs.count) pairs of \(cookies.count) cookies")
        for (pair, cookie) in zip(pairs, cookies) {
            require(cookie.domain == target.host || !cookie.isHostOnly, "a cookie of another host")
            require(target.host == cookie.domain || target.host.hasSuffix("." + cookie.domain), "a foreign domain")
            require(target.isSecure || !cookie.isSecure, "a Secure cookie over plain http")
            // A value with an equals sign and without a name is sent as if it had one (RFC 6265bis §5.8.3).
            if cookie.name.isEmpty, cookie.value.utf8.contains(UInt8(ascii: "=")) { continue }
            var other = CookieJar()
            let secure = try Target(absolute: "https://a.example/")
            _ = other.store(bytes: Array(pair) + Array("; Secure; Path=/".utf8), from: secure, now: now)
            require(header(&other, secure) == Array(pair), "a pair is read as another one")
        }
    }

    /// Checks that a store sends the same cookies after they were written and read again.
    private func checkFile(_ jar: inout CookieJar) throws {
        var other = CookieJar()
        let data = try JSONEncoder().encode(jar.all(now: now))
        for cookie in try JSONDecoder().decode([Cookie].self, from: data) {
            if case .refused(let refusal) = other.insertChecked(cookie, now: now) {
                require(false, "a cookie was stored and is refused when it is read: \(refusal)")
            }
        }
        for target in [server, request] { require(header(&jar, target) == header(&other, target), "the file differs") }
    }

    private func require(_ holds: Bool, _ problem: @autoclosure () -> String) {
        precondition(holds, problem())
    }
}
