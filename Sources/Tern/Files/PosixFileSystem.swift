import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
#if os(Linux)
import CTernFiles
#endif

/// The file system of the operating system.
package struct PosixFileSystem: FileSystem {
    package init() {}

    package func open(_ path: String, _ mode: FileMode) throws(FileFailure) -> Int32 {
        let flags: Int32 =
            switch mode {
            // A pipe with a name, which another user can put in the place of a file, does not hold the thread up.
            case .read: O_RDONLY | O_NONBLOCK
            case .create, .createPublic: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
            case .update: O_RDWR | O_NOFOLLOW | O_NONBLOCK
            }
        let permissions = mode == .createPublic ? FilePermissions.ordinary : FilePermissions.ownerOnly
        let descriptor = FileCall.open(path, flags, permissions: permissions)
        guard descriptor >= 0 else { throw FileFailure("open", path, code: errno) }
        if mode == .read { return descriptor }
        do throws(FileFailure) {
            if mode == .update { try checkOwnership(descriptor, path) }
            try lock(descriptor, path)
        } catch {
            try? close(descriptor)  // The first failure is the one to report.
            throw error
        }
        return descriptor
    }

    /// Refuses everything but a regular file of this user with a single link, because another user may control a second
    /// link.
    private func checkOwnership(_ descriptor: Int32, _ path: String) throws(FileFailure) {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else { throw FileFailure("stat", path, code: errno) }
        guard information.st_mode & S_IFMT == S_IFREG, information.st_uid == geteuid(), information.st_nlink == 1 else {
            throw FileFailure(
                "refuse to write to a file that another user owns or that has several hard links:", path, code: EPERM)
        }
    }

    /// Locks a file, so that other processes see that it is in use. On a file system without locks, this does nothing.
    private func lock(_ descriptor: Int32, _ path: String) throws(FileFailure) {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { throw FileFailure("lock", path, code: EWOULDBLOCK) }
            return
        }
        // A sweep between the creation of the file and its lock can have removed the name.
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0, information.st_nlink > 0 else {
            throw FileFailure("lock", path, code: EWOULDBLOCK)
        }
    }

    package func holdLock(of descriptor: Int32) throws(FileFailure) -> Int32 {
        let holder = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard holder >= 0 else { throw FileFailure("duplicate the descriptor of", "", code: errno) }
        return holder
    }

    package func length(ofOpen descriptor: Int32) throws(FileFailure) -> Int64 {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else { throw FileFailure("stat", "", code: errno) }
        return Int64(information.st_size)
    }

    package func setPermissions(of descriptor: Int32, _ ownerOnly: Bool, folder: String) {
        // A file system without permissions refuses the call; the file then keeps the permissions that it has.
        if ownerOnly {
            _ = fchmod(descriptor, FilePermissions.ownerOnly)
        } else if let mode = FilePermissions.ofNewFile(in: folder) {
            _ = fchmod(descriptor, mode)
        }
    }

    /// Gives a file the permissions of the regular file at a path, and its owner those to read and write. Returns false
    /// if there is none.
    package static func copyPermissions(from path: String, to descriptor: Int32) -> Bool {
        var information = stat()
        guard unsafe lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return false }
        // A file system without permissions refuses the call; the file then keeps the permissions that it has.
        _ = fchmod(descriptor, information.st_mode & 0o777 | FilePermissions.ownerOnly)
        return true
    }

    package func close(_ descriptor: Int32) throws(FileFailure) {
        let code = FileCall.close(descriptor)
        if code != 0 { throw FileFailure("close", "", code: code) }
    }

    package func write(_ bytes: Data, to descriptor: Int32) throws(FileFailure) {
        let code = unsafe bytes.withUnsafeBytes { unsafe FileCall.write($0, to: descriptor) }
        if code != 0 { throw FileFailure("write", "", code: code) }
    }

    package func write(_ count: Int, from pipe: BodyPipe, to descriptor: Int32) throws(FileFailure) {
        // Not every file system takes bytes out of a pipe.
        if try !pipe.empty(count, to: descriptor) { try write(try pipe.read(count), to: descriptor) }
    }

    package func read(_ descriptor: Int32, at offset: Int64, count: Int) throws(FileFailure) -> Data {
        // malloc does not clear the buffer, which is filled at once.
        guard let memory = unsafe malloc(count) else { throw FileFailure("read", "", code: ENOMEM) }
        while true {
            let got = unsafe pread(descriptor, memory, count, off_t(offset))
            if got > 0 { return unsafe Data(bytesNoCopy: memory, count: got, deallocator: .free) }
            if got < 0, errno == EINTR { continue }
            let code = errno
            unsafe free(memory)
            if got == 0 { return Data() }
            throw FileFailure("read", "", code: code)
        }
    }

    #if os(Linux)
    package func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let got = unsafe tern_read_in_memory(descriptor, buffer.baseAddress, buffer.count, offset)
        return got >= 0 ? Int(got) : nil
    }

    package func countInMemory(_ descriptor: Int32, at offset: Int64, count: Int) -> Int {
        Int(tern_count_in_memory(descriptor, offset, Int64(count)))
    }
    #endif

    package func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure) {
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) >= 0 else {
            throw FileFailure("truncate", "", code: errno)
        }
    }

    package func length(of path: String) throws(FileFailure) -> Int64 {
        var information = stat()
        guard unsafe stat(path, &information) == 0 else { throw FileFailure("stat", path, code: errno) }
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw FileFailure("open", path, code: information.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        return Int64(information.st_size)
    }

    /// Reserves disk space for the first bytes of a file without changing its length. Does nothing where the system or
    /// the file system cannot do so. Returns 0 or the error number.
    ///
    /// Does not use posix_fallocate(3), which changes the length step by step and, where the file system cannot reserve
    /// space, writes to each block.
    package static func reserveSpace(_ length: Int64, for descriptor: Int32) -> Int32 {
        #if os(Linux)
        let code = tern_reserve_space(descriptor, length)
        return code == EOPNOTSUPP || code == ENOSYS ? 0 : code
        #else
        return 0
        #endif
    }

    /// Returns the time at which a file was created; nil if the file system does not know it. A link is not followed.
    package static func birthTime(of path: String) -> Date? {
        #if os(Linux)
        var (seconds, nanoseconds): (Int64, Int64) = (0, 0)
        guard unsafe tern_birth_time(path, &seconds, &nanoseconds) else { return nil }
        return Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
        #elseif canImport(Darwin)
        var information = stat()
        guard unsafe lstat(path, &information) == 0 else { return nil }
        let time = information.st_birthtimespec
        return Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
        #else
        return nil
        #endif
    }

    package func exists(_ path: String) -> Bool {
        var information = stat()
        return unsafe lstat(path, &information) == 0
    }

    package func makeFolders(_ path: String) throws(FileFailure) {
        if path.isEmpty || exists(path) { return }
        let parent = FilePath.folder(of: path)
        if parent != path { try makeFolders(parent) }
        guard unsafe mkdir(path, FilePermissions.ownerOnlyFolder) == 0 || errno == EEXIST else {
            throw FileFailure("make the folder", path, code: errno)
        }
    }

    package func rename(_ path: String, to destination: String) throws(FileFailure) {
        let code = FileCall.rename(path, to: destination)
        if code != 0 { throw FileFailure("move to", destination, code: code) }
    }

    package func renameIfAbsent(_ path: String, to destination: String) throws(FileFailure) {
        #if os(Linux)
        // Linux moves the file in one step on most file systems, so that it never has two names.
        let moved = unsafe tern_rename_if_absent(path, destination)
        if moved == 0 { return }
        // The kernel, the file system or a filter of system calls can refuse it.
        guard [EINVAL, ENOSYS, EPERM, ENOTSUP].contains(moved) else {
            throw FileFailure("move to", destination, code: moved)
        }
        #endif
        // link(2) fails with EEXIST in one step on every file system that has links.
        if unsafe link(path, destination) == 0 {
            try remove(path)
            return
        }
        // On Apple's systems ENOTSUP is a separate number, which link(2) returns on exFAT.
        let code = errno
        guard [EPERM, ENOTSUP, EOPNOTSUPP, EMLINK].contains(code) else {
            throw FileFailure("move to", destination, code: code)
        }
        // On a file system without links, another process can create the file between the check and the move.
        if exists(destination) { throw FileFailure("move to", destination, code: EEXIST) }
        try rename(path, to: destination)
    }

    package func remove(_ path: String) throws(FileFailure) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw FileFailure("remove", path, code: errno) }
    }
}

