#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import Testing

/// Checks which servers TLS trusts.
@Suite("nginx: TLS", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct NginxTLSTests {
    private let nginx: Nginx

    init() async throws {
        nginx = try await Nginx()
    }

    /// Expects that the server has seen no refused request: of two requests it has logged only the second.
    private func expectNothingWasSent(_ error: NetworkError) async throws {
        #expect(error.metrics?.sentBytes == 0)
        #expect(error.response == nil)
        let client = try nginx.secureClient()
        try await client.get("hello", query: ["after": 1])
        // The log is written after the response.
        while try nginx.accessLog().isEmpty { await Task.yield() }
        #expect(try nginx.accessLog() == ["GET /hello?after=1 HTTP/2.0 200"])
    }

    @Test func privateAuthorityIsTrustedByFileAndByBytes() async throws {
        defer { nginx.stop() }
        for http2 in [true, false] {
            let byFile = try nginx.secureClient { $0.allowsHTTP2 = http2 }
            let response = try await byFile.response(for: byFile.request(.get, "hello"), as: String.self)
            #expect(response.value == "hello")
            #expect(response.metrics.tls.map { $0 > .zero } == true)
            let pem = try Data(contentsOf: URL(filePath: nginx.authorityFile))
            let byBytes = try nginx.secureClient {
                $0.allowsHTTP2 = http2
                $0.authorities = .pem(pem)
            }
            #expect(try await byBytes.get("hello", as: String.self) == "hello")
        }
    }

    @Test func unknownAuthorityIsRefusedBeforeSending() async throws {
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.authorities = .system }
        let error = try await failure { try await client.post("echo", body: .text("a secret")) }
        #expect(error.kind == .untrustedServer)
        #expect(error.reason.contains("127.0.0.1:\(nginx.securePort)"))
        // The wording of OpenSSL.
        #expect(error.reason.contains("unable to get local issuer certificate"))
        #expect(!"\(error)".contains("secret"))
        try await expectNothingWasSent(error)
    }

    @Test func certificateOfAnotherNameIsRefusedBeforeSending() async throws {
        defer { nginx.stop() }
        let client = try nginx.secureClient(host: "localhost")
        let error = try await failure { try await client.post("echo", body: .text("a secret")) }
        #expect(error.kind == .untrustedServer)
        #expect(error.reason.contains("localhost:\(nginx.securePort)"))
        #expect(error.reason.contains("matches target host name 'localhost'"))
        try await expectNothingWasSent(error)
    }

    @Test(arguments: ["no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", ""])
    func unreadableAuthoritiesTrustNoServer(text: String) async throws {
        defer { nginx.stop() }
        let file = nginx.folder.appending(path: "broken.pem")
        try Data(text.utf8).write(to: file)
        for authorities in [
            Session.Configuration.Authorities.file(file.path), .pem(Data(text.utf8)),
            .file(nginx.folder.appending(path: "absent.pem").path),
        ] {
            let client = try nginx.secureClient { $0.authorities = authorities }
            let error = try await failure { try await client.get("hello") }
            #expect(error.kind == .tls || error.kind == .untrustedServer, "\(authorities): \(error)")
        }
    }

    @Test func plainHTTPOnATLSPortIsItsOwnError() async throws {
        defer { nginx.stop() }
        let address = "127.0.0.1:\(nginx.securePort)"
        let client = try Client(baseURL: "http://\(address)", session: Session(configuration: .test()))
        let error = try await failure { try await client.get("hello") }
        #expect(error.status == 400)
    }

    @Test func tlsOnAPlainPortIsATLSError() async throws {
        defer { nginx.stop() }
        let address = "127.0.0.1:\(nginx.plainPort)"
        let client = try Client(baseURL: "https://\(address)", session: Session(configuration: .test()))
        let error = try await failure { try await client.get("hello") }
        #expect(error.kind == .tls)
        #expect(error.reason.contains(address))
    }
}
#endif
