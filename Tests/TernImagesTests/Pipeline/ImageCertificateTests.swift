#if os(Linux)
import Foundation
import Tern
import TernTesting
import Testing

@testable import TernImages

/// Loads an image over TLS from a server whose certificate no authority has signed.
@Suite(.enabled(if: PictureTLSServer.isExpected, PictureTLSServer.absence), .timeLimit(.minutes(1)))
struct ImageCertificateTests {
    @Test func anInvalidCertificateIsAcceptedOnlyForTheRequestThatAllowsIt() async throws {
        let server = try PictureTLSServer(picture: Pictures.png(40, 30))
        defer { server.stop() }
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(configuration: .withoutProxies)
        configuration.disk = .none
        configuration.reachability = nil
        configuration.pressure = nil
        let pipeline = ImagePipeline(configuration: configuration)
        var request = ImageRequest(try url("https://127.0.0.1:\(server.port)/picture"))
        request.options.retriesFailed = true
        func refusal() async -> NetworkError.Kind? {
            (await pipeline.failure(of: request)?.underlying as? NetworkError)?.kind
        }

        #expect(await refusal() == .untrustedServer)
        request.options.allowsInvalidCertificates = true
        #expect(try await pipeline.response(for: request).source == .network)
        #expect(try await pipeline.image(from: request).size == PixelSize(width: 40, height: 30))
        // Neither the image nor the connection serves a request without the option.
        request.options.allowsInvalidCertificates = false
        #expect(pipeline.cachedImage(for: request) == nil)
        #expect(await refusal() == .untrustedServer)
    }
}

extension Session.Configuration {
    fileprivate static var withoutProxies: Self {
        var configuration = Self()
        configuration.proxies = .none
        return configuration
    }
}

/// Runs `openssl s_server` with a certificate that signs itself. It answers `/picture` with an image.
private final class PictureTLSServer {
    struct Failure: Error {}

    static let isExpected =
        ProcessInfo.processInfo.environment["CI"] == "true"
        || ["/usr/local/bin", "/usr/bin", "/bin"].contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/openssl")
        }
    static let absence: Comment = "openssl is not installed; `make test` installs it"

    let port: Int
    private let folder: ScratchFolder
    private let shell = Process()
    /// The server ends when this pipe is closed, also if the test's process ends early.
    private let input = Pipe()

    init(picture: Data) throws {
        folder = try ScratchFolder()
        let head = "HTTP/1.0 200 OK\r\nContent-Type: image/png\r\nContent-Length: \(picture.count)\r\n\r\n"
        try (Data(head.utf8) + picture).write(to: folder.url.appending(path: "picture"))
        let script = """
            exec 2>&1
            cd '\(folder.url.path)'
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=stranger -days 2 \\
                -addext 'subjectAltName = IP:127.0.0.1' -keyout key.pem -out certificate.pem
            openssl s_server -accept 127.0.0.1:0 -HTTP -cert certificate.pem -key key.pem & child=$!
            read -r line
            kill -9 $child
            wait $child
            """
        let output = Pipe()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments = ["-c", script]
        shell.standardInput = input
        shell.standardOutput = output
        try shell.run()
        var said = Data()
        while true {
            let chunk = output.fileHandleForReading.availableData
            if chunk.isEmpty { throw Failure() }
            said += chunk
            // The line is `ACCEPT 127.0.0.1:PORT`.
            let lines = String(decoding: said, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            if let line = lines.dropLast().first(where: { $0.hasPrefix("ACCEPT") }),
                let port = line.split(separator: ":").last.flatMap({ Int($0) })
            {
                self.port = port
                break
            }
        }
        // The server writes a line for each connection.
        output.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    }

    func stop() {
        // The pipe is closed twice at most, which does no harm.
        try? input.fileHandleForWriting.close()
        shell.waitUntilExit()
    }
}
#endif
