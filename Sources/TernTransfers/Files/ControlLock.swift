import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The lock on the control file of a transfer, which decides which process may write. Confined to the actor that holds
/// it.
final class ControlLock {
    private let path: String
    private let system: any FileSystem
    /// The descriptor of the control file; nil before and after.
    private var descriptor: Int32?
    /// Whether this lock has created the control file.
    private(set) var isNew = false

    /// Whether this lock has the control file.
    var isHeld: Bool { descriptor != nil }

    init(_ path: String, _ system: any FileSystem) { (self.path, self.system) = (path, system) }

    // A failed call can leave the descriptor open. The lock would then last as long as the process.
    deinit { release() }

    /// Takes the lock. Returns false if another transfer has it.
    func acquire() throws(FileFailure) -> Bool {
        // Between two calls, the other transfer can replace or remove the control file.
        for _ in 0..<16 {
            for (mode, missed) in [(FileMode.create, DiskCall.alreadyThere), (.update, DiskCall.notThere)] {
                do throws(FileFailure) {
                    descriptor = try system.open(path, mode)
                    isNew = mode == .create
                    return true
                } catch {
                    if error.code == DiskCall.busy { return false }
                    if error.code != missed { throw error }
                }
            }
        }
        throw FileFailure("lock", path, code: DiskCall.busy)
    }

    /// Takes the lock of a new control file, which has replaced the one of this lock.
    func move(to descriptor: Int32) {
        release()
        self.descriptor = descriptor
    }

    /// Reads the file that is locked. Another user may have put another one in its place.
    func read() throws(FileFailure) -> Data {
        try system.read(try held("read"), of: path, at: 0, count: ControlFile.limit + 1)
    }

    /// Replaces the contents of the file in place. A torn file is not valid, and its transfer starts over.
    func write(_ control: some ControlDescription) throws(FileFailure) {
        let (descriptor, bytes) = (try held("store"), try encoded(control))
        do {
            try system.truncate(descriptor, to: 0)
            try system.write(bytes, to: descriptor)
        } catch {
            throw error.at(path)
        }
    }

    /// Returns the bytes of a control file.
    func encoded(_ control: some ControlDescription) throws(FileFailure) -> Data {
        do {
            return try control.encoded()
        } catch {
            throw FileFailure("encode", path, code: DiskCall.refused)
        }
    }

    private func held(_ call: String) throws(FileFailure) -> Int32 {
        guard let descriptor else { throw FileFailure(call, path, code: DiskCall.notThere) }
        return descriptor
    }

    /// Releases the lock.
    func release() {
        // Each byte was written, and a failed close is a closed file.
        if let descriptor { try? system.close(descriptor) }
        descriptor = nil
    }
}
