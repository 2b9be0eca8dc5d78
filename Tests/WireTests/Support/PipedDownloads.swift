#if os(Linux) && !TERN_URLSESSION
import Dispatch
@testable import Tern
import TernConcurrency
import TernTesting
import Testing

/// A client whose files count the bytes that came out of pipes.
struct PipedDownloads {
    typealias Fault = @Sendable (_ call: String, _ path: String) -> Int32?

    /// The body that the server sends, unless a test has another one.
    static let pattern = LoopbackServer.Pattern(count: 5_000_000, seed: 3)

    let server: LoopbackServer
    let client: Client
    let folder: TestFolder
    private let counts: Log<Int>

    /// The number of bytes that the system moved, and of the writes in which it did.
    var pipedCount: Int { counts.all.reduce(0, +) }
    var writeCount: Int { counts.all.count }

    init(
        _ server: LoopbackServer, _ folder: TestFolder, _ configuration: Session.Configuration,
        fault: @escaping Fault
    ) {
        let counts = Log<Int>()
        self.counts = counts
        let files = FaultyFiles(willWriteFromPipe: { counts.add($0) }, fault: fault)
        let session = Session(
            configuration: configuration, transport: Session(configuration: configuration).tasks.transport,
            files: FileStore(files, executor: QueueExecutor("tern.test.pipes")))
        client = Client(baseURL: server.url, session: session)
        (self.server, self.folder) = (server, folder)
    }

    func expectFile(_ name: String, of pattern: LoopbackServer.Pattern = pattern) throws {
        let bytes = try folder.bytes(name)
        #expect(bytes.count == pattern.count && pattern.matches(bytes))
    }
}

func withPipedDownloads(
    configuration: Session.Configuration = .test(),
    handler: @escaping LoopbackServer.Handler = { try $0.serveFile(PipedDownloads.pattern) },
    fault: @escaping PipedDownloads.Fault = { _, _ in nil },
    test: (PipedDownloads) async throws -> Void
) async throws {
    try await inTestFolder { folder in
        let server = try LoopbackServer(handler: handler)
        defer { server.stop() }
        try await test(PipedDownloads(server, folder, configuration, fault: fault))
    }
}

/// Blocks the first write of bytes from a pipe, on the thread of the files.
final class BlockedWrite: Sendable {
    let isWaiting = LoopbackServer.Gate()
    private let mayEnd = DispatchSemaphore(value: 0)
    private let writes = Log<String>()

    var fault: PipedDownloads.Fault {
        { call, _ in
            guard call == "write from a pipe" else { return nil }
            self.writes.add(call)
            if self.writes.all.count > 1 { return nil }
            self.isWaiting.open()
            self.mayEnd.wait()
            return nil
        }
    }

    func end() { mayEnd.signal() }
}
#endif