/// Handles paths as text. The operations of `URL` access the disk.
///
/// Compares bytes, because Swift joins `/` and a combining mark behind it into one `Character`.
package enum FilePath {
    /// Returns the URL of a file. `URL(filePath:)` puts the home of a user in place of `~` and `~name` at the start.
    package static func url(of path: String) -> URL {
        // With a hint, Foundation does not ask the file system.
        URL(filePath: path.utf8.first == tilde ? "./" + path : path, directoryHint: .notDirectory)
    }

    private static let tilde = UInt8(ascii: "~")

    /// A URL that does not name a file of this machine.
    package struct NotAFile: Error, CustomStringConvertible {
        let url: URL
        package var description: String { "\(Target.redact(url.absoluteString)) is no file URL" }
    }

    /// Returns the path of a URL with the scheme `file` or without a scheme.
    package static func of(_ url: URL) throws(NotAFile) -> String {
        guard url.scheme == nil || url.isFileURL else { throw NotAFile(url: url) }
        return url.path
    }

    package static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: Reference.slash) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    package static func name(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: Reference.slash) else { return path }
        return String(path[path.utf8.index(after: slash)...])
    }

    package static func join(_ folder: String, _ name: String) -> String {
        folder.utf8.last == Reference.slash ? folder + name : "\(folder)/\(name)"
    }
}

/// The system's texts for errors.
package enum ErrorText {
    package static func text(_ code: Int32) -> String {
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        let said = unsafe String(cString: text)
        // The names that administrators know.
        return switch code {
        case EMFILE: "\(said) (EMFILE: the process has reached its limit of descriptors)"
        case ENFILE: "\(said) (ENFILE: the system has reached its limit of descriptors)"
        default: said
        }
    }

    /// Returns the system's text for an error of Foundation that a system call caused, else the error's own
    /// description.
    package static func text(_ error: any Error) -> String {
        guard let refusal = (error as? CocoaError)?.underlying as? POSIXError else { return "\(error)" }
        return text(refusal.code.rawValue)
    }
}
