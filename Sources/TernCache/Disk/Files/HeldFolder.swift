import CTernSQLite
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A folder that belongs to this user or to the superuser, held open from its check on.
///
/// Its files are opened relative to the descriptor, without following links. A user who may rename the folders above it
/// can therefore not put another folder, or a link, in its place afterwards.
package final class HeldFolder: Sendable {
    let path: String
    let descriptor: Int32

    /// Opens a folder, and removes the permissions of other users from one of this user.
    ///
    /// - Parameter keepsPermissions: Whether the permissions stay as they are.
    /// - Throws: An error of kind `.notPermitted` for a folder of another user, and for a link of one.
    package init(_ path: String, keepsPermissions: Bool = false) throws(DiskCacheError) {
        var named = stat()
        guard unsafe lstat(path, &named) == 0 else { throw .system("open", path) }
        // A link of this user can lead to any folder of this user. Its target keeps its mode.
        let isLink = named.st_mode & S_IFMT == S_IFLNK
        if isLink { try Self.check(named.st_uid, of: "the link \(path)") }
        let descriptor = FileCall.open(path, O_RDONLY | O_DIRECTORY | (isLink ? 0 : O_NOFOLLOW))
        guard descriptor >= 0 else { throw .system("open", path) }
        do throws(DiskCacheError) {
            var opened = stat()
            guard unsafe fstat(descriptor, &opened) == 0 else { throw .system("read the attributes of", path) }
            try Self.check(opened.st_uid, of: "the folder \(path)")
            if !keepsPermissions, !isLink, opened.st_uid == geteuid(), opened.st_mode & 0o077 != 0 {
                // A file system that has no permissions or is read-only keeps the mode that it shows.
                guard fchmod(descriptor, opened.st_mode & 0o700) == 0 || [EPERM, EROFS, ENOTSUP].contains(errno)
                else { throw .system("change the mode of", path) }
            }
        } catch {
            _ = FileCall.close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { _ = FileCall.close(descriptor) }

    /// Returns whether files of a user can be trusted: those of this user, and of the superuser.
    static func isTrusted(_ user: uid_t) -> Bool { user == geteuid() || user == 0 }

    private static func check(_ user: uid_t, of name: String) throws(DiskCacheError) {
        guard isTrusted(user) else { throw DiskCacheError(.notPermitted, "\(name) belongs to another user") }
    }

    /// Whether the path still leads to the folder.
    var isInPlace: Bool {
        var (named, opened) = (stat(), stat())
        return unsafe stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev
            && named.st_ino == opened.st_ino
    }

    /// Returns the part of a path below the folder, empty for the folder itself; nil for another path.
    func inner(_ path: String) -> String? {
        guard path.utf8.count != self.path.utf8.count else { return path == self.path ? "" : nil }
        guard path.utf8.count > self.path.utf8.count, path.utf8.starts(with: self.path.utf8) else { return nil }
        let rest = path.utf8.dropFirst(self.path.utf8.count)
        return rest.first == UInt8(ascii: "/") ? String(rest.dropFirst()) : nil
    }

    /// Calls a function with the folder of a path, and the last component of the path. Returns its result, and -1, as
    /// the system does, if the folder cannot be opened.
    func at(_ inner: String, _ call: (_ folder: Int32, _ name: String) -> Int32) -> Int32 {
        guard let slash = inner.utf8.lastIndex(of: UInt8(ascii: "/")) else {
            return call(descriptor, inner.isEmpty ? "." : inner)
        }
        let folder = unsafe tern_open_folder_below(descriptor, String(inner[..<slash]))
        guard folder >= 0 else { return -1 }
        let result = call(folder, String(inner[inner.utf8.index(after: slash)...]))
        let code = errno
        _ = FileCall.close(folder)
        errno = code
        return result
    }

    /// Opens a file below the folder. Returns a negative number after a failure, whose code is in `errno`.
    func open(_ inner: String, _ flags: Int32) -> Int32 {
        while true {
            let descriptor = unsafe tern_open_below(descriptor, inner, flags, 0o600)
            if descriptor >= 0 || errno != EINTR { return descriptor }
        }
    }

    #if os(Linux) || os(Android)
    private static let names = "/proc/self/fd/"
    #endif

    /// Returns a path that leads to a file of the folder wherever the folder is; nil if the system has none.
    package func databasePath(_ inner: String) -> String? {
        #if os(Linux) || os(Android)
        let folder = Self.names + "\(descriptor)"
        var (named, opened) = (stat(), stat())
        // Without the file system of processes, there is no such path.
        guard unsafe stat(folder, &named) == 0, unsafe fstat(descriptor, &opened) == 0, named.st_dev == opened.st_dev,
            named.st_ino == opened.st_ino
        else { return nil }
        return "\(folder)/\(inner)"
        #else
        return nil
        #endif
    }

    /// Returns whether a path is one of ``databasePath(_:)``.
    static func holds(_ path: String) -> Bool {
        #if os(Linux) || os(Android)
        path.utf8.starts(with: names.utf8)
        #else
        false
        #endif
    }
}
