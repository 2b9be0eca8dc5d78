public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The way in which a download continues what an earlier one left.
public enum DownloadResumption: Sendable, Hashable {
    /// Continues by itself: after a body that broke off, in a later process, and after the folder was moved.
    case automatically
}

/// The options of a durable download.
public struct DurableDownloadOptions: Sendable {
    /// The action when another download, of this process or another one, has the same destination.
    public enum Contention: Sendable, Hashable {
        /// Fail at once with an error of kind ``Tern/NetworkError/Kind/downloadInProgress``.
        case fail
        /// Wait until the other download ends. If it was of the same URL and has succeeded, its file is the result,
        /// provided that it has the ``DurableDownloadOptions/expectedSize`` and the ``DurableDownloadOptions/digest``
        /// of this one. Otherwise this download continues the part that is left, or downloads the file itself, as it
        /// does with a file of at most 256 KiB, which the other download keeps in memory.
        case wait
    }

    /// The use of a file at the destination that another program has not finished, such as `curl` or `wget`.
    public enum ForeignPart: Sendable, Hashable {
        /// The file is treated like any other file: ``DurableDownloadOptions/existing``.
        case ignored
        /// The file is continued if it is not longer than that of the server, if the server states a strong validator
        /// and the expected size, and if it says that its file has not changed since the other program began: by
        /// `Last-Modified`, `Date`, and the time at which the file here was created.
        case continuedIfUnchanged
        /// The file is continued if it is not longer than that of the server, and if the server states a strong
        /// validator and the expected size. Its bytes are not verified without a ``DurableDownloadOptions/digest``.
        case continued
    }

    /// The rate in bytes per second; nil, the default, for no limit. It can be changed while the download runs:
    /// ``DurableDownloadTask/throttle``. All segments share it.
    public var throttle: Int?
    /// The size of the file in bytes; nil, the default, if it is not known. A file of another size fails with
    /// ``Tern/NetworkError/Kind/unexpectedSize``, as soon as the size is known.
    public var expectedSize: Int64?
    /// The digest of the file; nil, the default, for the one that the server states in `Repr-Digest` (RFC 9530) or
    /// `Content-MD5`, if it does. A file with another digest fails with ``Tern/NetworkError/Kind/digestMismatch``, and
    /// nothing of it is kept.
    public var digest: FileDigest?
    /// The number of parts of the file that are requested at the same time, from 1 to 16. 1 by default.
    ///
    /// More than one is used if the server states the size and a strong validator and serves ranges, for a file of at
    /// least 1 MiB for each part. Each part is a request of its own over HTTP/1, and thus has a connection of its own,
    /// within the limit of connections to a host. A server that speaks HTTP/2 alone sends all of them over one
    /// connection.
    public var segments: Int
    /// A Boolean value that indicates whether a download fails with `.fileSystem` before its body is read if its file
    /// does not fit on the disk. True by default.
    public var freeSpaceCheck: Bool
    /// A Boolean value that indicates whether the file is on the disk before it gets its name (`fsync`), and the
    /// control file never claims bytes that a power failure can take. False by default: a killed process loses nothing
    /// without it.
    public var synchronizes = false
    /// The action when something is already at the destination. `.overwrite` by default.
    public var existing = Download.Existing.overwrite
    /// A Boolean value that indicates whether missing folders on the way to the destination are created, for their
    /// owner alone (mode 0700). False by default.
    public var createsFolders = false
    /// The use of a file at the destination that another program has not finished. `.ignored` by default.
    ///
    /// A request with the method HEAD asks for its size and its validator. The file then becomes the part of this
    /// download: it loses its name until the download is complete. The trace says so, or why the file was not used.
    public var foreignPart = ForeignPart.ignored
    /// The action when another download has the same destination. `.fail` by default.
    public var contention = Contention.fail
    /// A Boolean value that indicates whether the part of another URL is discarded. False by default: the download then
    /// fails with ``Tern/NetworkError/Kind/otherDownload``. Two URLs are the same if they differ only in items of the
    /// query that sign them, such as `X-Amz-Signature`, `sig`, `token` and `expires`.
    public var replacesOtherDownload = false
    /// The failures after which the download is taken up again, and its limits.
    public var retry = TransferRetry()
    /// Returns the URL to use in place of one that the server has refused with 400, 401, 403 or 410, such as a signed
    /// URL that has expired. The error has the response. The download continues with the new URL, whose response must
    /// have the validator of the part. If it throws, the download fails with the refusal. nil, the default, if there is
    /// no other URL.
    public var url: (@Sendable (_ error: NetworkError) async throws -> URL)?
    /// The clock of the delays and of the throttle.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The shortest segment, in bytes, for tests with small files.
    var shortestSegment = SegmentPlan.shortestSegment
    /// The queue that the download belongs to; nil for none.
    var hooks: TransferHooks<DurableDownloadResult>?

    /// Creates options.
    public init(
        throttle: Int? = nil, expectedSize: Int64? = nil, digest: FileDigest? = nil, segments: Int = 1,
        freeSpaceCheck: Bool = true
    ) {
        self.throttle = throttle
        self.expectedSize = expectedSize
        self.digest = digest
        self.segments = segments
        self.freeSpaceCheck = freeSpaceCheck
    }

    /// The reason why no download can have these options; nil if they are valid.
    var problem: String? {
        if let throttle, throttle < 1 {
            return "the download is throttled to \(throttle) bytes a second, and would never end"
        }
        if let expectedSize, expectedSize < 0 || expectedSize > ControlFile.mostBytes {
            return "\(expectedSize) bytes is no size of a file"
        }
        if let digest, !digest.isValid { return "the digest is no \(digest.algorithm.rawValue) digest" }
        guard (1...SegmentPlan.mostSegments).contains(segments) else {
            return "\(segments) segments: the number is 1 to \(SegmentPlan.mostSegments)"
        }
        return nil
    }
}

extension NetworkError.Kind {
    /// Another download has the same destination.
    public static let downloadInProgress = Self(rawValue: "download-in-progress")
    /// Beside the destination is the part of another URL, or the control file of a later version of Tern.
    public static let otherDownload = Self(rawValue: "other-download")
    /// The file has another digest than the expected one, or than the one that the server states. Nothing of it was
    /// kept.
    public static let digestMismatch = Self(rawValue: "digest-mismatch")
    /// The file has another size than the expected one.
    public static let unexpectedSize = Self(rawValue: "unexpected-size")
}
