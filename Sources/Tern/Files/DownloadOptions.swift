/// The types that describe how a response is written to a file.
public enum Download {
    /// The action when something is already at the destination.
    public enum Existing: Sendable, Hashable {
        /// Replace it, in one step.
        case overwrite
        /// Give the new file a number: `name-1.ext`, or the next one that is free.
        case keepBoth
        /// Fail with an error of kind `.fileSystem`; what is there stays.
        case fail
    }

    /// The options of a download.
    public struct Options: Sendable, Hashable {
        /// The action when something is already at the destination. `.overwrite` by default.
        public var existing: Existing
        /// A Boolean value that indicates whether missing folders on the way to the destination are created, for their
        /// owner alone (mode 0700). False by default.
        public var createsFolders: Bool
        /// A Boolean value that indicates whether the partial file of a cancelled or failed download is kept, together
        /// with `resumeData` to continue it. False by default: nothing is left behind.
        ///
        /// A resumable download asks for an uncompressed body. If the server compresses the body anyway, it is
        /// decompressed as in every download, and the download cannot be continued.
        public var isResumable: Bool

        /// Creates options. By default, a download overwrites, creates no folders and keeps no partial file.
        public init(existing: Existing = .overwrite, createsFolders: Bool = false, isResumable: Bool = false) {
            self.existing = existing
            self.createsFolders = createsFolders
            self.isResumable = isResumable
        }
    }

    /// The maximum number of bytes of a name in usual file systems.
    private static let longestName = 255
    /// The maximum number of bytes of an extension that stays behind the number. A longer one counts as part of the
    /// name.
    private static let longestExtension = 100

    /// Returns `folder/name-1.ext` for `folder/name.ext` and the number 1. The number has no blank before it, so that a
    /// shell does not split the name. A name that would become too long loses characters before the number.
    package static func numbered(_ path: String, _ number: Int) -> String {
        let name = FilePath.name(of: path)
        // A mark that follows the slash makes one character of both.
        let folder = String(decoding: path.utf8.dropLast(name.utf8.count), as: UTF8.self)
        var (stem, rest) = (name[...], "-\(number)")
        if let dot = name.lastIndex(of: "."), dot != name.startIndex, name[dot...].utf8.count <= longestExtension {
            (stem, rest) = (name[..<dot], rest + name[dot...])
        }
        while stem.utf8.count + rest.utf8.count > longestName, !stem.isEmpty { stem.removeLast() }
        return "\(folder)\(stem)\(rest)"
    }
}
