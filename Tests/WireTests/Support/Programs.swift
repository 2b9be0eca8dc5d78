#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc

/// The programs of other authors that tests start.
enum Programs {
    private static let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]

    static func areInstalled(_ names: [String]) -> Bool {
        names.allSatisfy { name in folders.contains { unsafe access("\($0)/\(name)", X_OK) == 0 } }
    }

    /// Tests are skipped where one of these programs is missing. In CI, which installs them, they fail instead.
    static func areExpected(_ names: [String]) -> Bool {
        ProcessInfo.processInfo.environment["CI"] == "true" || areInstalled(names)
    }
}

/// An authority, and its certificate for 127.0.0.1 only: `localhost` is a wrong name.
enum TestAuthority {
    /// Makes `ca.pem`, `server.pem`, `server.key`, and `both.pem` with the server's certificate and its key.
    static func make(in folder: URL) throws {
        let request = """
            [req]
            distinguished_name = name
            prompt = no
            [name]
            CN = Tern test authority
            [authority]
            basicConstraints = critical, CA:TRUE
            keyUsage = critical, keyCertSign, cRLSign
            subjectKeyIdentifier = hash
            [server]
            subjectAltName = IP:127.0.0.1
            """
        try request.write(to: folder.appending(path: "openssl.conf"), atomically: true, encoding: .utf8)
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -config openssl.conf"
        try Child.run(
            """
            cd '\(folder.path)'
            openssl req -x509 \(key) -extensions authority -days 2 -keyout ca.key -out ca.pem
            openssl req \(key) -subj '/CN=Tern test server' -keyout server.key -out server.csr
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \\
                -extfile openssl.conf -extensions server -out server.pem
            cat server.pem server.key > both.pem
            """, output: folder.appending(path: "output").path)
    }
}
#endif
