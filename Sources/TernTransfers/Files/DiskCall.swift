import Tern

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

/// The calls on files that the file system of ordinary transfers does not need.
enum DiskCall {
    static let notThere = ENOENT
    static let alreadyThere = EEXIST
    static let busy = EWOULDBLOCK
    static let refused = EPERM
    static let noSpace = ENOSPC
    static let noQuota = EDQUOT
    static let inputOutput = EIO
    static let readOnly = EROFS
    static let notPermitted = EACCES
    static let notAFile = EISDIR
    /// The file was changed meanwhile.
    static let stale = ESTALE

    /// Waits until the bytes of a file are on the disk.
    static func synchronize(_ descriptor: Int32, _ path: String) throws(FileFailure) {
        #if canImport(Darwin)
        // fsync(2) of Apple's systems leaves the bytes in the disk's own cache.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        if fsync(descriptor) != 0 { throw FileFailure("sync", path, code: errno) }
    }

    /// Waits until the names in a folder are on the disk. File systems that refuse this are left alone.
    static func synchronize(folder: String) {
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        close(descriptor)
    }

    /// The identity of a file: its device, its number there, its length and the time of its last change.
    struct Identity: Equatable {
        let device: UInt64
        let number: UInt64
        let length: Int64
        let seconds: Int
        let nanoseconds: Int

        /// The time of the last change.
        var modified: Date {
            Date(timeIntervalSince1970: TimeInterval(seconds) + TimeInterval(nanoseconds) / 1e9)
        }

        /// Returns whether both are the same file, changed or not. File systems count their files independently.
        func isSameFile(as other: Identity) -> Bool { device == other.device && number == other.number }
    }

    /// Returns whether another user may write to what is at a path: it belongs to another one, its permissions allow
    /// it, or it is not a regular file. False if nothing is there.
    static func isWritableByOthers(_ path: String) -> Bool {
        var information = stat()
        guard unsafe lstat(path, &information) == 0 else { return errno != ENOENT }
        return information.st_mode & S_IFMT != S_IFREG || information.st_mode & 0o022 != 0
            || information.st_uid != geteuid()
    }

    /// Returns whether another user may replace the files in a folder. True in two cases: all may write to it, and it
    /// has no sticky bit; or it belongs to a user other than this one and root. Its group is trusted. False if nothing
    /// is there.
    static func isReplaceableByOthers(_ folder: String) -> Bool {
        var information = stat()
        guard unsafe stat(folder, &information) == 0 else { return false }
        if information.st_mode & 0o1002 == 0o002 { return true }
        return information.st_uid != geteuid() && information.st_uid != 0
    }

    /// Returns the identity of the regular file at a path; nil if there is none.
    static func identity(of path: String) -> Identity? {
        var information = stat()
        guard unsafe lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        return Identity(information)
    }

    /// Returns the identity of an open file; nil if it cannot be found out.
    static func identity(of descriptor: Int32) -> Identity? {
        var information = stat()
        return unsafe fstat(descriptor, &information) == 0 ? Identity(information) : nil
    }

    /// Returns the permissions of an open file; nil if they cannot be found out.
    static func permissions(of descriptor: Int32) -> UInt32? {
        var information = stat()
        return unsafe fstat(descriptor, &information) == 0 ? UInt32(information.st_mode & 0o777) : nil
    }

    /// Sets the permissions of an open file. A file system without permissions refuses the call.
    static func setPermissions(_ permissions: UInt32, of descriptor: Int32) {
        _ = fchmod(descriptor, mode_t(permissions))
    }

    /// Returns the number of bytes that this user can still write in a folder; nil if it cannot be found out.
    static func freeSpace(in folder: String) -> Int64? {
        var information = statvfs()
        guard unsafe statvfs(folder, &information) == 0 else { return nil }
        let (bytes, overflows) = UInt64(information.f_bavail).multipliedReportingOverflow(
            by: UInt64(information.f_frsize))
        return overflows ? nil : Int64(clamping: bytes)
    }

    /// Reserves space for a file and sets its length.
    static func allocate(_ length: Int64, for descriptor: Int32, path: String) throws(FileFailure) {
        let code = PosixFileSystem.reserveSpace(length, for: descriptor)
        if code != 0 { throw FileFailure("allocate", path, code: code) }
        // In one step, so that a file whose space was reserved in part does not look whole.
        if ftruncate(descriptor, off_t(length)) != 0 { throw FileFailure("allocate", path, code: errno) }
    }

    /// Writes all bytes at a position.
    static func write(_ bytes: Data, to descriptor: Int32, at offset: Int64, path: String) throws(FileFailure) {
        let code = unsafe bytes.withUnsafeBytes { bytes -> Int32 in
            var (rest, offset) = unsafe (bytes, offset)
            while unsafe !rest.isEmpty {
                let count = unsafe pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset))
                if count > 0 {
                    offset += Int64(count)
                    unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if count == 0 || errno != EINTR {
                    return count == 0 ? ENOSPC : errno
                }
            }
            return 0
        }
        if code != 0 { throw FileFailure("write", path, code: code) }
    }

    /// The run of the system; nil if it is not known. Bytes of another run may never have reached the disk.
    static let bootID: String? = {
        #if os(Linux)
        let system = PosixFileSystem()
        // `try?`: without the file, every part counts as one of another run.
        guard let descriptor = try? system.open("/proc/sys/kernel/random/boot_id", .read) else { return nil }
        defer { try? system.close(descriptor) }  // It was only read.
        // `try?`: as above.
        guard let bytes = try? system.read(descriptor, at: 0, count: 64) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self).filter { $0 != "\n" }
        return text.isEmpty ? nil : text
        #else
        return nil
        #endif
    }()
}

extension DiskCall.Identity {
    init(_ information: stat) {
        device = UInt64(truncatingIfNeeded: information.st_dev)
        number = UInt64(information.st_ino)
        length = Int64(information.st_size)
        #if canImport(Darwin)
        (seconds, nanoseconds) = (information.st_mtimespec.tv_sec, information.st_mtimespec.tv_nsec)
        #else
        (seconds, nanoseconds) = (information.st_mtim.tv_sec, information.st_mtim.tv_nsec)
        #endif
    }
}

extension FileSystem {
    /// Reads bytes of an open file. A failure names its path.
    func read(
        _ descriptor: Int32, of path: String, at offset: Int64, count: Int
    ) throws(FileFailure) -> Data {
        do throws(FileFailure) {
            return try read(descriptor, at: offset, count: count)
        } catch {
            throw FileFailure(error.call, path, code: error.code)
        }
    }
}
