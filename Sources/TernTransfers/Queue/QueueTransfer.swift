public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TransferQueue {
    /// A download or an upload to enqueue. `enqueue` checks it.
    ///
    /// ```swift
    /// var transfer = TransferQueue.Transfer.download(url, to: file)
    /// transfer.priority = .high
    /// transfer.group = "album 7"
    /// let id = try await queue.enqueue(transfer)
    /// ```
    public struct Transfer: Sendable {
        /// The priority among the items of the queue, and among the requests of the session. `.normal` by default.
        public var priority = Request.Priority.normal
        /// The group of the item; nil, the default, for none. At most 1,024 bytes of UTF-8.
        public var group: String?
        /// A name for people; nil, the default, for none. At most 1,024 bytes of UTF-8.
        public var label: String?
        /// A Boolean value that indicates whether the item waits while the network is known to be metered: while the
        /// default route is over a mobile network (``Tern/Reachability/Medium/cellular``). False by default.
        public var requiresUnmeteredNetwork = false
        /// A Boolean value that indicates whether the item is paused until `resume`. False by default.
        public var isPaused = false
        /// The header fields of each request. A field whose name says that it is secret is refused, because it would be
        /// stored: give it with ``TransferQueue/Configuration/credentials``.
        public var headers = Headers()

        /// The digest of a download's file: ``DurableDownloadOptions/digest``.
        public var digest: FileDigest?
        /// The size of a download's file in bytes: ``DurableDownloadOptions/expectedSize``.
        public var expectedSize: Int64?
        /// The number of parts of a download that are requested at the same time, from 1, the default, to 16.
        public var segments = 1
        /// The action when something is already at a download's destination. `.overwrite` by default. `.keepBoth` is
        /// refused: after a kill, the queue could not find the file that it has finished.
        public var existing = Download.Existing.overwrite
        /// A Boolean value that indicates whether missing folders on the way to a download's destination are created.
        /// False by default.
        public var createsFolders = false

        /// The media type of an upload's file. `application/octet-stream` by default.
        public var contentType = "application/octet-stream"
        /// Values that describe an upload's file to a tus server: ``DurableUploadOptions/metadata``.
        public var metadata: [String: String] = [:]
        /// The number of bytes of one request of an upload; nil, the default, for the rest of the file.
        public var chunkSize: Int?
        /// The hash function by which the server verifies the bytes of an upload's requests; nil, the default, for
        /// none: ``DurableUploadOptions/checksum``.
        public var checksum: FileDigest.Algorithm?
        /// The name of the form's field with an upload's file, with ``UploadProtocol/multipart``. `file` by default.
        public var fileField = "file"
        /// The other fields of the form, with ``UploadProtocol/multipart``. They are stored, and sent before the file.
        public var formFields: [String: String] = [:]

        let kind: Item.Kind
        let url: URL
        let file: URL
        let uploadProtocol: UploadProtocol?
        private(set) var userData = Data()

        /// The greatest size of user data in bytes.
        static let mostUserData = 64 << 10

        private init(kind: Item.Kind, url: URL, file: URL, uploadProtocol: UploadProtocol? = nil) {
            (self.kind, self.url, self.file, self.uploadProtocol) = (kind, url, file, uploadProtocol)
        }

        /// Returns a download of an absolute URL to a file.
        public static func download(_ url: URL, to file: URL) -> Transfer {
            Transfer(kind: .download, url: url, file: file)
        }

        /// Returns an upload of a file to an absolute URL: that at which a server creates uploads, or that of a PUT or
        /// of a form.
        public static func upload(_ file: URL, to endpoint: URL, by uploadProtocol: UploadProtocol) -> Transfer {
            Transfer(kind: .upload, url: endpoint, file: file, uploadProtocol: uploadProtocol)
        }

        /// Stores a value with the item, as JSON of at most 64 KiB. Read it with `TransferQueue.userData(_:of:)`.
        ///
        /// - Throws: The error of the encoder; a ``TransferQueueError`` of kind `.invalidTransfer` if the value is too
        ///   large.
        public mutating func setUserData(_ value: some Encodable) throws {
            let data = try TernJSONEncoder().encode(value)
            guard data.count <= Self.mostUserData else {
                throw TransferQueueError(
                    .invalidTransfer, "the user data has \(data.count) bytes, more than \(Self.mostUserData)")
            }
            userData = data
        }
    }

    /// The way in which a file is uploaded: a protocol by which an upload is continued (``UploadResumption``), or one
    /// request, of which nothing is continued (``WholeUpload``).
    public enum UploadProtocol: String, Sendable, Hashable, Codable {
        /// The tus protocol, version 1.0.0.
        case tus
        /// "Resumable Uploads for HTTP" of the IETF. The upload is created with POST.
        case httpDraft
        /// A PUT whose body is the file, such as to a presigned URL of an object store.
        case put
        /// A POST of a form with the file: ``Transfer/fileField`` and ``Transfer/formFields``.
        case multipart
    }
}

extension TransferQueue.Transfer: CustomStringConvertible, CustomReflectable {
    /// The kind, the URL without the values of its query, and the path of the file.
    public var description: String { "\(kind.rawValue) \(Target.redact(url.absoluteString)), \(file.path)" }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
