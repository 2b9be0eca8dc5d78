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
/// The control file is written in place.
actor UploadFile {
    private let path: String
    nonisolated let controlPath: String
    private let system: any FileSystem
    private var descriptor: Int32?
    private let lock: ControlLock
    private var opened: DiskCall.Identity?

    init(path: String, controlPath: String, system: any FileSystem) {
        self.path = path
        self.controlPath = controlPath
        self.system = system
        lock = ControlLock(controlPath, system)
    }

    // A failed call can leave the descriptor open.
    deinit { if let descriptor { try? system.close(descriptor) } }

    /// Whether there is a control file. Nonisolated, because the system is asked, and no state of the upload.
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
        // Another user can have put a device, or a link to a private file, in its place meanwhile.
        guard let identity = DiskCall.identity(of: descriptor), identity.isSameFile(as: named) else {
            try? system.close(descriptor)  // It was not read.
            throw FileFailure("open", path, code: DiskCall.stale, reason: "another file took its place meanwhile")
        }
        self.descriptor = descriptor
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
        guard try lock.acquire() else { return nil }
        do throws(FileFailure) {
            let bytes = try lock.read()
            return bytes.isEmpty ? .nothing : UploadControl.read(bytes)
        } catch {
            close(keepsControl: true)
            throw error
        }
    }

    // MARK: The file

    /// Throws if the file is not the one that was opened, in the form that it had.
    func checkUnchanged() throws(FileFailure) {
        guard let descriptor, DiskCall.identity(of: descriptor) == opened else { throw changed }
    }

    /// Throws if what has the name of the file is not the one that was opened, in the form that it had.
    func checkInPlace() throws(FileFailure) {
        guard let opened, DiskCall.identity(of: path) == opened else { throw changed }
    }

    private var changed: FileFailure {
        FileFailure("read", path, code: DiskCall.stale, reason: "the file changed during the upload")
    }

    /// Returns exactly this many bytes of the file. Throws if the file changed since it was opened.
    func read(at offset: Int64, count: Int) throws(FileFailure) -> Data {
        guard let descriptor else { throw FileFailure("read", path, code: DiskCall.notThere) }
        var bytes = Data()
        while bytes.count < count {
            let more = try system.read(
                descriptor, of: path, at: offset + Int64(bytes.count), count: count - bytes.count)
            guard !more.isEmpty else { throw changed }
            if bytes.isEmpty { bytes = more } else { bytes.append(more) }
        }
        // Checked after each piece, so that no piece of a changed file is sent, including the last.
        try checkUnchanged()
        return bytes
    }

    // MARK: The control file

    /// Replaces the description of the upload.
    func store(_ control: UploadControl) throws(FileFailure) { try lock.write(control) }

    /// Removes the control file, and closes both files.
    func discard() throws(FileFailure) {
        defer { close(keepsControl: true) }
        try system.remove(controlPath)
    }

    /// Closes both files.
    ///
    /// - Parameter keepsControl: Whether a later upload continues this one.
    func close(keepsControl: Bool) {
        // Removed under the lock, so that it is this upload's own. A file that stays is checked by the next upload.
        if !keepsControl, lock.isHeld { try? system.remove(controlPath) }
        lock.release()
        if let descriptor { try? system.close(descriptor) }  // It was only read.
        descriptor = nil
    }
}

/// The file of an upload, and the facts by which a later process finds its description.
struct UploadSource: Sendable {
    let file: UploadFile
    let identity: DiskCall.Identity
    let endpointDigest: String
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
