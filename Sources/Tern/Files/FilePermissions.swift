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

/// The permissions of a download's file: its owner alone can read it until it is moved to its destination.
enum FilePermissions {
    static let own: mode_t = 0o600
    static let ownFolder: mode_t = 0o700

    /// Returns the permissions of a new file of the process in a folder: `0666` without the bits of the process's
    /// umask; nil when they cannot be found out.
    ///
    /// `umask(2)` returns the mask only by changing it, for all threads. Linux shows the mask in `/proc`; elsewhere
    /// this creates an empty file and reads its permissions.
    static func ofNewFile(in folder: String) -> mode_t? {
        if let mask = processMask() { return 0o666 & ~mask }
        let path = FilePath.join(folder, TemporaryName(for: nil).text)
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { return nil }
        defer {
            _ = unsafe unlink(path)
            close(descriptor)
        }
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? status.st_mode & 0o666 : nil
    }

    /// Reads the line `Umask:` of `/proc/self/status`, which is octal; nil if there is none.
    private static func processMask() -> mode_t? {
        #if os(Linux)
        let descriptor = unsafe open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let system = PosixFileSystem()
        // `try?`: a file that cannot be read gives no mask. The line is the second of the file.
        guard let bytes = try? system.read(descriptor, at: 0, count: 4096) else { return nil }
        return mask(in: String(decoding: bytes, as: UTF8.self))
        #else
        return nil
        #endif
    }

    static func mask(in status: String) -> mode_t? {
        for line in status.split(separator: "\n") where line.hasPrefix("Umask:") {
            let digits = line.dropFirst("Umask:".count).filter { $0 != "\t" && $0 != " " }
            return mode_t(digits, radix: 8)
        }
        return nil
    }
}

/// Writes files with private content.
package enum PrivateFile {
    /// Writes a file that only its owner can read, in one step, and replaces an existing file.
    package static func write(_ data: Data, to path: String) throws(FileFailure) {
        let system = PosixFileSystem()
        let place = TemporaryPlace(folder: FilePath.folder(of: path), destination: FilePath.name(of: path))
        let temporary = place.newPath()
        let descriptor = try system.open(temporary, .create)
        do throws(FileFailure) {
            try system.write(data, to: descriptor)
            if fsync(descriptor) != 0 { throw FileFailure("sync", temporary, code: errno) }
            try system.rename(temporary, to: path)
        } catch {
            // The first failure is the one to report.
            try? system.close(descriptor)
            try? system.remove(temporary)
            throw error
        }
        try system.close(descriptor)
    }
}
