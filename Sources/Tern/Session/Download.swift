#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How a response becomes a file.
public enum Download {
    /// Says where a finished file goes. Asked once, after the status was accepted and the whole body was written to
    /// `temporaryURL`; runs off every actor. nil: no opinion. What it throws fails the task, and the file is removed.
    public typealias Destination =
        @Sendable (_ temporaryURL: URL, _ response: ResponseHead) throws -> URL?

    /// What to do when something is already at the destination.
    public enum Existing: Sendable, Hashable {
        /// Replace it, in one step.
        case overwrite
        /// Give the new file a number: `name 2.ext`.
        case keepBoth
        /// Fail with an error of kind `.fileSystem`; what is there stays.
        case fail
    }

    /// The manner of a download.
    public struct Options: Sendable, Hashable {
        /// What to do when something is already at the destination. `.overwrite` by default.
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

        /// Options as given; the defaults are to overwrite, to make no folders, and to keep no partial file.
        public init(existing: Existing = .overwrite, createsFolders: Bool = false, isResumable: Bool = false) {
            self.existing = existing
            self.createsFolders = createsFolders
            self.isResumable = isResumable
        }
    }

    /// `folder/name 2.ext` for `folder/name.ext`.
    static func numbered(_ path: String, _ number: Int) -> String {
        let name = FilePath.name(of: path)
        let folder = path.dropLast(name.count)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(folder)\(name) \(number)" }
        return "\(folder)\(name[..<dot]) \(number)\(name[dot...])"
    }
}
