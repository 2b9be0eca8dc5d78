import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A queue whose files are on a full disk, in a folder that cannot be written, or cannot be removed.
@Suite("Queue: disks", .timeLimit(.minutes(1)))
struct QueueDiskTests {
    static let pattern = LoopbackServer.Pattern(count: 600_000, seed: 6)

    /// Failures of calls on paths, which end when a test says so.
    private final class Fault: Sendable {
        private let isActive = Lock(true)
        private let code: Int32
        private let isMeant: @Sendable (_ call: String, _ path: String) -> Bool

        init(_ code: Int32, _ isMeant: @escaping @Sendable (_ call: String, _ path: String) -> Bool) {
            (self.code, self.isMeant) = (code, isMeant)
        }

        func end() { isActive.withLock { $0 = false } }

        var files: FaultyFiles {
            FaultyFiles { call, path in
                self.isActive.withLock { $0 } && self.isMeant(call, path) ? self.code : nil
            }
        }
    }

    private func withFaults(_ fault: Fault, test: (QueueTest) async throws -> Void) async throws {
        try await withQueue(configuration: .test { $0.system = fault.files }) {
            try $0.serveFile(Self.pattern)
        } test: {
            try await test($0)
        }
    }

    /// Checks that one of two items has failed in the system's words, that the other one has finished, and that the
    /// first one finishes when the fault has ended.
    private func expectRecovery(
        of failed: TransferQueue.ItemID, besides other: TransferQueue.ItemID, from words: String, _ test: QueueTest,
        file: String, _ end: () throws -> Void
    ) async throws {
        await test.queue.drained()
        let item = try #require(try await test.queue.item(failed))
        #expect(item.state == .failed(retryable: true) && item.failure?.kind == .fileSystem)
        #expect(item.failure?.reason.contains(words) == true, "\(item.failure?.reason ?? "")")
        #expect(item.failure?.reason.contains(file) == true, "\(item.failure?.reason ?? "")")
        #expect(try await test.state(other) == .finished)
        #expect(try !test.folder.names.contains(file))
        try end()
        #expect(try await test.queue.retry(.item(failed)) == 1)
        await test.queue.drained()
        #expect(try await test.state(failed) == .finished)
        #expect(Self.pattern.matches(try test.folder.bytes(file)))
        let names = try test.folder.names.filter { !$0.hasPrefix("queue") }
        #expect(names.allSatisfy { !$0.contains(".tern") }, "\(names)")
    }

    @Test func fullDiskFailsItsItemAlone() async throws {
        let fault = Fault(ENOSPC) { call, path in call == "write" && path.hasSuffix("/.big.tern") }
        try await withFaults(fault) { test in
            let ids = try await test.queue.enqueue(contentsOf: [test.download("big"), test.download("other")])
            try await expectRecovery(
                of: ids[0], besides: ids[1], from: "No space left on device", test, file: "big"
            ) { fault.end() }
        }
    }

    @Test func readOnlyFolderFailsItsItemAlone() async throws {
        let fault = Fault(EROFS) { call, path in call == "open" && path.contains("/locked/") }
        try await withFaults(fault) { test in
            try FileManager.default.createDirectory(
                at: test.folder.url("locked"), withIntermediateDirectories: false)
            let ids = try await test.queue.enqueue(contentsOf: [test.download("locked/big"), test.download("other")])
            try await expectRecovery(
                of: ids[0], besides: ids[1], from: "Read-only file system", test, file: "locked/big"
            ) { fault.end() }
        }
    }

    /// The last step of a download: the file is whole, and does not get its name.
    @Test func failedMoveFailsItsItemAlone() async throws {
        let fault = Fault(EACCES) { call, path in call == "rename" && path.hasSuffix("/.big.tern") }
        try await withFaults(fault) { test in
            let ids = try await test.queue.enqueue(contentsOf: [test.download("big"), test.download("other")])
            try await expectRecovery(
                of: ids[0], besides: ids[1], from: "Permission denied", test, file: "big"
            ) { fault.end() }
        }
    }

