public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The protocol by which an upload is continued, and the place where uploads are created.
public struct UploadResumption: Sendable, Hashable {
    let kind: UploadMessages.Kind
    let endpoint: String
    let method: Request.Method

    /// The tus protocol, version 1.0.0 (https://tus.io/protocols/resumable-upload), with its extensions creation and
    /// expiration, and checksum if ``DurableUploadOptions/checksum`` asks for it.
    ///
    /// - Parameter endpoint: The path at which uploads are created, resolved against the base URL, or an absolute URL.
    public static func tus(_ endpoint: String) -> Self { Self(kind: .tus, endpoint: endpoint, method: .post) }

    /// "Resumable Uploads for HTTP" of the IETF, interop version 8 of the draft. Servers of version 6 are accepted.
    ///
    /// The upload is created without content, so that its URL is known before the first byte. An interim response with
    /// status 104 (Upload Resumption Supported) names it earlier: a creation whose response is lost is then continued,
    /// and not repeated.
    ///
    /// - Parameters:
    ///   - endpoint: The path at which uploads are created, resolved against the base URL, or an absolute URL.
    ///   - method: The method of the request that creates the upload.
    public static func httpDraft(_ endpoint: String, method: Request.Method = .post) -> Self {
        Self(kind: .httpDraft, endpoint: endpoint, method: method)
    }
}

extension UploadResumption: CustomStringConvertible, CustomReflectable {
    /// The protocol, and the place without the values of its query.
    public var description: String { "\(kind.rawValue) at \(Target.redact(endpoint))" }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The options of a durable upload.
public struct DurableUploadOptions: Sendable {
    /// Values that describe the file to a tus server (`Upload-Metadata`). The names are ASCII, without spaces and
    /// commas. The name of the file is added as `filename`, unless there is one, and ``contentType`` as `filetype`. A
    /// ``WholeUpload`` with metadata fails with `.invalidRequest`.
    public var metadata: [String: String] = [:]
    /// The media type of the file. `application/octet-stream` by default. A field of the request replaces it.
    public var contentType = "application/octet-stream"
    /// The number of bytes of one request, at least 1; nil, the default, for the rest of the file. Servers and proxies
    /// that limit requests need a smaller one. With a ``checksum``, one request has at most 4 MiB. A ``WholeUpload`` with it
    /// fails with `.invalidRequest`.
    public var chunkSize: Int?
    /// The hash function by which the server verifies the bytes of each request: `Upload-Checksum` of tus, or
    /// `Content-Digest` (RFC 9530). nil, the default, for none. The bytes of a request that the server refuses (460)
    /// are sent again. A ``WholeUpload`` has one request: a PUT also has `Repr-Digest`, and the digest of a form is that
    /// of all its bytes. The file is read once more for it.
    public var checksum: FileDigest.Algorithm?
    /// The rate in bytes per second; nil, the default, for no limit.
    public var throttle: Int?
    /// The path of the folder of the control file; nil, the default, for the folder of the file. The folder must exist.
    public var controlFolder: String?
    /// The failures after which the upload is taken up again, and its limits. By default, the statuses 409, 423 and 460
    /// of the protocols are among them; a ``WholeUpload`` is never sent again after 409 and 460.
    public var retry = TransferRetry()
    /// Returns the URL to use in place of one that the server has refused with 400, 401, 403 or 410, such as a presigned
    /// URL that has expired. The error has the response. Only for a ``WholeUpload``. At most two other URLs in a row are
    /// tried. If the last is refused, or the closure throws, the upload fails with the refusal. The closure is cancelled
    /// with the upload. nil, the default, if there is no other URL: the upload then fails at the first refusal.
    public var url: (@Sendable (_ error: NetworkError) async throws -> URL)?
    /// The clock of the delays.
    public var clock: any Clock<Duration> = ContinuousClock()

    /// The queue that the upload belongs to; nil for none.
    var hooks: TransferHooks<DurableUploadResult>?

    static let mostCheckedBytes = 4 << 20

    /// Creates options with the defaults of their properties.
    public init() { retry.policy.statuses.formUnion([409, 423, 460]) }

    /// The reason why no upload can have these options; nil if they are valid.
    var problem: String? {
        if let throttleProblem { return throttleProblem }
        if let chunkSize, chunkSize < 1 { return "\(chunkSize) bytes are no size of a chunk" }
        return metadata.keys.sorted().lazy.compactMap { UploadMessages.problem(ofMetadataName: $0) }.first
    }

    /// The reason why no upload in one request can have these options; nil if they are valid.
    var wholeProblem: String? {
        if let throttleProblem { return throttleProblem }
        if chunkSize != nil { return "an upload in one request has no chunks" }
        return metadata.isEmpty ? nil : "an upload in one request has no metadata: use the fields of a form"
    }

    private var throttleProblem: String? {
        guard let throttle, throttle < 1 else { return nil }
        return "the upload is throttled to \(throttle) bytes a second, and would never end"
    }
}

extension NetworkError.Kind {
    /// Another upload of the file to the same place is running, in this process or another one.
    public static let uploadInProgress = Self(rawValue: "upload-in-progress")
    /// A later version of Tern wrote the control file of the upload. The file is left unchanged.
    public static let unsupportedControlFile = Self(rawValue: "unsupported-control-file")
}
