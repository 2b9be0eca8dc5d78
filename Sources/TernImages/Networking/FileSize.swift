#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The size of a regular file, asked of the system: what Foundation's attributes hold is of another type in a program that
/// imports all of it.
enum FileSize {
    /// Bytes; nil for what is no regular file, or not there.
    static func of(_ path: String) -> Int? {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(clamping: status.st_size)
    }
}
