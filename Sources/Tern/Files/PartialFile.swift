import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file that a download is written to before it is put in its place. Its one user is the download's own task.
final class PartialFile: Sendable {
    let path: String
    private let files: FileStore
    /// nil once it is closed.
    private let descriptor: Lock<Int32?>
    private let length: Lock<Int64>

    init(creating path: String, _ files: FileStore) async throws(FileFailure) {
        self.path = path
        self.files = files
        descriptor = Lock(try await files.create(path))
        length = Lock(0)
    }

    init(continuing path: String, at offset: Int64, _ files: FileStore) async throws(FileFailure) {
        self.path = path
        self.files = files
        descriptor = Lock(try await files.reopen(path, at: offset))
        length = Lock(offset)
    }

    /// How many bytes of it are known to be good.
    var writtenLength: Int64 { length.withLock { $0 } }

    func write(_ chunks: [Data]) async throws(FileFailure) {
        guard let descriptor = descriptor.withLock({ $0 }) else { return }
        let (written, failure) = await files.write(chunks, to: descriptor)
        length.withLock { $0 += written }
        if let failure { throw failure }
    }

    func close() async throws(FileFailure) {
        guard let descriptor = takeDescriptor() else { return }
        try await files.close(descriptor)
    }

    /// Closes a file that is to be continued; its length, or nil when that cannot be relied upon.
    func closeKeeping() async -> Int64? {
        let length = length.withLock { $0 }
        do {
            // After a failed write the file may be longer than what is known to be good.
            if let descriptor = descriptor.withLock({ $0 }) { try await files.truncate(descriptor, to: length) }
            try await close()
            return length
        } catch {
            return nil
        }
    }

    /// Closes and removes the file. There is nobody to tell of a failure: the download's own error is on its way.
    func discard() async {
        if let descriptor = takeDescriptor() { try? await files.close(descriptor) }
        try? await files.remove(path)
    }

    private func takeDescriptor() -> Int32? {
        descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
    }
}
