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
        /// Whether missing folders on the way to the destination are made. False by default.
        public var createsFolders: Bool
        /// Whether the partial file of a cancelled or failed download is kept, with `resumeData` to take it up. False by
        /// default: nothing is left behind. A resumable download asks for an uncompressed body. What a server compresses all
        /// the same is decompressed, as in every download, and cannot be continued.
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

/// What is needed to take up a download where it stopped, in this process or a later one: encode it and keep it beside
/// the partial file that it names.
public struct ResumeData: Sendable, Hashable, Codable {
    /// The URL that is downloaded, as it is sent.
    public let url: String
    /// The strong ETag, or else the Last-Modified date, of what was downloaded: the server is asked to continue only
    /// that (If-Range, RFC 9110 §13.1.5).
    public let validator: String
    /// Bytes that are in the partial file.
    public let offset: Int64
    /// The path of the partial file.
    public let partialFile: String
    /// Bytes of the whole; nil when the server did not say.
    public let totalBytes: Int64?

    package init(url: String, validator: String, offset: Int64, partialFile: String, totalBytes: Int64?) {
        self.url = url
        self.validator = validator
        self.offset = offset
        self.partialFile = partialFile
        self.totalBytes = totalBytes
    }

    /// How the rest is asked for.
    var continuation: DownloadContinuation {
        DownloadContinuation(offset: offset, validator: validator, totalBytes: totalBytes)
    }

    /// The same download, when so many bytes are in the file.
    package func at(_ offset: Int64) -> ResumeData {
        ResumeData(
            url: url, validator: validator, offset: offset, partialFile: partialFile, totalBytes: totalBytes)
    }
}

extension ResumeData: CustomStringConvertible, CustomReflectable {
    /// Where from, how far, and where to; the values of the URL's query are hidden.
    public var description: String {
        let total = totalBytes.map(String.init) ?? "an unknown number of"
        return "\(Target.redact(url)), \(offset) of \(total) bytes in \(partialFile)"
    }

    /// Nothing beside ``description``: `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
