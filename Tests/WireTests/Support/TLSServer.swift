#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern

/// A chain of certificates for the tests: a root, an intermediate authority, and their server certificates for
/// 127.0.0.1; with the certificates of a stranger and of a client.
struct TestChain {
    let folder: String

    /// Makes certificates with these names: `root`, `middle`, `leaf` (root → middle → leaf), `direct` (root → direct),
    /// `expired` (root → expired), `stranger` (signed by itself), `client` (root → client).
    init(in folder: TestFolder) throws {
        self.folder = folder.path
        let extensions = """
            [authority]
            basicConstraints = critical, CA:TRUE
            keyUsage = critical, keyCertSign, cRLSign
            subjectKeyIdentifier = hash
            [server]
            subjectAltName = IP:127.0.0.1
            [ca]
            default_ca = lists
            [lists]
            database = index.txt
            default_md = sha256
            default_crl_days = 2
            """
        try folder.write(extensions, to: "openssl.conf")
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        func issue(_ name: String, by issuer: String, _ section: String, days: Int = 2) -> String {
            """
            openssl req \(key) -subj '/CN=\(name)' -keyout \(name).key -out \(name).csr
            openssl x509 -req -in \(name).csr -CA \(issuer).pem -CAkey \(issuer).key -CAcreateserial -days \(days) \\
                -extfile openssl.conf -extensions \(section) -out \(name).pem

            """
        }
        func sign(_ name: String, _ section: String) -> String {
            """
            openssl req \(key) -subj '/CN=\(name)' -keyout \(name).key -out \(name).csr
            openssl x509 -req -in \(name).csr -signkey \(name).key -days 2 -extfile openssl.conf \\
                -extensions \(section) -out \(name).pem

            """
        }
        try Child.run(
            """
            cd '\(folder.path)'
            \(sign("root", "authority"))
            \(sign("stranger", "server"))
            \(issue("middle", by: "root", "authority"))
            \(issue("leaf", by: "middle", "server"))
            \(issue("direct", by: "root", "server"))
            \(issue("expired", by: "root", "server", days: -1))
            \(issue("client", by: "root", "server"))
            cat middle.pem stranger.pem > sent.pem
            openssl pkcs8 -topk8 -in client.key -passout pass:key -out locked.key
            openssl pkcs12 -export -in client.pem -inkey client.key -passout pass:p12 -out client.p12
            : > index.txt
            openssl ca -config openssl.conf -gencrl -keyfile root.key -cert root.pem -out empty.crl
            serial=$(openssl x509 -in direct.pem -noout -serial | cut -d= -f2)
            printf 'R\\t361231235959Z\\t200101000000Z\\t%s\\tunknown\\t/CN=direct\\n' "$serial" > index.txt
            openssl ca -config openssl.conf -gencrl -keyfile root.key -cert root.pem -out revoked.crl
            """, output: "\(folder.path)/output")
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }
    func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: path(name))) }
    func certificate(_ name: String) throws -> Certificate { try Certificate.load(pem: bytes("\(name).pem"))[0] }
}

/// Runs `openssl s_server` on a free port of 127.0.0.1, which answers every GET with a page.
final class TLSServer: Sendable {
    private let child: Child
    let port: Int

    /// - Parameters:
    ///   - name: The name of the certificate that the server presents.
    ///   - arguments: Further arguments of `s_server`.
    init(_ chain: TestChain, _ name: String, _ arguments: [String] = []) async throws {
        let output = chain.path("server-\(UInt64.random(in: 0 ... .max)).out")
        child = try Child(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", chain.path("\(name).pem"), "-key",
                chain.path("\(name).key"),
            ] + arguments, output: output)
        port = try await Child.find(in: output, within: 30) { said in
            let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT") }
            return line?.split(separator: ":").last.flatMap { Int($0) }
        }
    }

    func url(host: String = "127.0.0.1") -> String { "https://\(host):\(port)/" }
}
#endif
