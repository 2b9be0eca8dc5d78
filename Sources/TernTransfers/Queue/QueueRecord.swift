import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The stored facts on an item that are kept in memory. The rest is read when it is needed.
struct QueueRecord: Sendable, Equatable {
    /// The upper bounds of texts, in bytes.
    static let mostURLBytes = 1 << 16
    static let mostPathBytes = 4_096
    static let mostNameBytes = 1_024
    /// Far from the largest number, so that later ends can be counted.
    static let mostEnds: Int64 = 1 << 60
    private static let slash = UInt8(ascii: "/")

    var kind: TransferQueue.Item.Kind
    /// The URL. It can hold secrets.
    var url: String
    /// The canonical host of the URL.
    var host: String
    /// The path of the file: absolute, or relative to the folder of the queue's folder, so that both can be moved
    /// together.
    var path: String
    var label: String?
    var group: String?
    var priority = Request.Priority.normal
    var position: Int64 = 0
    var requiresUnmetered = false
    var intent = QueueSchedule.Intent.waiting
    var isRetryable = false
    /// The number of the end, in the order of the ends; 0 before.
    var ended: Int64 = 0
    /// The number of bytes so far.
    var completed: Int64 = 0
    /// The size in bytes; nil while it is not known.
    var total: Int64?

    /// Returns the first value that Tern would not have written; nil if all are valid.
    var problem: String? {
        // `try?`: the reason of an invalid URL does not matter here.
        guard url.utf8.count <= Self.mostURLBytes, let target = try? Target(absolute: url), target.string == url else {
            return "the URL is no URL in the form in which it is stored"
        }
        if target.host != host { return "the host is not that of the URL" }
        if let problem = Self.problem(ofPath: path) { return problem }
        for name in [label, group].compactMap(\.self) {
            if let problem = Self.problem(ofName: name) { return problem }
        }
        if !(-QueueOrder.bound...QueueOrder.bound).contains(position) { return "the position is out of bounds" }
        if !(0...Self.mostEnds).contains(ended) { return "the number of the end is out of bounds" }
        if (intent == .failed || intent == .finished) != (ended > 0) { return "the state and the end contradict" }
        let sizes = [completed, total ?? 0]
        guard sizes.allSatisfy({ (0...ControlFile.mostBytes).contains($0) }) else {
            return "a size is no size of a file"
        }
        return nil
    }

    static func problem(ofName name: String) -> String? {
        name.isEmpty || name.utf8.count > mostNameBytes
            ? "a group or label has \(name.utf8.count) bytes, not 1 to \(mostNameBytes)" : nil
    }

    private static func problem(ofPath path: String) -> String? {
        // Compares bytes, because Swift joins `/` and a combining mark behind it into one `Character`.
        let bytes = path.utf8
        guard (1...mostPathBytes).contains(bytes.count), !bytes.contains(0), bytes.last != slash else {
            return "the path is no path of a file"
        }
        let leaves = bytes.split(separator: slash).contains { $0.elementsEqual("..".utf8) }
        return bytes.first == slash || !leaves ? nil : "the path leaves the folder of the queue"
    }

    /// Returns the path that is stored for a file.
    ///
    /// - Parameters:
    ///   - base: The folder of the queue's folder.
    static func path(of file: String, base: String) -> String {
        let bytes = file.utf8
        guard bytes.starts(with: "\(base)/".utf8) else { return file }
        let relative = String(decoding: bytes.dropFirst(base.utf8.count + 1), as: UTF8.self)
        return problem(ofPath: relative) == nil && relative.utf8.first != slash ? relative : file
    }

    /// Returns the path of the file.
    func fullPath(base: String) -> String { path.utf8.first == Self.slash ? path : "\(base)/\(path)" }

    /// The text that two items have in common if only one of them can run.
    var key: String {
        switch kind {
        case .download: "d \(path)"
        // `try?`: a URL that is not valid is compared as text.
        case .upload: "u \(path) \((try? Target(absolute: url)).map { UploadControl.digest(of: $0) } ?? url)"
        }
    }
}

