import Dispatch
import TernConcurrency
import TernJSON

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file of a cookie store. It is read once, and replaced as a whole by one writer at a time.
final class CookieFile: Sendable {
    private struct Snapshot: Codable {
        var version = 1
        var cookies: [Cookie]
    }

    private struct State {
        /// Whether a write is scheduled that has not read the cookies yet. It will contain all changes up to then.
        var isScheduled = false
        /// The content of the file.
        var written: Data?
    }

    private struct Unreadable: Error, CustomStringConvertible {
        let path: String
        var description: String { "\(path) was not written by a cookie store" }
    }

    /// The queue of all stores, so that no two writers use one temporary file.
    private static let queue = DispatchQueue(label: "tern.cookies")

    private let path: String
    private let system = PosixFileSystem()
    private let state = Lock(State())

    init(_ path: String) { self.path = path }

    func read(_ opening: CookieStore.Opening) throws -> [Cookie] {
        guard system.exists(path) else { return [] }
        let data = try contents()
        // The decoder's error could quote a value.
        if let snapshot = try? TernJSONDecoder().decode(Snapshot.self, from: data), snapshot.version == 1 {
            return snapshot.cookies
        }
        guard opening == .startingOverIfDamaged else { throw Unreadable(path: path) }
        try system.rename(path, to: path + ".damaged")
        return []
    }

    private func contents() throws(FileFailure) -> Data {
        let descriptor = try system.open(path, .read)
        defer { try? system.close(descriptor) }  // Only read.
        narrow(descriptor)
        var data = Data()
        do {
            while true {
                let chunk = try system.read(descriptor, at: Int64(data.count), count: 1 << 16)
                if chunk.isEmpty { return data }
                data += chunk
            }
        } catch {
            throw error.at(path)
        }
    }

    /// Removes the permissions of other users from a file of this user, for example one that was copied here. A file
    /// system that has no permissions or is read-only keeps the existing ones, and the cookies are still read.
    private func narrow(_ descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else {
            return
        }
        _ = fchmod(descriptor, status.st_mode & 0o700)
    }

    /// Schedules a write off the caller's thread. The next `write` reports a failure and tries again.
    func schedule(_ cookies: @escaping @Sendable () -> [Cookie]) {
        let isFirst = state.withLock { state in
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        guard isFirst else { return }
        // No caller waits for this write.
        Self.queue.async { _ = self.perform(cookies) }
    }

    /// Writes now and returns when the file is written.
    func write(_ cookies: @escaping @Sendable () -> [Cookie]) async throws(FileFailure) {
        let result = await withCheckedContinuation { continuation in
            Self.queue.async { continuation.resume(returning: self.perform(cookies)) }
        }
        try result.get()
    }

    private func perform(_ cookies: () -> [Cookie]) -> Result<Void, FileFailure> {
        state.withLock { $0.isScheduled = false }
        var encoder = TernJSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        // `try?`: dates are finite and texts are valid, so a cookie can always be encoded.
        guard let data = try? encoder.encode(Snapshot(cookies: cookies())) else {
            return .failure(FileFailure("encode", path, code: EINVAL))
        }
        if state.withLock({ $0.written == data }), system.exists(path) { return .success(()) }
        do throws(FileFailure) {
            try replace(with: data)
            state.withLock { $0.written = data }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Writes a new file beside the old one and syncs it to the disk before it replaces the old one.
    private func replace(with data: Data) throws(FileFailure) {
        let temporary = "\(path).\(getpid()).tmp"
        // The failure is that of saving: nobody asked for the temporary file, whose name would mislead.
        do throws(FileFailure) {
            try system.remove(temporary)  // A process with the same number can have left one.
        } catch {
            throw FileFailure("save", path, code: error.code)
        }
        let mask = S_IRUSR | S_IWUSR
        let descriptor = unsafe temporary.withCString {
            unsafe open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mask)
        }
        guard descriptor >= 0 else { throw FileFailure("save", path, code: errno) }
        do throws(FileFailure) {
            try system.write(data, to: descriptor)
            if fsync(descriptor) != 0 { throw FileFailure("sync", temporary, code: errno) }
        } catch {
            // The first failure is the one to report.
            try? system.close(descriptor)
            try? system.remove(temporary)
            throw error.at(path)
        }
        do throws(FileFailure) {
            try system.close(descriptor)
            try system.rename(temporary, to: path)
        } catch {
            try? system.remove(temporary)  // The first failure is the one to tell.
            throw error.at(path)
        }
    }
}
