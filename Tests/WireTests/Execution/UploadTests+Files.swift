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
    /// Uploads a file with the pattern, whose first reads find it in memory; `change` can alter it before the second
    /// read.
    private func upload(
        inMemory limit: Int, _ change: @escaping @Sendable (TestFolder) throws -> Void = { _ in }
    ) async throws -> (result: Result<Received, NetworkError>, readsInMemory: Int, readsOnDisk: Int) {
        let (fast, slow) = (Counter(), Counter())
        var result: Result<Received, NetworkError>?
        try await inTestFolder { folder in
            try folder.write(Self.pattern.bytes(), to: "body")
            let files = FaultyFiles { call, _ in
                switch call {
                case "readInMemory":
                    fast.add()
                    do { if fast.value == 2 { try change(folder) } } catch { return 5 }
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
        return (try #require(result), fast.value, slow.value)
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
