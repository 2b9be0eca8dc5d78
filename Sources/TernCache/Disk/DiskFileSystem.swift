/// What the cache asks of a file system, injected so that tests can let calls fail. Called on the cache's own threads.
package protocol DiskFileSystem: Sendable {
    /// Makes a folder and those above it; one that is there is no failure.
    func makeFolder(_ path: String) throws(DiskCacheError)
    /// Opens a file for reading; the descriptor is the caller's to close.
    func open(_ path: String) throws(DiskCacheError) -> Int32
    /// Makes a new, empty file, open for writing and reading.
    func create(_ path: String) throws(DiskCacheError) -> Int32
    /// Writes all bytes at the current place.
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws(DiskCacheError)
    /// Reads from `offset` on until the buffer is full or the file ends; the bytes read.
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ path: String
    ) throws(DiskCacheError) -> Int
    /// `open` where that needs nothing of the disk; nil if it may, or if the system cannot tell. Never waits, and may be
    /// called on any thread.
    func openAtOnce(_ path: String) -> Int32?
    /// `read` of a whole buffer, all of which is in memory; false if it is not, or if the system cannot tell. Never waits,
    /// and may be called on any thread.
    func readAtOnce(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool
    /// Creates an empty file that only its owner can read and write, or removes other users' permissions from an
    /// existing one.
    func makePrivate(_ path: String) throws(DiskCacheError)
    /// Removes other users' permissions from a file or a folder of this user. Does nothing if the path does not exist.
    func keepPrivate(_ path: String) throws(DiskCacheError)
    func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus
    /// Nil if nothing is there.
    func status(of path: String) throws(DiskCacheError) -> DiskFileStatus?
    func close(_ descriptor: Int32)
    /// Replaces what is at the destination, in one step.
    func rename(_ path: String, to destination: String) throws(DiskCacheError)
    /// Removes a file; one that is not there is no failure.
    func remove(_ path: String) throws(DiskCacheError)
    /// Removes an empty folder; one that is not there is no failure.
    func removeFolder(_ path: String) throws(DiskCacheError)
    /// The names in a folder, in no order; none if it is not there.
    func names(in path: String) throws(DiskCacheError) -> [String]
    /// Bytes that this user may still write to the disk.
    func freeBytes(at path: String) throws(DiskCacheError) -> Int
}

extension DiskFileSystem {
    package func makePrivate(_ path: String) throws(DiskCacheError) {}
    package func keepPrivate(_ path: String) throws(DiskCacheError) {}
    package func openAtOnce(_ path: String) -> Int32? { nil }
    package func readAtOnce(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) -> Bool { false }
}

/// Facts of a file.
package struct DiskFileStatus: Sendable, Equatable {
    /// Its length in bytes.
    package var size: Int
    /// The bytes that it takes on the disk: `st_blocks × 512`, at least its length. (Resource keys of Foundation are
    /// eight times too large on Linux.)
    package var allocated: Int
    /// Which file it is, whatever its name.
    package var identity: UInt64

    package init(size: Int, allocated: Int, identity: UInt64) {
        self.size = size
        self.allocated = allocated
        self.identity = identity
    }
}
