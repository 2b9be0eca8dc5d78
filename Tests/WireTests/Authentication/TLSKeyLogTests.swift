#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import Testing

/// Compares the secrets of connections with those that servers of other authors know.
@Suite("Wire: TLS key log", .enabled(if: Programs.areExpected(["openssl"])), .timeLimit(.minutes(1)))
struct TLSKeyLogWireTests {
    /// The lines of a key log, without the comments of OpenSSL.
    private func lines(_ path: String) throws -> Set<Substring> {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.hasSuffix("\n"))
        return Set(text.split(separator: "\n").filter { !$0.hasPrefix("#") })
    }

    static func isLine(_ line: some StringProtocol) -> Bool {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[1].utf8.count == 64, [64, 96].contains(words[2].utf8.count) else { return false }
        let digits = "0123456789abcdef"
        return words[0].allSatisfy { $0 == "_" || $0.isNumber || $0.isASCII && $0.isUppercase }
            && words[1...].allSatisfy { $0.allSatisfy(digits.contains) }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func linesAreThoseOfTheServer(version: String) async throws {
        try await inTestFolder { folder in
            let chain = try TestChain(in: folder)
            let (path, own) = ("\(folder.path)/client.log", "\(folder.path)/server.log")
            let server = try await TLSServer(chain, "direct", [version, "-keylogfile", own])
            let keyLog = try TLSKeyLog(file: URL(filePath: path))
            // Each session has its own connection.
            for _ in 0..<2 {
                let session = Session(
                    configuration: .test {
                        $0.authorities = .file(chain.path("root.pem"))
                        $0.keyLog = keyLog
                    })
                _ = try await Client(session: session).get(server.url())
            }
            let found = try lines(path)
            #expect(found.allSatisfy(Self.isLine), "\(found)")
            let server12 = version == "-tls1_2"
            #expect(found.count(where: { $0.hasPrefix("CLIENT_RANDOM ") }) == (server12 ? 2 : 0))
            #expect(found.count == (server12 ? 2 : 10))
            #expect(try found == lines(own))
        }
    }

    /// A policy of a request, and one with authorities, have contexts of their own.
    @Test func closuresReceiveTheLinesOfEachPolicy() async throws {
        try await inTestFolder { folder in
            let chain = try TestChain(in: folder)
            let server = try await TLSServer(chain, "direct", ["-tls1_3"])
            let found = Lock<[String]>([])
            let session = Session(
                configuration: .test { configuration in
                    configuration.keyLog = TLSKeyLog { line in found.withLock { $0.append(line) } }
                })
            var request = try Request(.get, server.url())
            request.trust = .unchecked
            _ = try await session.response(for: request)
            #expect(found.withLock { $0.count } == 5)
            request.trust = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            _ = try await session.response(for: request)
            let all = found.withLock { $0 }
            #expect(all.count == 10 && all.allSatisfy(Self.isLine))
            #expect(Set(all.map { $0.split(separator: " ")[1] }).count == 2)
        }
    }

    @Test(.enabled(if: PeerServer.hasHTTP3, "caddy, or a library of HTTP/3, is missing"))
    func connectionsOverHTTP3AreLogged() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let found = Lock<[String]>([])
        let keyLog = TLSKeyLog { line in found.withLock { $0.append(line) } }
        let client = try peer.client(.http3) { $0.keyLog = keyLog }
        #expect(try await client.get("files/small", as: String.self) == "hello")
        let all = found.withLock { $0 }
        #expect(all.allSatisfy(Self.isLine), "\(all)")
        #expect(
            Set(all.map { $0.split(separator: " ")[0] }).isSuperset(of: [
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
                "SERVER_TRAFFIC_SECRET_0",
            ]))
        #expect(Set(all.map { $0.split(separator: " ")[1] }).count == 1)
        #expect(Set(all.map { $0.split(separator: " ")[2] }).count == all.count)
        // Another session of the process logs nothing.
        let other = try peer.client(.http3)
        #expect(try await other.get("files/small", as: String.self) == "hello")
        #expect(found.withLock { $0.count } == all.count)
    }
}

/// Decrypts a capture of the loopback interface. `make capture` runs it, with the right to capture.
@Suite(
    "Wire: capture with a TLS key log", .serialized, .timeLimit(.minutes(2)),
    .enabled(if: ProcessInfo.processInfo.environment["TERN_CAPTURE"] == "1", "make capture"))
struct TLSKeyLogCaptureTests {
    @Test(arguments: [PeerServer.Access.secure, .http2, .http3])
    func tsharkReadsWhatWasSent(access: PeerServer.Access) async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let folder = peer.folder.path
        let (keys, capture, log) = ("\(folder)/keys.log", "\(folder)/capture.pcapng", "\(folder)/dumpcap")
        let dumpcap = try Child(
            ["dumpcap", "-q", "-P", "-i", "lo", "-f", "port \(peer.ports.secure)", "-w", capture], output: log)
        _ = try await Child.find(in: log, within: 30) { $0.contains("File: ") ? true : nil }
        let keyLog = try TLSKeyLog(file: URL(filePath: keys))
        let client = try peer.client(access) { $0.keyLog = keyLog }
        let echoed = try await client.post(
            "via/echo", body: .text("a secret that only the key log reveals"), as: String.self)
        #expect(echoed.hasSuffix("reveals"))
        try await client.get("files/small?mark=decrypted")
        // tshark 4.0 does not read the header fields of HTTP/3.
        let (field, expected) =
            switch access {
            case .http3: ("http3.frame_payload", Array("that only the key".utf8).map { String($0, radix: 16) }.joined())
            case .http2: ("http2.headers.path", "mark=decrypted")
            case .plain, .secure: ("http.request.uri", "mark=decrypted")
            }
        // The capture is written some time after the packets.
        let deadline = ContinuousClock.now + .seconds(60)
        var said = ""
        while !said.contains(expected), ContinuousClock.now < deadline {
            let output = "\(folder)/tshark-\(UUID().uuidString)"
            let port = peer.ports.secure
            try Child.run(
                """
                tshark -r '\(capture)' -o tls.keylog_file:'\(keys)' \\
                    -d tcp.port==\(port),tls -d udp.port==\(port),quic -T fields -e \(field) 2>/dev/null || true
                """, output: output)
            said = try String(contentsOfFile: output, encoding: .utf8)
        }
        #expect(said.contains(expected), "\(said)")
        withExtendedLifetime(dumpcap) {}
    }
}
#endif
