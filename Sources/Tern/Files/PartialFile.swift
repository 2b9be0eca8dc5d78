import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file that a download writes before it moves it to its destination. Only the download's own task uses it.
final class PartialFile: Sendable {
    private struct State {
        var path: String
        /// The descriptor of the open file; nil once it is closed.
        var descriptor: Int32?
        /// A descriptor that holds the lock of a complete, closed file until it is moved.
        var lock: Int32?
        var length: Int64
    }

    private let files: FileStore
    private let state: Lock<State>

    init(creating place: TemporaryPlace, _ files: FileStore) async throws(FileFailure) {
        self.files = files
        let (path, descriptor) = try await files.create(place)
        state = Lock(State(path: path, descriptor: descriptor, length: 0))
    }

    init(continuing path: String, at offset: Int64, _ files: FileStore) async throws(FileFailure) {
        self.files = files
        let descriptor = try await files.reopen(path, at: offset)
        state = Lock(State(path: path, descriptor: descriptor, length: offset))
    }

    var path: String { state.withLock { $0.path } }

    /// The number of bytes that are known to be written correctly.
    var writtenLength: Int64 { state.withLock { $0.length } }

    func write(_ chunks: [Data]) async throws(FileFailure) {
        guard let descriptor = state.withLock({ $0.descriptor }) else { return }
        let (written, failure) = await files.write(chunks, to: descriptor)
        state.withLock { $0.length += written }
        if let failure { throw failure.at(path) }
    }

    /// Moves the bytes of a body that have arrived to the file, at most `limit`.
    func move(upTo limit: Int64, through pipe: BodyPipe) async -> BodyPipe.Moved {
        guard let descriptor = state.withLock({ $0.descriptor }) else { return BodyPipe.Moved() }
        var moved = await files.move(upTo: limit, through: pipe, to: descriptor)
        state.withLock { $0.length += moved.count }
        moved.failure = moved.failure?.at(path)
        return moved
    }

    /// Takes back the bytes from an offset on. The end of the use of the file cuts them off.
    func cut(to offset: Int64) { state.withLock { $0.length = min($0.length, offset) } }

    /// Closes a complete file. Its lock is held until the file is moved or discarded.
    func close() async throws(FileFailure) {
        guard let descriptor = takeDescriptor() else { return }
        let (path, length) = state.withLock { ($0.path, $0.length) }
        let lock = try await files.finish(descriptor, path, at: length)
        state.withLock { $0.lock = lock }
    }

    /// Closes a file that will be continued. Returns its length; nil if the length cannot be trusted.
    func closeForResuming() async -> Int64? {
        // The file was complete. The failure came later.
        if state.withLock({ $0.lock != nil }) { return nil }
        do {
            try await suspend()
            return writtenLength
        } catch {
            return nil
        }
    }

    /// Closes a file that another response continues.
    func suspend() async throws(FileFailure) {
        let length = writtenLength
        // After a failed write the file can be longer than the number of correct bytes.
        do {
            if let descriptor = state.withLock({ $0.descriptor }) { try await files.truncate(descriptor, to: length) }
            if let descriptor = takeDescriptor() { try await files.close(descriptor) }
        } catch {
            throw error.at(path)
        }
    }

    /// Gives the file a name that sweeps ignore, because it belongs to the caller and can stay where it is.
    func release() async {
        let path = path
        let name = FilePath.name(of: path).split(separator: ".").first.map(String.init) ?? "tern"
        let released = await files.release(path, as: FilePath.join(FilePath.folder(of: path), "\(name).download"))
        state.withLock { $0.path = released }
    }

    /// Moves the file to its destination and returns the destination.
    func move(to destination: String, _ options: Download.Options) async throws(FileFailure) -> String {
        let (path, lock) = state.withLock { ($0.path, $0.lock) }
        let place = try await files.move(path, lock: lock, to: destination, options: options)
        await unlock()
        return place
    }

    /// Releases the lock of a file that stays where it is.
    func unlock() async {
        let lock = state.withLock { $0.lock.take() }
        // Only the lock is lost: the file was already closed.
        if let lock { try? await files.close(lock) }
    }

    /// Closes and removes the file. Failures are ignored, because the download already fails with its own error.
    func discard() async {
        try? await files.remove(path)
        if let descriptor = takeDescriptor() { try? await files.close(descriptor) }
        await unlock()
    }

    private func takeDescriptor() -> Int32? { state.withLock { $0.descriptor.take() } }
}
