#if !TERN_URLSESSION && os(Linux)
import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadTests {
    /// The result of an upload, and the calls of the file system that it took.
    private struct FileUpload {
        let result: Result<Received, NetworkError>
        /// The pieces that the system sent out of the file.
        let piecesSent: Int
        let readsInMemory: Int
        let readsOnDisk: Int
    }

    /// Uploads a file with the pattern. The first `pieces` pieces are sent out of the file by the system, and the first
    /// `limit` reads find it in memory. `change` can alter it before the second of these calls.
    private func upload(
        sending pieces: Int = 0, inMemory limit: Int,
        _ change: @escaping @Sendable (TestFolder) throws -> Void = { _ in }
    ) async throws -> FileUpload {
        let (sent, fast, slow) = (Counter(), Counter(), Counter())
        var result: Result<Received, NetworkError>?
        try await inTestFolder { folder in
            try folder.write(Self.pattern.bytes(), to: "body")
            let files = FaultyFiles { call, _ in
                switch call {
                case "countInMemory":
                    if sent.value == pieces { return 11 }
                    sent.add()
                    do { if sent.value == 1 { try change(folder) } } catch { return 5 }
                    return nil
                case "readInMemory":
                    fast.add()
                    do { if fast.value == 2, sent.value == 0 { try change(folder) } } catch { return 5 }
                    return fast.value > limit ? 11 : nil
                case "read":
                    slow.add()
                    return nil
                default: return nil
                }
            }
            try await withServer(Self.receive) { server, _ in
                let session = Session(
                    configuration: .test(), transport: Session(configuration: .test()).tasks.transport,
                    files: FileStore(files, executor: QueueExecutor("tern.test")))
                let client = Client(baseURL: server.url, session: session)
                do throws(NetworkError) {
                    let received: Received = try await client.upload("a", file: folder.url("body")).value
                    result = .success(received)
                } catch {
                    result = .failure(error)
                }
            }
        }
        return try FileUpload(
            result: #require(result), piecesSent: sent.value, readsInMemory: fast.value, readsOnDisk: slow.value)
    }

    /// Whether this system tells which bytes of a file are in memory (Linux 6.5).
    private static let tellsWhatIsInMemory: Bool = {
        let system = PosixFileSystem()
        guard let program = try? system.open("/proc/self/exe", .read) else { return false }
        defer { try? system.close(program) }
        return system.countInMemory(program, at: 0, count: 8) == 8
    }()

    @Test(.enabled(if: tellsWhatIsInMemory, "before Linux 6.5, files are copied"))
    func aFileInMemoryIsSentByTheSystem() async throws {
        let upload = try await upload(sending: .max, inMemory: .max)
        #expect(try upload.result.get() == Self.exact)
        #expect(upload.piecesSent > 1)
        // The bytes after the head, and the end of what the system can send.
        #expect(upload.readsInMemory <= 2)
        #expect(upload.readsOnDisk == 2)
    }

    @Test(.enabled(if: tellsWhatIsInMemory, "before Linux 6.5, files are copied"), arguments: [1, 2], [0, 1, 2])
    func aFileThatIsEvictedWhileTheSystemSendsItIsRead(pieces: Int, reads: Int) async throws {
        let upload = try await upload(sending: pieces, inMemory: reads)
        #expect(try upload.result.get() == Self.exact)
    }

    @Test(
        .enabled(if: tellsWhatIsInMemory, "before Linux 6.5, files are copied"),
        arguments: [-1_000_000, -100_000, -1, 1])
    func aFileThatChangesItsLengthWhileTheSystemSendsItFailsClearly(by difference: Int) async throws {
        let upload = try await upload(sending: .max, inMemory: .max) { folder in
            let system = PosixFileSystem()
            let file = try system.open("\(folder.path)/body", .update)
            try system.truncate(file, to: Int64(max(0, Self.pattern.count + difference)))
            try system.close(file)
        }
        let error = #expect(throws: NetworkError.self) { try upload.result.get() }
        #expect(error?.kind == .requestBody)
        #expect(error?.reason.contains("\(Self.pattern.count)") == true)
    }

    @Test func aFileInMemoryIsReadByTheTransportItself() async throws {
        let upload = try await upload(inMemory: .max)
        #expect(try upload.result.get() == Self.exact)
        #expect(upload.readsInMemory > 1)
        // The last byte of the file, and its end.
        #expect(upload.readsOnDisk == 2)
    }

    @Test(arguments: [0, 1, 3])
    func evictedFileIsReadOnTheFileThread(limit: Int) async throws {
        let upload = try await upload(inMemory: limit)
        #expect(try upload.result.get() == Self.exact)
        #expect(upload.readsInMemory == limit + 1)
        #expect(upload.readsOnDisk > 2)
    }

    @Test(arguments: [-100_000, -1, 1, 100_000])
    func fileWithChangedLengthFailsClearly(by difference: Int) async throws {
        let upload = try await upload(inMemory: .max) { folder in
            let system = PosixFileSystem()
            let file = try system.open("\(folder.path)/body", .update)
            try system.truncate(file, to: Int64(Self.pattern.count + difference))
            try system.close(file)
        }
        let error = #expect(throws: NetworkError.self) { try upload.result.get() }
        #expect(error?.kind == .requestBody)
        #expect(error?.reason.contains("\(Self.pattern.count)") == true)
    }
}
#endif
