/// The name of a file that a download writes to: `.NAME.0123456789abcdef.tern` beside the destination NAME, and
/// `tern-0123456789abcdef.tern` in the temporary folder.
///
/// Such a file belongs to a download that runs and holds a lock on it; without a lock it is an orphan, and removed. The
/// partial file of a resumable download ends in `.tern-part` and is never removed that way: whoever has its token may
/// continue it.
package struct TemporaryName: Sendable, Equatable {
    private static let suffix = ".tern"
    private static let partialSuffix = ".tern-part"
    private static let folderPrefix = "tern-"
    private static let uniqueLength = 16
    /// Bytes of a destination's name that a temporary name repeats; file systems take 255 in all.
    private static let stemLength = 160

    package let text: String
    /// The file can be continued, and outlives its download.
    package let isPartial: Bool
    /// The destination's name, as far as it is repeated; nil in the temporary folder.
    private let stem: String?

    /// A new name for a file beside a destination of this name, or in the temporary folder for nil.
    package init(for destination: String?, isPartial: Bool = false) {
        let number = String(UInt64.random(in: 0 ... .max), radix: 16)
        let unique = String(repeating: "0", count: Self.uniqueLength - number.utf8.count) + number
        stem = destination.map { Self.stem(of: $0) }
        self.isPartial = isPartial
        text = (stem.map { ".\($0)." } ?? Self.folderPrefix) + unique + (isPartial ? Self.partialSuffix : Self.suffix)
    }

    /// Reads a name; nil for one of another form. The result is one path component without control characters.
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

    /// Whether a file of this name, when nobody has a lock on it, is left over from a download to this destination (nil:
    /// to the temporary folder).
    package func isOrphan(of destination: String?) -> Bool {
        !isPartial && stem == destination.map { Self.stem(of: $0) }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// As much of a destination's name as fits, cut between characters, without control characters.
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

/// Where a download's file is made, and for which destination.
struct TemporaryPlace: Sendable {
    /// A folder that is there.
    let folder: String
    /// The name of the destination; nil when it is not known yet.
    let destination: String?
    var isPartial = false

    /// A path that no other download has.
    func newPath() -> String {
        FilePath.join(folder, TemporaryName(for: destination, isPartial: isPartial).text)
    }
}
