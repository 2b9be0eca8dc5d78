import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The requests of a protocol for resumable uploads, and the meaning of its responses. Pure.
///
/// - tus 1.0.0: the core protocol, creation, expiration, checksum and termination
///   (https://tus.io/protocols/resumable-upload).
/// - "Resumable Uploads for HTTP" of the IETF (draft-ietf-httpbis-resumable-upload), interop version 8: an upload is
///   created without content, and its bytes follow in one or more requests. An interim response with status 104 can
///   name the upload before the final one. Servers of version 6 have the same messages.
struct UploadMessages: Sendable, Equatable {
    enum Kind: String, Sendable, Codable {
        case tus
        case httpDraft
    }

    /// The reason why a response has no meaning.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
        /// Whether the same request can succeed later.
        var isTemporary = false
    }

    /// The part of a file that a server has.
    struct State: Equatable {
        var offset: Int64
        /// Whether the server needs nothing more.
        var isComplete: Bool
    }

    let kind: Kind
    /// The size of the file in bytes.
    let length: Int64

    static let tusVersion = "1.0.0"
    static let draftVersion = "8"
    /// The versions of the draft whose interim responses have the same meaning.
    static let announcedVersions: Set = ["6", "7", "8"]
    /// The status of an interim response that names an upload (Upload Resumption Supported).
    static let announcementStatus = 104
    /// The statuses that say that an upload is gone. tus answers 403 for one that has expired or belongs to somebody
    /// else.
    static let goneStatuses: Set = [403, 404, 410]

    // MARK: Requests

    /// The fields of each request.
    private var version: Headers {
        switch kind {
        case .tus: ["Tus-Resumable": Self.tusVersion]
        case .httpDraft: ["Upload-Draft-Interop-Version": Self.draftVersion]
        }
    }

    /// Returns the fields of the request that creates an upload.
    ///
    /// - Parameter metadata: Names and values for `Upload-Metadata` of tus; the draft has no place for them.
    func creation(contentType: String?, metadata: [String: String]) -> Headers {
        var fields = version
        fields["Upload-Length"] = "\(length)"
        switch kind {
        case .tus:
            if !metadata.isEmpty { fields["Upload-Metadata"] = Self.text(of: metadata) }
        case .httpDraft:
            // An empty file is complete with its creation.
            fields["Upload-Complete"] = length == 0 ? "?1" : "?0"
            if let contentType { fields["Content-Type"] = contentType }
        }
        return fields
    }

    /// The fields of the request that asks how much the server has.
    var inquiry: Headers { version }

    /// The fields of the request that removes an upload from the server.
    var removal: Headers { version }

    /// Returns the fields of the request that sends bytes.
    ///
    /// - Parameter checksum: The digest of these bytes; nil for none.
    func append(at offset: Int64, count: Int64, checksum: FileDigest?) -> Headers {
        var fields = version
        fields["Upload-Offset"] = "\(offset)"
        switch kind {
        case .tus:
            fields["Content-Type"] = "application/offset+octet-stream"
            if let checksum {
                fields["Upload-Checksum"] = "\(checksum.algorithm.rawValue) \(checksum.bytes.base64EncodedString())"
            }
        case .httpDraft:
            fields["Content-Type"] = "application/partial-upload"
            fields["Upload-Complete"] = offset + count == length ? "?1" : "?0"
            if let checksum { fields["Content-Digest"] = Self.digestField(checksum) }
        }
        return fields
    }

    /// Returns the value of `Upload-Metadata`: each name with its value in base64, sorted by name.
    static func text(of metadata: [String: String]) -> String {
        metadata.sorted { $0.key < $1.key }
            .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Data($0.value.utf8).base64EncodedString())" }
            .joined(separator: ",")
    }

    /// Returns a digest as `Content-Digest` has it (RFC 9530 §2).
    static func digestField(_ digest: FileDigest) -> String {
        let name =
            switch digest.algorithm {
            case .md5: "md5"
            case .sha1: "sha"
            case .sha256: "sha-256"
            case .sha512: "sha-512"
            }
        return "\(name)=:\(digest.bytes.base64EncodedString()):"
    }

    /// Returns the reason why a name cannot stand in `Upload-Metadata`; nil if it can.
    static func problem(ofMetadataName name: String) -> String? {
        let isValid = !name.isEmpty && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
        return isValid
            ? nil : "\"\(name.printable(limit: 40))\" is no name of metadata: it is ASCII without spaces and commas"
    }

    // MARK: Responses

    /// Returns the state of an upload right after its creation.
    func created(_ head: ResponseHead) -> State {
        State(offset: 0, isComplete: length == 0 && (kind == .tus || head.headers["Upload-Complete"] != "?0"))
    }

    /// Reads the response to an inquiry.
    func state(_ head: ResponseHead) throws(Problem) -> State {
        guard let offset = try offset(head) else { throw Problem(description: "the response has no Upload-Offset") }
        if let stated = head.headers["Upload-Length"], Int64(stated) != length {
            throw Problem(description: "the upload on the server has another length than the file's \(length) bytes")
        }
        switch kind {
        case .tus: return State(offset: offset, isComplete: offset == length)
        case .httpDraft:
            let isComplete = head.headers["Upload-Complete"] == "?1"
            if isComplete, offset != length {
                throw Problem(description: "the server calls the upload complete with \(offset) of \(length) bytes")
            }
            return State(offset: offset, isComplete: isComplete)
        }
    }

    /// Reads the response to bytes that were sent from one offset to another. A response after which the server has no
    /// more than before, and needs more, is a problem: the same request would be sent without end.
    func appended(_ head: ResponseHead, from start: Int64, to end: Int64) throws(Problem) -> State {
        switch kind {
        case .tus:
            guard let offset = try offset(head) else { throw Problem(description: "the response has no Upload-Offset") }
            guard (start...end).contains(offset) else {
                throw Problem(
                    description: "the server has \(offset) bytes after those from \(start) to \(end) were sent")
            }
            if offset == start, offset < length {
                throw Problem(
                    description: "the server answered with success, but stored no byte from \(start) to \(end)",
                    isTemporary: true)
            }
            return State(offset: offset, isComplete: offset == length)
        case .httpDraft:
            if let offset = try offset(head), offset != end {
                throw Problem(
                    description: "the server has \(offset) bytes after those from \(start) to \(end) were sent",
                    isTemporary: true)
            }
            // A response without the fields is that of the resource itself, after the last byte.
            if end == length, head.headers["Upload-Complete"] == "?0" {
                throw Problem(
                    description: "the server received all \(length) bytes, but states that the upload is incomplete",
                    isTemporary: true)
            }
            return State(offset: end, isComplete: end == length)
        }
    }

    private func offset(_ head: ResponseHead) throws(Problem) -> Int64? {
        guard let text = head.headers["Upload-Offset"] else { return nil }
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, let offset = Int64(text), offset <= length else {
            throw Problem(description: "Upload-Offset is no position in a file of \(length) bytes")
        }
        return offset
    }

    /// Returns the URL of an upload that an interim response names; nil if it names none. A wrong one costs a request,
    /// because the server is asked for the upload.
    func announcedUpload(_ head: ResponseHead) -> Target? {
        guard kind == .httpDraft, head.status == Self.announcementStatus,
            let version = head.headers["Upload-Draft-Interop-Version"], Self.announcedVersions.contains(version)
        else { return nil }
        // `try?`: without a valid location, the final response decides.
        return try? location(head, of: head.target)
    }

    /// Returns the URL of an upload that was created.
    ///
    /// - Parameter target: That of the request, against which the field is resolved.
    func location(_ head: ResponseHead, of target: Target) throws(Problem) -> Target {
        let locations = Set(head.headers.values(for: "Location"))
        guard let location = locations.first, locations.count == 1 else {
            throw Problem(description: "the response has \(locations.isEmpty ? "no" : "several") Location")
        }
        let upload: Target
        do throws(Target.Problem) {
            upload = try target.resolving(location)
        } catch {
            throw Problem(description: "Location is no URL: \(error)")
        }
        if target.isSecure, !upload.isSecure { throw Problem(description: "Location would give up TLS") }
        return upload
    }
}
