#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The file system calls that transfers need. Tests inject an implementation that is slow or fails. Called on the file
/// executor only.
package protocol FileSystem: Sendable {
    /// Opens a file. The caller closes the descriptor.
    func open(_ path: String, _ mode: FileMode) throws(FileFailure) -> Int32
    func close(_ descriptor: Int32) throws(FileFailure)
    /// Writes all bytes at the current position.
    func write(_ bytes: Data, to descriptor: Int32) throws(FileFailure)
    /// Moves bytes that are in the pipe to the current position.
    func write(_ count: Int, from pipe: BodyPipe, to descriptor: Int32) throws(FileFailure)
    /// Returns up to `count` bytes from `offset` on; empty at the end.
    func read(_ descriptor: Int32, at offset: Int64, count: Int) throws(FileFailure) -> Data
    /// Copies up to `buffer.count` bytes from `offset` on if they are in memory; 0 at the end, nil if the disk would
    /// have to be read. Called on the transport's loop.
    func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int?
    /// Returns the number of bytes from `offset` on that are in memory: `count`, or 0 if that is not sure. Called on
    /// the transport's loop.
    func countInMemory(_ descriptor: Int32, at offset: Int64, count: Int) -> Int
    /// Cuts the file at `length`, where writing continues.
    func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure)
    /// Returns the length of an open file in bytes.
    func length(ofOpen descriptor: Int32) throws(FileFailure) -> Int64
    /// Returns a second descriptor, which keeps the lock when the first one is closed.
    func holdLock(of descriptor: Int32) throws(FileFailure) -> Int32
    /// Sets the permissions of a file: for its owner alone if `ownerOnly` is true, otherwise those of a new file in the
    /// folder.
    func setPermissions(of descriptor: Int32, _ ownerOnly: Bool, folder: String)
    /// Returns the length of a regular file. Throws for a folder and for a missing file.
    func length(of path: String) throws(FileFailure) -> Int64
    func exists(_ path: String) -> Bool
    func makeFolders(_ path: String) throws(FileFailure)
    /// Replaces the destination atomically.
    func rename(_ path: String, to destination: String) throws(FileFailure)
    /// Moves the file to the destination atomically if nothing is there. Throws EEXIST otherwise.
    func renameIfAbsent(_ path: String, to destination: String) throws(FileFailure)
    func remove(_ path: String) throws(FileFailure)
}

extension FileSystem {
    /// Copies the bytes.
    package func write(_ count: Int, from pipe: BodyPipe, to descriptor: Int32) throws(FileFailure) {
        try write(try pipe.read(count), to: descriptor)
    }

    package func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int? { nil }

    package func countInMemory(_ descriptor: Int32, at offset: Int64, count: Int) -> Int { 0 }

    package func length(ofOpen descriptor: Int32) throws(FileFailure) -> Int64 {
        try PosixFileSystem().length(ofOpen: descriptor)
    }

    package func holdLock(of descriptor: Int32) throws(FileFailure) -> Int32 {
        try PosixFileSystem().holdLock(of: descriptor)
    }

    package func setPermissions(of descriptor: Int32, _ ownerOnly: Bool, folder: String) {
        PosixFileSystem().setPermissions(of: descriptor, ownerOnly, folder: folder)
    }
}

/// The modes in which a file is opened. A file opened for writing stays locked while it is open. If another process
/// holds the lock, opening fails with EWOULDBLOCK.
package enum FileMode: Sendable {
    case read
    /// Creates the file for its owner alone. The file must not exist yet.
    case create
    /// Creates the file with the permissions of a new file of the process. The file must not exist yet.
    case createPublic
    /// Opens an existing regular file of this user with a single link. Writing continues at the length given to
    /// `truncate`.
    case update
}

/// A failed call of the file system.
package struct FileFailure: Error, CustomStringConvertible, Sendable {
    package let call: String
    /// The path of the file; empty if the call had only the file's descriptor.
    package let path: String
    /// `errno`.
    package let code: Int32
    /// The reason in place of the system's text for the code; nil for that text.
    package let reason: String?

    package init(_ call: String, _ path: String, code: Int32, reason: String? = nil) {
        self.call = call
        self.path = path
        self.code = code
        self.reason = reason
    }

    package var description: String {
        "\(call) \(path.isEmpty ? "the file" : path): \(reason ?? ErrorText.text(code))"
    }

    /// Returns the failure with the path of the file if it has none.
    package func at(_ path: String) -> FileFailure {
        self.path.isEmpty ? FileFailure(call, path, code: code, reason: reason) : self
    }
}

/// A file that is being read. Its descriptor is closed with the last reference.
final class OpenFile: Sendable {
    let descriptor: Int32
    let path: String
    private let system: any FileSystem

    init(_ descriptor: Int32, at path: String, _ system: any FileSystem) {
        self.descriptor = descriptor
        self.path = path
        self.system = system
    }

    deinit {
        // A failed close loses nothing of a file that was only read.
        try? system.close(descriptor)
    }

    /// Copies bytes that are in memory, on any thread; nil if the disk would have to be read.
    func readInMemory(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        unsafe system.readInMemory(descriptor, at: offset, into: buffer)
    }

    /// Returns `count` if that many bytes from `offset` on are in memory, or 0 if that is not sure. On any thread.
    func countInMemory(at offset: Int64, count: Int) -> Int {
        system.countInMemory(descriptor, at: offset, count: count)
    }
}
