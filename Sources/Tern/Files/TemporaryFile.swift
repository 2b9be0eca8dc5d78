#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The name of a file that a download writes to: `.NAME.0123456789abcdef.tern` beside the destination NAME, and
/// `tern-0123456789abcdef.tern` in the temporary folder.
///
/// Such a file belongs to a running download, which holds a lock on it. Without a lock it is an orphan and is removed.
/// The name of a resumable download's partial file ends in `.tern-part`. A sweep never removes a partial file, because
/// its token can still be used to continue it.
package struct TemporaryName: Sendable, Equatable {
    private static let suffix = ".tern"
    private static let partialSuffix = ".tern-part"
    private static let folderPrefix = "tern-"
    private static let uniqueLength = 16
    /// The maximum number of bytes of the destination's name that a temporary name repeats. File systems allow 255
    /// bytes in all.
    private static let stemLength = 160

    package let text: String
    /// Whether the file can be continued and outlives its download.
    package let isPartial: Bool
    /// The repeated part of the destination's name; nil in the temporary folder.
    private let stem: String?

    /// Creates a new name for a file beside a destination of this name, or in the temporary folder if `destination` is
    /// nil.
    package init(for destination: String?, isPartial: Bool = false) {
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        let unique = String(repeating: "0", count: Self.uniqueLength - number.utf8.count) + number
        stem = destination.map { Self.stem(of: $0) }
        self.isPartial = isPartial
        text = (stem.map { ".\($0)." } ?? Self.folderPrefix) + unique + (isPartial ? Self.partialSuffix : Self.suffix)
    }

    /// Parses a name; nil for any other form. The result is one path component without control characters.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= 255, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }) else {
            return nil
        }
        isPartial = bytes.ends(with: Self.partialSuffix.utf8)
        guard isPartial || bytes.ends(with: Self.suffix.utf8) else { return nil }
        let rest = bytes.dropLast(isPartial ? Self.partialSuffix.utf8.count : Self.suffix.utf8.count)
        let unique = rest.suffix(Self.uniqueLength)
        guard unique.count == Self.uniqueLength, unique.allSatisfy(Self.isHexadecimal) else { return nil }
        let prefix = rest.dropLast(Self.uniqueLength)
        if prefix.elementsEqual(Self.folderPrefix.utf8) {
            stem = nil
        } else {
            let dot = UInt8(ascii: ".")
            guard prefix.count >= 3, prefix.first == dot, prefix.last == dot else { return nil }
            stem = String(decoding: prefix.dropFirst().dropLast(), as: UTF8.self)
        }
        self.text = text
    }

    /// Returns whether an unlocked file of this name is left over from a download to this destination. nil stands for
    /// the temporary folder.
    package func isOrphan(of destination: String?) -> Bool {
        !isPartial && stem == destination.map { Self.stem(of: $0) }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Returns the longest start of a destination's name that fits, cut between characters and without control
    /// characters.
    private static func stem(of name: String) -> String {
        var stem = ""
        var length = 0
        for character in name {
            let isControl = character.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
            length += isControl ? 1 : character.utf8.count
            if length > stemLength { break }
            stem.append(isControl ? "_" : character)
        }
        return stem.isEmpty ? "_" : stem
    }
}

extension Array where Element == UInt8 {
    fileprivate func ends(with suffix: String.UTF8View) -> Bool { self.suffix(suffix.count).elementsEqual(suffix) }
}

/// The place in which a download's file is created, and the destination that it is for.
struct TemporaryPlace: Sendable {
    /// An existing folder.
    let folder: String
    /// The name of the destination; nil when it is not known yet.
    let destination: String?
    var isPartial = false

    /// Returns a path that no other download uses.
    func newPath() -> String {
        FilePath.join(folder, TemporaryName(for: destination, isPartial: isPartial).text)
    }
}

/// The folder of files whose destination is not known yet: `TMPDIR`, or the system's folder. It is read once, because
/// the environment must not be read while another thread changes it.
enum TemporaryFolder {
    static let path: String = {
        guard let value = unsafe getenv("TMPDIR") else { return "/tmp" }
        let path = unsafe String(cString: value)
        return path.isEmpty ? "/tmp" : path
    }()
}

/// The permissions of a download's file: its owner alone can read it until it is moved to its destination.
enum FilePermissions {
    static let ownerOnly: mode_t = 0o600
    /// Those that a new file has without the bits of the process's mask.
    static let ordinary: mode_t = 0o666
    static let ownerOnlyFolder: mode_t = 0o700

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
        guard let bytes = try? system.read(descriptor, at: 0, count: 128) else { return nil }
        return mask(in: Array(bytes))
        #else
        return nil
        #endif
    }

    static func mask(in status: [UInt8]) -> mode_t? {
        // As bytes: this runs once for each file.
        let lines = status.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
        guard lines.count == 3, lines[1].starts(with: "Umask:".utf8) else { return nil }
        return mode_t(String(decoding: lines[1].dropFirst("Umask:\t".utf8.count), as: UTF8.self), radix: 8)
    }
}

/// Writes files with private content.
package enum OwnerOnlyFile {
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
            throw error.at(path)
        }
        do throws(FileFailure) {
            try system.close(descriptor)
        } catch {
            throw error.at(path)
        }
    }
}
