import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file of one upload and its control file. It makes all calls that can wait for a disk, on a thread that all
/// durable transfers share.
///
/// The lock on the control file decides which process uploads. The control file is written in place: a torn one is not
/// valid, and the upload starts over.
actor UploadFile {
    private let path: String
    nonisolated let controlPath: String
    private let system: any FileSystem
    private var descriptor: Int32?
    /// The descriptor of the control file, which holds the lock; nil before and after.
    private var lock: Int32?
    private var opened: DiskCall.Identity?

    init(path: String, controlPath: String, system: any FileSystem) {
        self.path = path
        self.controlPath = controlPath
        self.system = system
    }

    // A failed call can leave the descriptors open. The lock would then last as long as the process.
    deinit {
        if let descriptor { try? system.close(descriptor) }
        if let lock { try? system.close(lock) }
    }

    /// Whether there is a control file.
    nonisolated var hasControl: Bool { DiskCall.identity(of: controlPath) != nil }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe DownloadPart.executor.asUnownedSerialExecutor()
    }

    // MARK: Opening

    /// Opens the file. Returns its identity.
    func open() throws(FileFailure) -> DiskCall.Identity {
        guard let named = DiskCall.identity(of: path) else {
            throw FileFailure("open", path, code: system.exists(path) ? DiskCall.notAFile : DiskCall.notThere)
        }
        let descriptor = try system.open(path, .read)
        self.descriptor = descriptor
        guard let identity = DiskCall.identity(of: descriptor) else {
            throw FileFailure("open", path, code: DiskCall.inputOutput)
        }
        // Another user can have put a link to a private file in its place meanwhile.
        guard identity.isSameFile(as: named) else {
            throw FileFailure("open", path, code: DiskCall.stale, reason: "another file took its place meanwhile")
        }
        opened = identity
        return identity
    }

    /// The state of the control file when the lock was taken.
    enum Found: Sendable {
        /// There is no description of an upload.
        case nothing
        case control(UploadControl)
        case invalid
        /// A later version of Tern wrote it.
        case laterVersion(Int)

        var control: UploadControl? { if case .control(let control) = self { control } else { nil } }
    }

    /// Takes the lock and reads the control file. Returns nil if another upload has the lock.
    func acquire() throws(FileFailure) -> Found? {
        guard try takeLock() else { return nil }
        do throws(FileFailure) {
            let bytes = try readControl()
            return bytes.isEmpty ? .nothing : UploadControl.read(bytes)
        } catch {
            close(keepsControl: true)
            throw error
        }
    }

    private func takeLock() throws(FileFailure) -> Bool {
        var last: FileFailure?
        // Between two calls, the other upload can remove the control file.
        for _ in 0..<16 {
            for mode in [FileMode.update, .create] {
                do throws(FileFailure) {
                    lock = try system.open(controlPath, mode)
                    return true
                } catch {
                    last = error
                }
                if last?.code == DiskCall.busy { return false }
                guard mode == .update, last?.code == DiskCall.notThere else { break }
            }
            guard last?.code == DiskCall.alreadyThere else { break }
        }
        throw last ?? FileFailure("lock", controlPath, code: DiskCall.busy)
    }

    /// Reads the file that is locked. Another user may have put another one in its place.
    private func readControl() throws(FileFailure) -> Data {
        guard let lock else { throw FileFailure("read", controlPath, code: DiskCall.notThere) }
        return try system.read(lock, of: controlPath, at: 0, count: UploadControl.limit + 1)
    }

    // MARK: The file

    /// Throws if the file is not the one that was opened, in the form that it had.
    func checkUnchanged() throws(FileFailure) {
        guard let descriptor, DiskCall.identity(of: descriptor) == opened else { throw changed }
    }

    private var changed: FileFailure {
        FileFailure("read", path, code: DiskCall.stale, reason: "the file changed during the upload")
    }

    /// Returns exactly this many bytes of the file. Throws if the file changed since it was opened.
    func read(at offset: Int64, count: Int) throws(FileFailure) -> Data {
        guard let descriptor else { throw FileFailure("read", path, code: DiskCall.notThere) }
        var bytes = Data()
        while bytes.count < count {
            let more = try system.read(descriptor, at: offset + Int64(bytes.count), count: count - bytes.count)
            guard !more.isEmpty else { throw changed }
            if bytes.isEmpty { bytes = more } else { bytes.append(more) }
        }
        // Checked after each piece, so that no piece of a changed file is sent, including the last.
        try checkUnchanged()
        return bytes
    }

    // MARK: The control file

    /// Replaces the description of the upload.
    func store(_ control: UploadControl) throws(FileFailure) {
        guard let lock else { throw FileFailure("store", controlPath, code: DiskCall.notThere) }
        let bytes: Data
        do {
            bytes = try control.encoded()
        } catch {
            throw FileFailure("encode", controlPath, code: DiskCall.refused)
        }
        try system.truncate(lock, to: 0)
        try system.write(bytes, to: lock)
    }

    /// Removes the control file, and closes both files.
    func discard() throws(FileFailure) {
        defer { close(keepsControl: true) }
        try system.remove(controlPath)
    }

    /// Closes both files.
    ///
    /// - Parameter keepsControl: Whether a later upload continues this one.
    func close(keepsControl: Bool) {
        if let lock {
            // Removed under the lock, so that it is this upload's own. A file that stays is checked by the next upload.
            if !keepsControl { try? system.remove(controlPath) }
            try? system.close(lock)  // A failed close is a closed file, and the lock is gone.
        }
        if let descriptor { try? system.close(descriptor) }  // It was only read.
        (lock, descriptor) = (nil, nil)
    }
}

/// A part of a file as the body of a request.
struct FileRange: AsyncSequence, Sendable {
    let file: UploadFile
    let start: Int64
    let end: Int64
    /// The limit on the rate; nil for none.
    var throttle: DownloadThrottle?
    /// The number of bytes that are read at once.
    private static let pieceSize: Int64 = 256 << 10
    /// The same where the rate can be limited.
    private static let throttledPieceSize: Int64 = 64 << 10

    struct AsyncIterator: AsyncIteratorProtocol {
        let file: UploadFile
        var position: Int64
        let end: Int64
        let throttle: DownloadThrottle?

        mutating func next() async throws -> Data? {
            guard position < end else { return nil }
            let size = throttle == nil ? FileRange.pieceSize : FileRange.throttledPieceSize
            let piece = try await file.read(at: position, count: Int(Swift.min(end - position, size)))
            do throws(DownloadThrottle.WaitEnd) {
                try await throttle?.wait(after: piece.count)
            } catch {
                throw CancellationError()
            }
            position += Int64(piece.count)
            return piece
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(file: file, position: start, end: end, throttle: throttle)
    }
}