/// The options of an item, as they are stored. Reading them checks each value.
struct QueueOptions: Sendable, Equatable, Codable {
    /// The greatest size that is stored, in bytes.
    static let limit = 256 << 10

    private struct Field: Sendable, Equatable, Codable {
        let name: String
        let value: String
    }

    private var fields: [Field]
    private var digest: ControlFile.StoredDigest?
    private var expectedSize: Int64?
    private var segments: Int?
    private var fails: Bool?
    private var createsFolders: Bool?
    private var uploadProtocol: TransferQueue.UploadProtocol?
    private var contentType: String?
    private var metadata: [String: String]?
    private var chunkSize: Int?
    private var checksum: String?
    private var fileField: String?
    private var formFields: [String: String]?

    init(_ transfer: TransferQueue.Transfer) {
        fields = transfer.headers.map { Field(name: $0.name, value: $0.value) }
        switch transfer.kind {
        case .download:
            digest = transfer.digest.map { ControlFile.StoredDigest($0) }
            expectedSize = transfer.expectedSize
            segments = transfer.segments
            fails = transfer.existing == .fail
            createsFolders = transfer.createsFolders
        case .upload:
            uploadProtocol = transfer.uploadProtocol
            contentType = transfer.contentType
            metadata = transfer.metadata
            chunkSize = transfer.chunkSize
            checksum = transfer.checksum?.rawValue
            if uploadProtocol == .multipart { (fileField, formFields) = (transfer.fileField, transfer.formFields) }
        }
    }

    /// Reads stored options; nil if Tern did not write them.
    init?(_ data: Data) {
        // `try?`: the reason of malformed options does not matter here.
        guard data.count <= Self.limit, let options = try? TernJSONDecoder().decode(Self.self, from: data),
            options.problem == nil
        else { return nil }
        self = options
    }

    func encoded() throws(TransferQueueError) -> Data {
        // `try?`: only a value that is no valid text can fail.
        guard let data = try? TernJSONEncoder().encode(self), data.count <= Self.limit else {
            throw TransferQueueError(.invalidTransfer, "the options have more than \(Self.limit) bytes")
        }
        return data
    }

    /// The first value that no transfer can have; nil if all are valid.
    var problem: String? {
        if let secret = headers.first(where: { Headers.isSecret($0.name) }) {
            return "the field \(secret.name.printable()) is secret, and would be stored: give it with the credentials"
        }
        if let problem = headers.firstProblem() { return problem }
        if headers.contains("Range") || headers.contains("If-Range") {
            return "a durable download sets Range and If-Range itself"
        }
        if let digest, digest.digest == nil { return "the digest is not valid" }
        if let checksum, FileDigest.Algorithm(rawValue: checksum) == nil { return "the checksum is not known" }
        return download.problem ?? (isWholeUpload ? upload.wholeProblem : upload.problem)
    }

    var headers: Headers { Headers(fields.map { Headers.Field(name: $0.name, value: $0.value) }) }
    var expectedBytes: Int64? { expectedSize }

    /// The options of a download, without those of its queue.
    var download: DurableDownloadOptions {
        var options = DurableDownloadOptions(
            expectedSize: expectedSize, digest: digest?.digest, segments: segments ?? 1)
        options.existing = fails == true ? .fail : .overwrite
        options.createsFolders = createsFolders ?? false
        return options
    }

    /// The options of an upload, without those of its queue.
    var upload: DurableUploadOptions {
        var options = DurableUploadOptions()
        options.metadata = metadata ?? [:]
        if let contentType { options.contentType = contentType }
        options.chunkSize = chunkSize
        options.checksum = checksum.flatMap { FileDigest.Algorithm(rawValue: $0) }
        return options
    }

    /// Whether the file is uploaded in one request.
    var isWholeUpload: Bool { uploadProtocol == .put || uploadProtocol == .multipart }

    /// The form around the file; nil for none.
    var form: WholeUpload.Form? {
        guard uploadProtocol == .multipart else { return nil }
        return WholeUpload.Form(fileField: fileField ?? "file", fields: formFields ?? [:])
    }

    var uploadKind: UploadMessages.Kind { uploadProtocol == .httpDraft ? .httpDraft : .tus }
}
