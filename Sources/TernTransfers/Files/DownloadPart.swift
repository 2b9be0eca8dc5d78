import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The partial file of one download and its control file. It makes all calls that can wait for a disk, on a thread that
/// all durable downloads share.
///
/// The lock on the control file decides who may write. The control file is replaced by renaming a new one, which is
/// locked before: whoever then gets the lock of the old one finds that it has no name, and opens again.
///
/// A small file stays in memory until it is whole, because a killed process may lose as much. It then has a control
/// file for the lock, and a partial file for the time of its move.
///
/// The end of the files, and what is written in segments, is in `DownloadPart+Ends.swift`.
actor DownloadPart {
    /// The executor of all parts.
    static let executor = QueueExecutor("tern.transfers")
    /// The number of bytes that one download writes before others have their turn, unless each write waits for the
    /// disk.
    private static let turnBytes: Int64 = 1 << 20
    /// The number of bytes after which a synchronizing download waits for the disk.
    private static let synchronizedBytes: Int64 = 8 << 20
    private static let readSize = 1 << 20
    /// The greatest size of a file that stays in memory until it is whole, in bytes: as much as a killed process may
    /// lose.
    static let smallSize: Int64 = 256 << 10

    /// The state of the files when the lock was taken.
    struct Found: Sendable {
        /// The valid control file; nil for none.
        var control: ControlFile?
        /// The reason why a control file cannot be used; nil if there is none or it is valid.
        var problem: ControlFile.Problem?
        /// The length of the partial file; nil if there is none.
        var length: Int64?
        /// Whether the partial file was complete before the process ended, and still is.
        var isComplete = false
        /// Whether the control file was written since the system was last started. A loss of power in between can have
        /// taken bytes that had been verified.
        var isFromThisBoot = false
        /// The length of the destination if a file has been moved there and only its control file is left; nil
        /// otherwise.
        var finishedLength: Int64?
    }

    nonisolated let destination: String
    nonisolated let names: ControlNames
    nonisolated let folder: String
    nonisolated var partialPath: String { FilePath.join(folder, names.partial) }
    nonisolated var controlPath: String { FilePath.join(folder, names.control) }

    let system: any FileSystem
    let files: FileStore
    let synchronizes: Bool
    /// Whether the file is on the disk before it has its name.
    let synchronizesEnd: Bool
    let lock: ControlLock
    /// The number of bytes written since others had their turn.
    private var bytesOfTurn: Int64 = 0
    var control: ControlFile?
    /// Whether the control file is empty: this download created it, and has not begun.
    var isControlEmpty = false
    /// Whether this download has begun or continued the part.
    var isAdopted = false
    /// Whether the file has its name.
    var isMoved = false
    var descriptor: Int32?
    /// The bytes of a small file that is not on the disk yet; nil for other files.
    var unwritten: [Data]?
    /// The number of bytes that are known to be written correctly.
    var length: Int64 = 0
    private var unsynchronized: Int64 = 0
    /// Whether the part is to be written in segments, and its space is not reserved yet.
    var isUnallocated = false
    /// The permissions of a file at the destination that became this part; nil for none.
    var takenPermissions: UInt32?
    /// The reason why files that were to be removed are there; nil for none.
    var notRemoved: FileFailure?

    /// Creates the part of a download that has not begun.
    ///
    /// - Parameters:
    ///   - synchronizes: Whether the bytes are written to the disk as they arrive.
    ///   - synchronizesEnd: Whether they are on the disk before the file has its name, and its name before the download
    ///     ends.
    init(destination: String, synchronizes: Bool, synchronizesEnd: Bool = false, system: any FileSystem) {
        self.destination = destination
        self.synchronizes = synchronizes
        self.synchronizesEnd = synchronizes || synchronizesEnd
        self.system = system
        folder = FilePath.folder(of: destination)
        names = ControlNames(destination: FilePath.name(of: destination))
        files = FileStore(system, executor: Self.executor)
        lock = ControlLock(FilePath.join(folder, names.control), system)
    }

    // A failed call can leave the descriptor open.
    deinit { if let descriptor { try? system.close(descriptor) } }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe Self.executor.asUnownedSerialExecutor() }

    // MARK: The lock

    /// Takes the lock. Returns false if another download has it.
    ///
    /// - Parameter createsFolder: Whether missing folders are created.
    func acquire(createsFolder: Bool) throws(FileFailure) -> Bool {
        if createsFolder { try system.makeFolders(folder) }
        return try lock.acquire()
    }

    /// Returns the URL in the control file of the download that has the lock; nil if it cannot be read.
    func otherURL() -> String? {
        // `try?`: the other download may remove the file at any time.
        (try? ControlFile(read(controlPath, at: 0, until: Int64(ControlFile.limit) + 1), names: names))?.url
    }

    // Nonisolated, because the system is asked by path, and no state of the part.

    /// Whether there is a control file.
    nonisolated var hasControl: Bool { DiskCall.identity(of: controlPath) != nil }

    /// Whether there is a file that the download would continue or remove.
    nonisolated var hasFiles: Bool { hasControl || DiskCall.identity(of: partialPath) != nil }

    /// Returns the identity of the file at the destination; nil for none.
    nonisolated func destinationIdentity() -> DiskCall.Identity? { DiskCall.identity(of: destination) }

    // MARK: Opening

    /// Reads the control file and opens the partial file. Called once, with the lock.
    func load() throws(FileFailure) -> Found {
        // The process can have been killed between two versions of the control file.
        if !lock.isNew { try system.remove(FilePath.join(folder, names.nextControl)) }
        var found = Found()
        let bytes = lock.isNew ? Data() : try lock.read()
        isControlEmpty = bytes.isEmpty
        if !bytes.isEmpty {
            do throws(ControlFile.Problem) {
                found.control = try ControlFile(bytes, names: names)
            } catch {
                found.problem = error
            }
        }
        control = found.control
        if !lock.isNew { _ = try removeFinishedPart() }
        do throws(FileFailure) {
            let opened = try system.open(partialPath, .update)
            descriptor = opened
            found.length = try system.length(ofOpen: opened)
        } catch {
            // A file with two names cannot be opened, and its control file may have been removed.
            let isGone = error.code == DiskCall.refused ? try removeFinishedPart() : error.code == DiskCall.notThere
            if !isGone { throw error }
        }
        found.isFromThisBoot = control?.bootID.map { $0 == DiskCall.bootID } ?? false
        if let completed = found.control?.completedFile {
            if let descriptor {
                let isWhole = control?.size == nil || control?.size == found.length
                found.isComplete = isWhole && DiskCall.identity(of: descriptor)?.number == completed
                if !found.isComplete {
                    // The part is continued, and is complete only when it is marked again.
                    control?.completedFile = nil
                    found.control?.completedFile = nil
                }
            } else {
                let identity = destinationIdentity()
                found.finishedLength = identity?.number == completed ? identity?.length : nil
            }
        }
        return found
    }

    /// Removes a partial file that is the file at the destination: an earlier process was killed between linking the
    /// finished file to its destination and removing this name. Returns whether it was one.
    private func removeFinishedPart() throws(FileFailure) -> Bool {
        guard let part = DiskCall.identity(of: partialPath), let file = destinationIdentity(), part.isSameFile(as: file)
        else { return false }
        try system.remove(partialPath)
        return true
    }

    /// Makes the file at the destination the partial file. Returns its length.
    ///
    /// The control file is stored first: a process that is killed before the move finds no part, and looks again.
    func takeDestination(_ control: ControlFile) throws(FileFailure) -> Int64 {
        let opened = try system.open(destination, .update)
        do throws(FileFailure) {
            let length = try system.length(ofOpen: opened)
            takenPermissions = DiskCall.permissions(of: opened)
            try store(control)
            try system.rename(destination, to: partialPath)
            system.setPermissions(of: opened, true, folder: folder)
            descriptor = opened
            // From here on, it is kept like every part.
            self.length = length
            return length
        } catch {
            // The failure of the move is the one to report.
            try? system.close(opened)
            throw error
        }
    }

    /// Returns the number of bytes of a part that can be relied on: all, unless the system has been restarted since,
    /// and the part was synchronized.
    nonisolated static func reliableLength(_ length: Int64, of control: ControlFile) -> Int64 {
        guard let synced = control.syncedBytes, control.bootID == nil || control.bootID != DiskCall.bootID else {
            return length
        }
        return min(length, synced)
    }

    /// Cuts the partial file at an offset, where writing continues.
    func resume(at offset: Int64) throws(FileFailure) {
        guard let descriptor else { throw FileFailure("continue", partialPath, code: DiskCall.notThere) }
        try named { () throws(FileFailure) in try system.truncate(descriptor, to: offset) }
        length = offset
        isAdopted = true
    }

    /// Begins the file anew: the partial file is empty, then its description is stored. A small one stays in memory.
    func begin(_ new: ControlFile) throws(FileFailure) {
        if isControlEmpty, descriptor == nil, !synchronizes, new.segments == nil, new.size ?? .max <= Self.smallSize {
            (length, control, unwritten, isAdopted) = (0, new, [], true)
            return
        }
        try beginOnDisk(new)
    }

    private func beginOnDisk(_ new: ControlFile) throws(FileFailure) {
        isUnallocated = new.segments != nil
        if let old = descriptor, control?.urlDigest != new.urlDigest {
            // The part of another URL is removed before the description is replaced, and made anew after it: a download
            // that waits for the lock recognizes the part of its URL by its inode number.
            try system.remove(partialPath)
            descriptor = nil
            try? system.close(old)  // Its bytes are gone.
            (length, unsynchronized) = (0, 0)
            try store(new)
            descriptor = try system.open(partialPath, .create)
            return
        }
        var isNew = false
        if let descriptor {
            try named { () throws(FileFailure) in try system.truncate(descriptor, to: 0) }
            // A killed process can have left a small file in the middle of its move.
            system.setPermissions(of: descriptor, true, folder: folder)
        } else {
            descriptor = try system.open(partialPath, .create)
            isNew = true
        }
        length = 0
        unsynchronized = 0
        do throws(FileFailure) {
            try store(new)
        } catch {
            // Without a description, nobody looks for it.
            if isNew { try? system.remove(partialPath) }
            throw error
        }
    }

    /// Writes what is in memory alone, so that a later attempt or process continues it.
    func writeToDisk() throws(FileFailure) {
        guard let bytes = unwritten, let control else { return }
        (unwritten, length) = (nil, 0)
        try beginOnDisk(control)
        for chunk in bytes { try write(chunk) }
    }

    /// Replaces the control file in one step.
    func store(_ new: ControlFile) throws(FileFailure) {
        var new = new
        // The bytes of segments can reach the disk after the table that counts them.
        if synchronizes || new.segments != nil { new.bootID = DiskCall.bootID }
        if synchronizes { new.syncedBytes = new.syncedBytes ?? 0 }
        let bytes = try lock.encoded(new)
        let path = FilePath.join(folder, names.nextControl)
        try system.remove(path)
        let next = try system.open(path, .create)
        do throws(FileFailure) {
            do throws(FileFailure) {
                try system.write(bytes, to: next)
            } catch {
                throw FileFailure("write", controlPath, code: error.code)
            }
            if synchronizes { try DiskCall.synchronize(next, path) }
            try system.rename(path, to: controlPath)
        } catch {
            // The first failure is the one to report.
            try? system.close(next)
            try? system.remove(path)
            throw error
        }
        lock.move(to: next)
        control = new
        isControlEmpty = false
        isAdopted = true
        if synchronizes { DiskCall.synchronize(folder: folder) }
    }

    // MARK: Bytes

    /// Appends bytes. After a failure, the partial file has the length that it had before.
    func write(_ bytes: Data) throws(FileFailure) {
        if unwritten != nil {
            unwritten?.append(bytes)
            length += Int64(bytes.count)
            return
        }
        guard let descriptor else { throw FileFailure("write", partialPath, code: DiskCall.notThere) }
        do throws(FileFailure) {
            try system.write(bytes, to: descriptor)
        } catch {
            throw truncate(descriptor, after: error)
        }
        try add(Int64(bytes.count))
    }

    /// Moves the bytes of a body that have arrived to the end of the partial file, at most `limit`. After a failure,
    /// the partial file has the length of the bytes that were counted.
    func move(upTo limit: Int64, through pipe: BodyPipe) -> BodyPipe.Moved {
        do throws(FileFailure) {
            try writeToDisk()
            guard let descriptor else { throw FileFailure("write", partialPath, code: DiskCall.notThere) }
            var moved = pipe.move(upTo: limit) { count throws(FileFailure) in
                try system.write(count, from: pipe, to: descriptor)
            }
            guard let failure = moved.failure else {
                try add(moved.count)
                return moved
            }
            length += moved.count
            unsynchronized += moved.count
            moved.failure = truncate(descriptor, after: failure)
            return moved
        } catch {
            return BodyPipe.Moved(failure: error)
        }
    }

    /// Lets other downloads use the thread after some bytes. A server that is faster than the disk would otherwise hold
    /// them up.
    func yieldTurn(after count: Int) async {
        bytesOfTurn += Int64(count)
        guard bytesOfTurn >= Self.turnBytes || synchronizes else { return }
        bytesOfTurn = 0
        await Task.yield()
    }

    /// Counts bytes that were written, and synchronizes them in time.
    private func add(_ count: Int64) throws(FileFailure) {
        length += count
        unsynchronized += count
        if synchronizes, unsynchronized >= Self.synchronizedBytes { try synchronize() }
    }

    /// Cuts off the part of a failed write, which is right, but whose length is not known. Returns the failure to
    /// report.
    private func truncate(_ descriptor: Int32, after failure: FileFailure) -> FileFailure {
        try? system.truncate(descriptor, to: length)
        return FileFailure(failure.call, partialPath, code: failure.code)
    }

    /// Waits until the bytes are on the disk, then says so in the control file.
    func synchronize() throws(FileFailure) {
        guard synchronizes, let descriptor, unsynchronized > 0, var control else { return }
        try DiskCall.synchronize(descriptor, partialPath)
        unsynchronized = 0
        control.syncedBytes = length
        try store(control)
    }

    /// Returns the next bytes of the partial file from an offset on, at most until `end`; empty there.
    func read(_ path: String, at offset: Int64, until end: Int64) throws(FileFailure) -> Data {
        if path == partialPath { try writeToDisk() }
        let descriptor = try system.open(path, .read)
        defer { try? system.close(descriptor) }  // It was only read.
        let count = Int(min(Int64(Self.readSize), end - offset))
        guard count > 0 else { return Data() }
        return try system.read(descriptor, of: path, at: offset, count: count)
    }

    func named<Value>(_ call: () throws(FileFailure) -> Value) throws(FileFailure) -> Value {
        do throws(FileFailure) {
            return try call()
        } catch {
            throw FileFailure(error.call, partialPath, code: error.code)
        }
    }
}
