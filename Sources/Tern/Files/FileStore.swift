package import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Performs the file operations of all transfers. Each call that can wait for a disk runs on one dedicated thread, so
/// that a slow disk delays neither a socket nor the cooperative thread pool.
package actor FileStore {
    package static let shared = FileStore(PosixFileSystem())

    /// The number of bytes read at a time. A large size keeps the number of hops for a gigabyte at a thousand.
    private static let readSize = 1 << 20

    private let system: any FileSystem
    private let executor: QueueExecutor

    package init(_ system: any FileSystem, executor: QueueExecutor = .files) {
        self.system = system
        self.executor = executor
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    package func length(ofFile path: String) throws(FileFailure) -> Int64 { try system.length(of: path) }

    /// Returns the file's chunks from its beginning.
    package nonisolated func reader(ofFile path: String) async throws(FileFailure) -> ChunkSource {
        reader(of: try await openForReading(path), from: 0)
    }

    /// Returns the file's chunks from `start` on.
    nonisolated func reader(of file: OpenFile, from start: Int64) -> ChunkSource {
        var offset = start
        return ChunkSource {
            let chunk = try await self.read(file, at: offset)
            offset += Int64(chunk.count)
            return chunk.isEmpty ? nil : chunk
        }
    }

    func openForReading(_ path: String) throws(FileFailure) -> OpenFile {
        OpenFile(try system.open(path, .read), at: path, system)
    }

    private func read(_ file: OpenFile, at offset: Int64) throws(FileFailure) -> Data {
        do {
            return try system.read(file.descriptor, at: offset, count: Self.readSize)
        } catch {
            throw error.at(file.path)
        }
    }

    // MARK: Downloads

    /// The partial files that downloads are continuing.
    private var continued: Set<String> = []

    /// Claims a partial file for one download. Returns false if another download of the process is writing it.
    func claim(_ path: String) -> Bool { continued.insert(path).inserted }

    /// Ends a claim.
    func endClaim(_ path: String) { continued.remove(path) }

    func exists(_ path: String) -> Bool { system.exists(path) }

    /// Returns whether a partial file exists with at least this length. A shorter file is removed.
    func hasPartial(_ path: String, of length: Int64) throws(FileFailure) -> Bool {
        do {
            let descriptor = try system.open(path, .update)
            defer { try? system.close(descriptor) }  // Nothing was written.
            if try system.length(ofOpen: descriptor) >= length { return true }
        } catch  where error.code == Self.notThere {
            return false
        } catch {
            throw error.at(path)
        }
        try system.remove(path)
        return false
    }

    /// Creates a new file and returns its path and descriptor.
    func create(_ place: TemporaryPlace) throws(FileFailure) -> (path: String, descriptor: Int32) {
        var last: FileFailure?
        // A sweep can remove a new file before it is locked.
        for _ in 0..<4 {
            let path = place.newPath()
            do {
                return (path, try system.open(path, .create))
            } catch  where error.code == Self.wouldBlock {
                last = error
            }
        }
        throw last ?? FileFailure("open", place.folder, code: Self.wouldBlock)
    }

    /// Opens an existing file and cuts it at `length`, where writing continues.
    func reopen(_ path: String, at length: Int64) throws(FileFailure) -> Int32 {
        let descriptor = try system.open(path, .update)
        do throws(FileFailure) {
            guard try system.length(ofOpen: descriptor) >= length else {
                throw FileFailure("continue the partial file", path, code: Self.invalidArgument)
            }
            try system.truncate(descriptor, to: length)
        } catch {
            try? system.close(descriptor)  // The first failure is the one to report.
            throw error.at(path)
        }
        return descriptor
    }

    /// Writes chunks in order. `written` counts the bytes of the whole chunks, also when a later chunk fails.
    func write(_ chunks: [Data], to descriptor: Int32) -> (written: Int64, failure: FileFailure?) {
        var written: Int64 = 0
        do {
            for chunk in chunks {
                try system.write(chunk, to: descriptor)
                written += Int64(chunk.count)
            }
            return (written, nil)
        } catch {
            return (written, error)
        }
    }

    /// Moves the bytes of a body that have arrived to the file, at most `limit`.
    func move(upTo limit: Int64, through pipe: BodyPipe, to descriptor: Int32) -> BodyPipe.Moved {
        pipe.move(upTo: limit) { count throws(FileFailure) in try system.write(count, from: pipe, to: descriptor) }
    }

    func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure) {
        try system.truncate(descriptor, to: length)
    }

    func close(_ descriptor: Int32) throws(FileFailure) { try system.close(descriptor) }

    /// Closes a complete file. Returns a descriptor that holds the file's lock, which the caller closes.
    func finish(_ descriptor: Int32, _ path: String, at length: Int64) throws(FileFailure) -> Int32 {
        var lock: Int32?
        var isOpen = true
        do throws(FileFailure) {
            guard try system.length(ofOpen: descriptor) == length else {
                throw FileFailure("find every written byte of", path, code: Self.inputOutput)
            }
            let holder = try system.holdLock(of: descriptor)
            lock = holder
            isOpen = false
            try system.close(descriptor)
            return holder
        } catch {
            // The first failure is the one to report.
            if isOpen { try? system.close(descriptor) }
            if let lock { try? system.close(lock) }
            throw error.at(path)
        }
    }

    /// Renames a file that belongs to the caller from now on, so that no sweep removes it. Returns its new path.
    func release(_ path: String, as released: String) -> String {
        do {
            try system.renameIfAbsent(path, to: released)
            return released
        } catch {
            // The file keeps its name until the caller moves it.
            return path
        }
    }

    func remove(_ path: String) throws(FileFailure) { try system.remove(path) }

    func makeFolders(_ path: String) throws(FileFailure) { try system.makeFolders(path) }

    /// Refuses a destination that is not a regular file, or a link to something else: a rename would replace a device,
    /// or a pipe that others have open. Refuses a name that is too long. A destination that cannot be examined is left
    /// to the move.
    package func checkPlace(_ destination: String) throws(FileFailure) {
        do {
            _ = try system.length(of: destination)
        } catch  where error.code == Self.isFolder {
            throw FileFailure("replace the folder", destination, code: error.code)
        } catch  where error.code == Self.invalidArgument {
            throw FileFailure("replace", destination, code: error.code, reason: "it is a device, pipe or socket")
        } catch  where error.code == ENAMETOOLONG {
            throw FileFailure("create", destination, code: error.code)
        } catch {}
    }

    /// Moves a file to its destination in one step and returns the destination. `lock` is a descriptor of the file.
    package func move(
        _ path: String, lock: Int32?, to destination: String, options: Download.Options
    ) throws(FileFailure) -> String {
        try checkPlace(destination)
        let folder = FilePath.folder(of: destination)
        if options.createsFolders { try system.makeFolders(folder) }
        do {
            if let lock { setPermissions(of: lock, for: destination, options) }
            return try rename(path, to: destination, existing: options.existing)
        } catch {
            // The file was not moved, and may be kept as a part: only its owner may read it.
            if let lock { system.setPermissions(of: lock, true, folder: folder) }
            guard error.code == Self.crossDevice else { throw error }
            // The destination is on another file system: copy beside it first, so that the last step is a rename again.
            do {
                return try copy(path, to: destination, options)
            } catch {
                // Nobody knows the temporary file, whose name would mislead.
                throw FileFailure("copy to", destination, code: error.code, reason: error.reason)
            }
        }
    }

    /// Copies a file beside its destination, moves the copy there, and removes the file.
    private func copy(
        _ path: String, to destination: String, _ options: Download.Options
    ) throws(FileFailure) -> String {
        let (folder, name) = (FilePath.folder(of: destination), FilePath.name(of: destination))
        let (copy, target) = try create(TemporaryPlace(folder: folder, destination: name))
        var open: Int32? = target
        do {
            let length = try copyFile(path, to: target)
            open = nil
            let lock = try finish(target, copy, at: length)
            defer { try? system.close(lock) }  // It was closed already but for its lock.
            setPermissions(of: lock, for: destination, options)
            let place = try rename(copy, to: destination, existing: options.existing)
            try system.remove(path)
            return place
        } catch {
            // The first failure is the one to report.
            if let open { try? system.close(open) }
            try? system.remove(copy)
            throw error
        }
    }

    /// Gives a file the permissions of the file that it replaces, so that replacing does not let more users read it.
    /// Without such a file, gives it those of a new file.
    private func setPermissions(of descriptor: Int32, for destination: String, _ options: Download.Options) {
        if options.existing == .overwrite, PosixFileSystem.copyPermissions(from: destination, to: descriptor) { return }
        system.setPermissions(of: descriptor, false, folder: FilePath.folder(of: destination))
    }

    private func rename(
        _ path: String, to destination: String, existing: Download.Existing
    ) throws(FileFailure) -> String {
        switch existing {
        case .overwrite:
            try system.rename(path, to: destination)
            return destination
        case .fail:
            try system.renameIfAbsent(path, to: destination)
            return destination
        case .keepBoth:
            for number in 0... {
                let candidate = number == 0 ? destination : Download.numbered(destination, number)
                do {
                    try system.renameIfAbsent(path, to: candidate)
                    return candidate
                } catch  where error.code == Self.alreadyThere {
                    continue
                }
            }
            return destination
        }
    }

    /// Copies a file and returns the number of bytes copied.
    private func copyFile(_ path: String, to target: Int32) throws(FileFailure) -> Int64 {
        let source = try system.open(path, .read)
        defer { try? system.close(source) }  // Only read.
        var offset: Int64 = 0
        while true {
            let bytes = try system.read(source, at: offset, count: Self.readSize)
            if bytes.isEmpty { return offset }
            try system.write(bytes, to: target)
            offset += Int64(bytes.count)
        }
    }

    private static let crossDevice: Int32 = 18
    private static let alreadyThere: Int32 = 17
    private static let isFolder: Int32 = 21
    private static let invalidArgument: Int32 = 22
    private static let notThere: Int32 = 2
    private static let inputOutput: Int32 = 5
    private static let wouldBlock = EWOULDBLOCK
}
