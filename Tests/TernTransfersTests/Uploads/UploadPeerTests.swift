#if os(Linux)
import Foundation
import Glibc
import Tern
import TernTesting
import Testing

@testable import TernTransfers

/// Uploads to tuspyserver, a server of another author, under uvicorn.
@Suite(
    "Durable uploads: tuspyserver", .serialized, .timeLimit(.minutes(2)),
    .enabled(if: TusServer.isExpected, "there is no .build/venv; `make test` makes it"))
struct UploadPeerTests {
    private static let pattern = LoopbackServer.Pattern(count: 24 << 20, seed: 9)

    private func options() -> DurableUploadOptions {
        var options = DurableUploadOptions()
        options.retry.policy.firstDelay = .milliseconds(50)
        options.chunkSize = 1 << 20
        return options
    }

    private func client(_ server: TusServer) throws -> Client {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        return try Client(baseURL: "http://127.0.0.1:\(server.port)", session: Session(configuration: configuration))
    }

    @Test func fileSurvivesAKilledServer() async throws {
        try await inTestFolder { folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            let server = try await TusServer(in: folder)
            let client = try client(server)
            var options = options()
            options.metadata = ["filename": "é.bin"]
            let task = client.upload(folder.url("file"), resuming: .tus("files/"), options: options)
            for await progress in task.progress where progress.completedBytes >= 4 << 20 { break }
            try await server.restart()
            let result = try await task.value
            #expect(result.bytes == 24 << 20)
            let stored = try folder.bytes("stored/\(result.url.lastPathComponent)")
            #expect(Self.pattern.matches(stored) && stored.count == Self.pattern.count)
        }
    }

    @Test func laterUploadContinues() async throws {
        try await inTestFolder { folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            let server = try await TusServer(in: folder)
            let client = try client(server)
            let first = client.upload(folder.url("file"), resuming: .tus("files/"), options: options())
            for await progress in first.progress where progress.completedBytes >= 4 << 20 { break }
            first.cancel()
            _ = try await failure { try await first.value }
            let result = try await client.upload(folder.url("file"), resuming: .tus("files/"), options: options()).value
            #expect(result.sentBytes < 24 << 20 && result.trace.count == 1, "\(result.trace)")
            let stored = try folder.bytes("stored/\(result.url.lastPathComponent)")
            #expect(Self.pattern.matches(stored) && stored.count == Self.pattern.count)
        }
    }
}

/// tuspyserver on a free port of 127.0.0.1. It ends with its last reference.
private final class TusServer {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static var isExpected: Bool {
        ProcessInfo.processInfo.environment["CI"] == "true"
            || FileManager.default.fileExists(atPath: root.appending(path: ".build/venv/.installed").path)
    }

    private let folder: TestFolder
    private var process: TransferProcess?
    private(set) var port = 0

    init(in folder: TestFolder) async throws {
        self.folder = folder
        try folder.write(Data(Self.application.utf8), to: "server.py")
        try await start()
    }

    func restart() async throws {
        process?.kill()
        _ = try process?.end()
        try await start()
    }

    private func start() async throws {
        let file = folder.url("port")
        // A missing file is that of a first start.
        try? FileManager.default.removeItem(at: file)
        let python = Self.root.appending(path: ".build/venv/bin/python").path
        process = try TransferProcess(program: python, [folder.url("server.py").path, folder.path, "\(port)"])
        // The program writes the file when it listens, and nothing else tells it.
        for _ in 0..<4_000 {
            if let text = try? String(contentsOf: file, encoding: .utf8), let port = Int(text) {
                self.port = port
                return
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw NothingFailed()
    }

    private static let application = #"""
        import glob, json, os, random, socket, sys
        import uvicorn
        from fastapi import FastAPI
        from tuspyserver import create_tus_router

        folder, port = sys.argv[1], int(sys.argv[2])
        # tuspyserver 4.4.3 notes the bytes of a request when it ends, and appends the next ones: one that is killed in between
        # has bytes that it does not know of, and would have them twice.
        for name in glob.glob(f"{folder}/stored/*.info"):
            with open(name) as file:
                os.truncate(name.removesuffix(".info"), json.load(file)["offset"])
        app = FastAPI()
        app.include_router(create_tus_router(prefix="files", files_dir=f"{folder}/stored"))
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Outside the range that Linux gives to connections: one could take the port while the server is down.
        while listener.getsockname()[1] == 0:
            try:
                listener.bind(("127.0.0.1", port or random.randrange(10_000, 32_000)))
            except OSError:
                if port:
                    raise
        listener.listen()
        with open(f"{folder}/port.new", "w") as file:
            file.write(str(listener.getsockname()[1]))
        os.rename(f"{folder}/port.new", f"{folder}/port")
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
        """#
}
#endif
