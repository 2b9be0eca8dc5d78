#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Where the parts of a cache lie.
struct DiskFolder: Sendable, Equatable {
    let path: String

    var index: String { path + "/index.sqlite" }
    var log: String { path + "/index.sqlite-wal" }
    var setAside: String { path + "/index.sqlite.set-aside" }
    var lock: String { path + "/lock" }
    /// Stands here from a clean end to the next opening.
    var clean: String { path + "/clean" }
    var values: String { path + "/values" }
    var temporary: String { path + "/temporary" }
    var trash: String { path + "/trash" }

    static let shardCount: Int64 = 64

    /// `values/2a/000000000000012a`: the number of the entry, in one of 64 folders.
    func value(_ id: Int64) -> String {
        "\(shard(Int(id & (Self.shardCount - 1))))/\(Self.hexadecimal(UInt64(id), 16))"
    }

    func shard(_ number: Int) -> String { "\(values)/\(Self.hexadecimal(UInt64(number), 2))" }

    /// The number in a value file's name; nil if it is none of ours.
    static func id(_ name: String) -> Int64? {
        guard name.utf8.count == 16, let id = Int64(name, radix: 16), id > 0, hexadecimal(UInt64(id), 16) == name else {
            return nil
        }
        return id
    }

    private static func hexadecimal(_ number: UInt64, _ digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}

/// The one owner of a folder, told by a lock that the system takes back when the owner dies, however it dies.
final class DiskFolderLock: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws(DiskCacheError) {
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system("open", path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            guard code == EWOULDBLOCK else { throw .system("lock", path, code: code) }
            throw DiskCacheError(.inUse, "another cache, in this process or another, has \(path)", code: code)
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
