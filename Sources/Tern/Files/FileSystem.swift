#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The file system calls that transfers need, injected so that tests can make them slow or let them fail. Called on the
/// file executor alone.
package protocol FileSystem: Sendable {
    /// Opens a file; the descriptor is the caller's to close.
    func open(_ path: String, _ mode: FileMode) throws(FileFailure) -> Int32
    func close(_ descriptor: Int32) throws(FileFailure)
    /// Writes all bytes at the current place.
    func write(_ bytes: Data, to descriptor: Int32) throws(FileFailure)
    /// Up to `count` bytes from `offset` on; empty at the end.
    func read(_ descriptor: Int32, at offset: Int64, count: Int) throws(FileFailure) -> Data
    /// Copies up to `buffer.count` bytes from `offset` on that lie in memory, 0 at the end; nil where a disk would have to be
    /// waited for. The one call that is made on the transport's loop.
    func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int?
    /// Cuts the file at `length` and continues to write there.
    func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure)
    /// Returns the length of an open file in bytes.
    func length(ofOpen descriptor: Int32) throws(FileFailure) -> Int64
    /// Returns a second descriptor, which keeps the lock when the first one is closed.
    func holdLock(of descriptor: Int32) throws(FileFailure) -> Int32
    /// Sets the permissions of a file: for its owner alone if `isOwn` is true, otherwise those of a new file in the
    /// folder.
    func setPermissions(of descriptor: Int32, _ isOwn: Bool, folder: String)
    /// The length of an ordinary file; folders and what is not there are failures.
    func length(of path: String) throws(FileFailure) -> Int64
    func exists(_ path: String) -> Bool
    func makeFolders(_ path: String) throws(FileFailure)
    /// Replaces what is at the destination, atomically.
    func rename(_ path: String, to destination: String) throws(FileFailure)
    /// Puts the file at the destination only if nothing is there, atomically. The failure is EEXIST otherwise.
    func renameIfAbsent(_ path: String, to destination: String) throws(FileFailure)
    func remove(_ path: String) throws(FileFailure)
}

extension FileSystem {
    package func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int? { nil }

    package func length(ofOpen descriptor: Int32) throws(FileFailure) -> Int64 {
        try PosixFileSystem().length(ofOpen: descriptor)
    }

    package func holdLock(of descriptor: Int32) throws(FileFailure) -> Int32 {
        try PosixFileSystem().holdLock(of: descriptor)
    }

    package func setPermissions(of descriptor: Int32, _ isOwn: Bool, folder: String) {
        PosixFileSystem().setPermissions(of: descriptor, isOwn, folder: folder)
    }
}

/// The modes in which a file is opened. A file opened for writing stays locked while it is open. If another process
/// holds the lock, opening fails with EWOULDBLOCK.
package enum FileMode: Sendable {
    case read
    /// Creates the file for its owner alone. The file must not exist yet.
    case create
    /// Opens an existing regular file of this user with a single link. Writing continues where `truncate` says.
    case update
}

/// A call of the file system that failed.
package struct FileFailure: Error, CustomStringConvertible, Sendable {
    package let call: String
    package let path: String
    /// `errno`.
    package let code: Int32

    package init(_ call: String, _ path: String, code: Int32) {
        self.call = call
        self.path = path
        self.code = code
    }

    package var description: String { "\(call) \(path): \(ErrorText.text(code))" }
}
