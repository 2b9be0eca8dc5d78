import CTernSQLite
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The file system calls of the cache, injected so that tests can let them fail. Called on the cache's own threads.
package protocol DiskFileSystem: Sendable {
    /// Returns the calls for the files of a folder that exists: relative to the folder, which is held open, and without
    /// following links in it. Other users' permissions are removed from it.
    ///
    /// - Throws: An error of kind `.notPermitted` for a folder of another user.
    func holding(_ folder: String) throws(DiskCacheError) -> any DiskFileSystem
    /// Whether the path of the held folder still leads to it. True without one.
    var isFolderInPlace: Bool { get }
    /// Returns the path by which SQLite opens a database.
    func databasePath(_ path: String) -> String
    /// Opens a file for its lock, and creates it if it does not exist.
    func openLock(_ path: String) throws(DiskCacheError) -> Int32
    /// Creates a folder and its parents. An existing folder is not an error.
    func makeFolder(_ path: String) throws(DiskCacheError)
    /// Opens a file for reading. The caller closes the descriptor.
    func open(_ path: String) throws(DiskCacheError) -> Int32
    /// Creates an empty file, open for reading and writing.
    func create(_ path: String) throws(DiskCacheError) -> Int32
    /// Writes all bytes at the current position.
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(DiskCacheError)
    /// Reads from `offset` until the buffer is full or the file ends. Returns the number of bytes.
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int
    /// Opens a file like `open` if that needs nothing of the disk. Returns nil if it may, or if the system cannot tell.
    /// Never waits, and can be called on any thread.
    func openCached(_ path: String) -> Int32?
    /// Fills a buffer like `read` if all bytes are in memory. Returns false if they are not, or if the system cannot
    /// tell. Never waits, and can be called on any thread.
    func readCached(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool
    /// Creates an empty file that only its owner can read and write, or removes other users' permissions from an
    /// existing one.
    func makePrivate(_ path: String) throws(DiskCacheError)
    /// Removes other users' permissions from a file or a folder of this user. Does nothing if the path does not exist.
    ///
    /// - Throws: An error of kind `.notPermitted` for a folder of another user.
    func keepPrivate(_ path: String) throws(DiskCacheError)
    func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus
    /// Returns nil if the path does not exist.
    func status(of path: String) throws(DiskCacheError) -> DiskFileStatus?
    func close(_ descriptor: Int32)
    /// Renames a file, and replaces the destination in one step.
    func rename(_ path: String, to destination: String) throws(DiskCacheError)
    /// Removes a file. A missing file is not an error, and a folder in its place stays.
    func remove(_ path: String) throws(DiskCacheError)
    /// Removes a folder if it is empty. A missing folder is not an error.
    func removeFolder(_ path: String) throws(DiskCacheError)
    /// Returns the names in a folder, in no order; none if it does not exist or is a link to a folder.
    func names(in path: String) throws(DiskCacheError) -> [String]
    /// Returns the number of bytes that this user can still write to the disk.
    func freeBytes(at path: String) throws(DiskCacheError) -> Int
}

extension DiskFileSystem {
    package func holding(_ folder: String) throws(DiskCacheError) -> any DiskFileSystem { self }
    package var isFolderInPlace: Bool { true }
    package func databasePath(_ path: String) -> String { path }
    package func openLock(_ path: String) throws(DiskCacheError) -> Int32 { try PosixDiskFiles().openLock(path) }
    package func makePrivate(_ path: String) throws(DiskCacheError) {}
    package func keepPrivate(_ path: String) throws(DiskCacheError) {}
    package func openCached(_ path: String) -> Int32? { nil }
    package func readCached(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) -> Bool { false }
}

/// The properties of a file.
package struct DiskFileStatus: Sendable, Equatable {
    /// The length in bytes.
    package var size: Int
    /// The bytes on the disk: `st_blocks × 512`, at least the length. (Foundation's resource keys are eight times too
    /// large on Linux.)
    package var allocated: Int
    /// The identity of the file, independent of its name.
    package var identity: UInt64
    /// Whether it is a folder, and no link to one.
    package var isFolder: Bool
    /// Whether it is a symbolic link.
    package var isLink: Bool
    /// Whether it belongs to a user other than this one and the superuser.
    package var isForeign: Bool

    package init(
        size: Int, allocated: Int, identity: UInt64, isFolder: Bool, isLink: Bool = false, isForeign: Bool = false
    ) {
        self.size = size
        self.allocated = allocated
        self.identity = identity
        self.isFolder = isFolder
        self.isLink = isLink
        self.isForeign = isForeign
    }
}

/// The system's file calls.
package struct PosixDiskFiles: DiskFileSystem {
    /// The folder whose files are opened relative to it; nil for none.
    private let held: HeldFolder?

    package init() { held = nil }

    private init(in held: HeldFolder) { self.held = held }

    package func holding(_ folder: String) throws(DiskCacheError) -> any DiskFileSystem {
        PosixDiskFiles(in: try HeldFolder(folder))
    }

    package var isFolderInPlace: Bool { held?.isInPlace ?? true }

    package func databasePath(_ path: String) -> String {
        held.flatMap { held in held.inner(path).flatMap { held.databasePath($0) } } ?? path
    }

    /// Calls a function of the system with the descriptor of a folder and a name in it.
    private func at(_ path: String, _ call: (_ folder: Int32, _ name: String) -> Int32) -> Int32 {
        guard let held, let inner = held.inner(path) else { return call(AT_FDCWD, path) }
        return held.at(inner, call)
    }

    private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
        guard let held, let inner = held.inner(path) else { return FileCall.open(path, flags) }
        return held.open(inner, flags)
    }

    package func makeFolder(_ path: String) throws(DiskCacheError) {
        if at(path, { unsafe mkdirat($0, $1, 0o700) }) == 0 || errno == EEXIST { return }
        let code = errno
        guard code == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else {
            throw .system("create the folder", path, code: code)
        }
        try makeFolder(String(path[..<slash]))
        guard at(path, { unsafe mkdirat($0, $1, 0o700) }) == 0 || errno == EEXIST else {
            throw .system("create the folder", path)
        }
    }

    package func open(_ path: String) throws(DiskCacheError) -> Int32 {
        // Without O_NONBLOCK, opening a pipe in the place of a value would wait. Files ignore the flag.
        let descriptor = systemOpen(path, O_RDONLY | O_NONBLOCK)
        guard descriptor >= 0 else { throw .system("open", path) }
        return descriptor
    }

    package func openLock(_ path: String) throws(DiskCacheError) -> Int32 {
        let descriptor = systemOpen(path, O_RDWR | O_CREAT | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ELOOP { throw DiskFolder.link(path) }
            throw .system("open", path)
        }
        return descriptor
    }

    package func create(_ path: String) throws(DiskCacheError) -> Int32 {
        let descriptor = systemOpen(path, O_RDWR | O_CREAT | O_EXCL)
        guard descriptor >= 0 else { throw .system("create", path) }
        return descriptor
    }

    package func makePrivate(_ path: String) throws(DiskCacheError) {
        let descriptor = systemOpen(path, O_RDWR | O_CREAT | O_EXCL)
        if descriptor >= 0 { return close(descriptor) }
        guard errno == EEXIST else { throw .system("create", path) }
        try keepPrivate(path)
    }

    package func keepPrivate(_ path: String) throws(DiskCacheError) {
        // Links stay unchanged, because their target may not belong to the cache.
        var status = stat()
        guard at(path, { unsafe fstatat($0, $1, &status, AT_SYMLINK_NOFOLLOW) }) == 0,
            status.st_mode & S_IFMT != S_IFLNK
        else { return }
        // In a folder that all may write to, another user can have made the cache's folder before.
        if status.st_mode & S_IFMT == S_IFDIR, !HeldFolder.isTrusted(status.st_uid) {
            throw DiskCacheError(.notPermitted, "the folder \(path) belongs to another user")
        }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else { return }
        let mode = status.st_mode & 0o700
        // A file system that has no permissions or is read-only keeps the mode that it shows.
        guard
            at(path, { unsafe fchmodat($0, $1, mode, AT_SYMLINK_NOFOLLOW) }) == 0
                || [EPERM, EROFS, ENOTSUP].contains(errno)
        else { throw .system("change the mode of", path) }
    }

    package func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String
    ) throws(DiskCacheError) {
        let code = unsafe FileCall.write(bytes, to: descriptor)
        if code != 0 { throw .system("write to", path, code: code) }
    }

    package func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = unsafe pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            if count == 0 { break }
            if count > 0 {
                done += count
            } else if errno == ESPIPE || errno == EISDIR {
                break  // A pipe or a folder in a file's place: nothing of the value is there.
            } else if errno != EINTR {
                throw .system("read", path)
            }
        }
        return done
    }

    package func openCached(_ path: String) -> Int32? {
        let descriptor: Int32
        if let held, let inner = held.inner(path) {
            descriptor = unsafe tern_open_cached(held.descriptor, inner)
        } else {
            descriptor = unsafe tern_open_cached(AT_FDCWD, path)
        }
        return descriptor >= 0 ? descriptor : nil
    }

    package func readCached(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) -> Bool {
        unsafe tern_read_cached(descriptor, buffer.baseAddress, buffer.count, Int64(offset)) == buffer.count
    }

    package func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw .system("read the attributes of", path) }
        return DiskFileStatus(status)
    }

    package func status(of path: String) throws(DiskCacheError) -> DiskFileStatus? {
        var status = stat()
        if at(path, { unsafe fstatat($0, $1, &status, AT_SYMLINK_NOFOLLOW) }) == 0 { return DiskFileStatus(status) }
        if errno == ENOENT || errno == ENOTDIR { return nil }
        throw .system("read the attributes of", path)
    }

    package func close(_ descriptor: Int32) { _ = FileCall.close(descriptor) }

    package func rename(_ path: String, to destination: String) throws(DiskCacheError) {
        let result = at(path) { folder, name in
            at(destination) { unsafe renameat(folder, name, $0, $1) }
        }
        if result != 0 { throw .system("rename", path) }
    }

    package func remove(_ path: String) throws(DiskCacheError) {
        if at(path, { unsafe unlinkat($0, $1, 0) }) == 0 || errno == ENOENT || errno == ENOTDIR { return }
        let code = errno
        // The cache creates no folders among its files. Apple's systems report EPERM.
        if code == EISDIR || code == EPERM, try status(of: path)?.isFolder ?? true { return }
        throw .system("remove", path, code: code)
    }

    package func removeFolder(_ path: String) throws(DiskCacheError) {
        guard
            at(path, { unsafe unlinkat($0, $1, AT_REMOVEDIR) }) == 0
                || [ENOENT, ENOTDIR, ENOTEMPTY, EEXIST].contains(errno)
        else {
            throw .system("remove the folder", path)
        }
    }

    package func names(in path: String) throws(DiskCacheError) -> [String] {
        // The names in a folder are removed, and those in the target of a link are none of the cache's.
        let descriptor = systemOpen(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        if descriptor < 0, [ENOENT, ENOTDIR, ELOOP].contains(errno) { return [] }
        guard descriptor >= 0 else { throw .system("list the content of", path) }
        guard let folder = unsafe fdopendir(descriptor) else {
            let code = errno
            close(descriptor)
            throw .system("list the content of", path, code: code)
        }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    package func freeBytes(at path: String) throws(DiskCacheError) -> Int {
        var facts = statvfs()
        let isKnown =
            if let held, held.inner(path) == "" {
                unsafe fstatvfs(held.descriptor, &facts) == 0
            } else {
                unsafe statvfs(path, &facts) == 0
            }
        guard isKnown else { throw .system("read the free space of", path) }
        let (bytes, overflow) = Int(clamping: facts.f_bavail).multipliedReportingOverflow(by: Int(facts.f_frsize))
        return overflow ? .max : bytes
    }
}

extension DiskFileStatus {
    fileprivate init(_ status: stat) {
        // A file system that compresses, or allocates late, can report fewer blocks than the file will need.
        self.init(
            size: Int(status.st_size), allocated: max(Int(status.st_blocks) * 512, Int(status.st_size)),
            identity: UInt64(truncatingIfNeeded: status.st_ino), isFolder: status.st_mode & S_IFMT == S_IFDIR,
            isLink: status.st_mode & S_IFMT == S_IFLNK, isForeign: !HeldFolder.isTrusted(status.st_uid))
    }
}