    /// An item whose folder cannot be written has no part, and can be removed.
    @Test func itemOfAReadOnlyFolderCanBeRemoved() async throws {
        let fault = Fault(EROFS) { call, path in call == "open" && path.contains("/locked/") }
        try await withFaults(fault) { test in
            try FileManager.default.createDirectory(at: test.folder.url("locked"), withIntermediateDirectories: false)
            let id = try await test.queue.enqueue(test.download("locked/big"))
            await test.queue.drained()
            #expect(try await test.state(id) == .failed(retryable: true))
            #expect(try await test.queue.remove(.item(id)) == 1)
            #expect(try await test.queue.snapshot.isEmpty)
        }
    }

    // MARK: Removal

    @Test func itemWhoseRowCannotBeRemovedStays() async throws {
        let isFull = Lock(true)
        try await withQueue(
            configuration: .test {
                $0.storeFault = { sql in sql.hasPrefix("DELETE") && isFull.withLock { $0 } ? 13 : nil }
            }
        ) {
            try $0.serveFile(Self.pattern)
        } test: { test in
            let done = try await test.queue.enqueue(test.download("done"))
            await test.queue.drained()
            let waiting = try await test.queue.enqueue(test.download("waiting") { $0.isPaused = true })
            let error = await #expect(throws: TransferQueueError.self) { try await test.queue.remove(.all) }
            #expect(error?.kind == .noSpace, "\(String(describing: error))")
            #expect(try await test.state(done) == .finished)
            #expect(try await test.state(waiting) == .failed(retryable: true))
            isFull.withLock { $0 = false }
            #expect(try await test.queue.remove(.all) == 2)
            #expect(try await test.queue.snapshot.isEmpty)
        }
    }

    /// Leaves an item with a part, and one without.
    private func withPart(
        _ fault: Fault, test: (QueueTest, TransferQueue.ItemID, TransferQueue.ItemID) async throws -> Void
    )
        async throws
    {
        try await withQueue(configuration: .test { $0.system = fault.files }) { exchange in
            if exchange.request["Range"] != nil { return try exchange.respond(status: 503) }
            try exchange.cut(Self.pattern, after: 300_000)
        } test: { queue in
            let id = try await queue.queue.enqueue(queue.download("big"))
            await queue.queue.drained()
            #expect(try queue.folder.names.contains(".big.tern"))
            let other = try await queue.queue.enqueue(queue.download("other") { $0.isPaused = true })
            try await test(queue, id, other)
        }
    }

    @Test(arguments: [".big.tern", ".big.tern.json"])
    func partThatCannotBeRemovedKeepsItsItem(name: String) async throws {
        let fault = Fault(EPERM) { call, path in call == "remove" && path.hasSuffix("/\(name)") }
        try await withPart(fault) { test, id, other in
            let error = await #expect(throws: TransferQueueError.self) { try await test.queue.remove(.all) }
            #expect(error?.kind == .notPermitted)
            #expect(error?.reason.contains("\(name): Operation not permitted") == true, "\(String(describing: error))")
            #expect(try await test.queue.item(other) == nil)
            let item = try #require(try await test.queue.item(id))
            #expect(item.state == .failed(retryable: true) && item.failure?.kind == .fileSystem)
            #expect(item.failure?.reason.contains("\(name): Operation not permitted") == true)
            #expect(try test.folder.names.contains(name))
            // The next process knows it, too.
            await test.queue.close()
            let queue = try await test.reopened { $0.system = fault.files }
            #expect(try await queue.snapshot.map(\.id) == [id])
            for await result in queue.results {
                #expect(result.id == id)
                break
            }
            fault.end()
            #expect(try await queue.remove(.item(id)) == 1)
            #expect(try await queue.snapshot.isEmpty)
            await queue.close()
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") }.isEmpty)
        }
    }

    /// A folder that somebody has put in the place of the part, which no user can remove as a file.
    @Test func folderInThePlaceOfAPartKeepsItsItem() async throws {
        try await withPart(Fault(EPERM) { _, _ in false }) { test, id, _ in
            let part = test.folder.url(".big.tern")
            try FileManager.default.removeItem(at: part)
            try FileManager.default.createDirectory(at: part, withIntermediateDirectories: false)
            let error = await #expect(throws: TransferQueueError.self) { try await test.queue.remove(.item(id)) }
            #expect(error?.reason.contains(".big.tern: Is a directory") == true, "\(String(describing: error))")
            #expect(try await test.state(id) == .failed(retryable: true))
            try FileManager.default.removeItem(at: part)
            #expect(try await test.queue.remove(.item(id)) == 1)
            #expect(try await test.queue.item(id) == nil)
        }
    }

