#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Tern
import TernConcurrency

/// A proxy of another author on a free port of 127.0.0.1, which asks for the user "ada" and the password "a secret". It
/// ends with `stop()`, with its last reference, and with this process.
final class ProxyProgram: Sendable {
    /// The programs, and how they ask for credentials.
    enum Kind: String, Sendable, CaseIterable {
        case squidWithBasic = "squid with Basic"
        case squidWithDigest = "squid with Digest"
        case tinyproxy, microsocks
        case stunnelAndSquid = "stunnel before squid"
        case stunnelAndTinyproxy = "stunnel before tinyproxy"

        /// The programs that must be installed.
        var programs: [String] {
            switch self {
            case .squidWithBasic, .squidWithDigest: ["squid", "openssl"]
            case .tinyproxy, .microsocks: [rawValue]
            case .stunnelAndSquid: ["stunnel", "squid", "openssl"]
            case .stunnelAndTinyproxy: ["stunnel", "tinyproxy", "openssl"]
            }
        }

        /// The protocol between the client and the proxy.
        var proxyKind: Proxy.Kind {
            switch self {
            case .squidWithBasic, .squidWithDigest, .tinyproxy: .http
            case .microsocks: .socks5
            case .stunnelAndSquid, .stunnelAndTinyproxy: .https
            }
        }

        /// The proxy behind stunnel.
        fileprivate var backend: Kind? {
            switch self {
            case .stunnelAndSquid: .squidWithBasic
            case .stunnelAndTinyproxy: .tinyproxy
            default: nil
            }
        }
    }

    static let user = "ada"
    static let password = "secret"

    let kind: Kind
    private let folder: URL
    private let port: Int
    private let backend: ProxyProgram?
    private let child = Lock<Child?>(nil)

    init(_ kind: Kind) async throws {
        self.kind = kind
        port = try LoopbackPort.free()
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-proxy-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let next = kind.backend {
            backend = try await ProxyProgram(next)
            try TestAuthority.make(in: folder)
        } else {
            backend = nil
        }
        try await start()
    }

    deinit { stop() }

    /// Ends the program and its connections, and removes the folder.
    func stop() {
        child.withLock { $0 = nil }
        backend?.stop()
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
    }

    /// Ends the program, and starts it again on the same port.
    func restart() async throws {
        child.withLock { $0 = nil }
        guard await LoopbackPort.wait([port], areOpen: false) else {
            throw Child.Failure(description: "\(kind.rawValue) does not end")
        }
        try await start()
    }

    /// The address of the proxy with credentials.
    func proxy(password: String = ProxyProgram.password) -> Proxy {
        Proxy(kind.proxyKind, host: "127.0.0.1", port: UInt16(port), user: Self.user, password: password)
    }

    /// The certificate of the authority of an HTTPS proxy, in PEM form.
    var authority: Data {
        get throws { try Data(contentsOf: folder.appending(path: "ca.pem")) }
    }

    private func start() async throws {
        let output = folder.appending(path: "output-\(UUID().uuidString)").path
        let child = try Child(arguments(), output: output)
        guard await LoopbackPort.wait([port]) else {
            let said = try String(contentsOfFile: output, encoding: .utf8)
            throw Child.Failure(description: "\(kind.rawValue) does not start: \(said)")
        }
        self.child.withLock { $0 = child }
    }

    private func arguments() throws -> [String] {
        switch kind {
        case .squidWithBasic: try squid(helper: "basic_ncsa_auth", scheme: "basic")
        case .squidWithDigest: try squid(helper: "digest_file_auth", scheme: "digest")
        case .tinyproxy:
            [
                "tinyproxy", "-d", "-c",
                try file(
                    "tinyproxy.conf",
                    """
                    Port \(port)
                    Listen 127.0.0.1
                    Timeout 60
                    MaxClients 200
                    BasicAuth \(Self.user) \(Self.password)

                    """),
            ]
        case .microsocks:
            ["microsocks", "-i", "127.0.0.1", "-p", "\(port)", "-u", Self.user, "-P", Self.password]
        case .stunnelAndSquid, .stunnelAndTinyproxy:
            [
                "stunnel",
                try file(
                    "stunnel.conf",
                    """
                    foreground = yes
                    pid =
                    [proxy]
                    accept = 127.0.0.1:\(port)
                    connect = 127.0.0.1:\(backend?.port ?? 0)
                    cert = \(folder.path)/server.pem
                    key = \(folder.path)/server.key

                    """),
            ]
        }
    }

    private func squid(helper: String, scheme: String) throws -> [String] {
        // squid started by root continues as the user "proxy", which must be able to read and write here.
        if geteuid() == 0 { unsafe chmod(folder.path, 0o777) }
        let users = "\(folder.path)/users"
        if scheme == "basic" {
            try Child.run(
                "printf '%s:%s\\n' \(Self.user) \"$(openssl passwd -1 \(Self.password))\" > '\(users)'",
                output: "\(folder.path)/output")
        } else {
            _ = try file("users", "\(Self.user):\(Self.password)\n")
        }
        let path = try file(
            "squid.conf",
            """
            http_port 127.0.0.1:\(port)
            visible_hostname tern.test
            pid_filename \(folder.path)/squid.pid
            cache_log \(folder.path)/cache.log
            access_log none
            cache_store_log none
            netdb_filename none
            pinger_enable off
            coredump_dir \(folder.path)
            cache deny all
            cache_mem 4 MB
            max_filedescriptors 1024
            shutdown_lifetime 0 seconds
            auth_param \(scheme) program /usr/lib/squid/\(helper) \(users)
            auth_param \(scheme) children 2 startup=1 idle=1
            auth_param \(scheme) realm tern
            acl known proxy_auth REQUIRED
            http_access allow known
            http_access deny all

            """)
        return ["squid", "-N", "-f", path]
    }

    private func file(_ name: String, _ text: String) throws -> String {
        let path = folder.appending(path: name).path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
#endif