    @Test func descriptionOfAnUploadThatCannotBeRemovedKeepsItsItem() async throws {
        let fault = Fault(EACCES) { call, path in call == "remove" && path.hasSuffix(".tern.json") }
        let uploads = UploadServer(.tus)
        for _ in 0..<8 { uploads.add(.cut(after: 0), to: "PATCH") }
        try await withQueue(configuration: .test { $0.system = fault.files }) {
            try uploads.answer($0)
        } test: { test in
            try test.folder.write(Data(count: 1_000), to: "photo")
            let id = try await test.queue.enqueue(
                .upload(test.folder.url("photo"), to: test.server.url("/files"), by: .tus))
            await test.queue.drained()
            let error = await #expect(throws: TransferQueueError.self) { try await test.queue.remove(.item(id)) }
            #expect(error?.kind == .notPermitted)
            #expect(try await test.state(id) == .failed(retryable: true))
            fault.end()
            #expect(try await test.queue.remove(.item(id)) == 1)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["photo"])
        }
    }

    #if os(Linux)
    /// A file system of 2 MiB in memory, which this process may mount.
    private func withSmallDisk(_ test: (TestFolder) async throws -> Void) async throws {
        try await inTestFolder { folder in
            try #require(unsafe mount("tmpfs", folder.path, "tmpfs", 0, "size=2m") == 0)
            defer { unsafe umount2(folder.path, Int32(MNT_DETACH)) }
            try await test(folder)
        }
    }

    /// Mounting needs rights that most users do not have.
    private static let mayMount: Bool = {
        let path = "/tmp/tern-mount-\(UInt64.random(in: 0 ... .max))"
        guard unsafe mkdir(path, 0o700) == 0 else { return false }
        defer { unsafe rmdir(path) }
        guard unsafe mount("tmpfs", path, "tmpfs", 0, "size=64k") == 0 else { return false }
        return unsafe umount2(path, 0) == 0
    }()

    @Test(.enabled(if: mayMount, "mounting a file system needs more rights"))
    func realDiskIsFullThenReadOnlyThenFree() async throws {
        try await withSmallDisk { disk in
            try await withQueue { exchange in
                // Without a size, the disk fills while the body arrives.
                try exchange.writeChunkedHead(headers: [("ETag", Self.pattern.etag)])
                let bytes = Self.pattern.bytes()
                for start in stride(from: 0, to: bytes.count, by: 50_000) {
                    try exchange.writeChunk(bytes[start..<(start + 50_000)])
                }
                try exchange.endChunks()
            } test: { test in
                try Data(count: 1_700_000).write(to: disk.url("filler"))
                let download = TransferQueue.Transfer.download(test.server.url("/big"), to: disk.url("big"))
                let ids = try await test.queue.enqueue(contentsOf: [download, test.download("other")])
                await test.queue.drained()
                var item = try #require(try await test.queue.item(ids[0]))
                #expect(item.state == .failed(retryable: true))
                #expect(item.failure?.reason.contains("No space left on device") == true)
                #expect(try await test.state(ids[1]) == .finished)
                #expect(try !disk.names.contains("big"))
                #expect(unsafe mount("", disk.path, "", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
                try await test.queue.retry(.item(ids[0]))
                await test.queue.drained()
                item = try #require(try await test.queue.item(ids[0]))
                #expect(item.failure?.reason.contains("Read-only file system") == true)
                #expect(unsafe mount("", disk.path, "", UInt(MS_REMOUNT), "size=8m") == 0)
                try await test.queue.retry(.item(ids[0]))
                await test.queue.drained()
                #expect(try await test.state(ids[0]) == .finished)
                #expect(Self.pattern.matches(try disk.bytes("big")))
                #expect(try disk.names == ["big", "filler"])
            }
        }
    }
    #endif
}
