import Tern
import TernConcurrency
import TernTesting

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A server for resumable uploads, written after the texts of tus 1.0.0 and of the draft of the IETF, with faults that
/// a test asks for.
final class UploadServer: Sendable {
    /// A fault of one request.
    enum Fault: Sendable {
        /// Ends the connection after so many bytes of the body were stored.
        case cut(after: Int)
        /// Stores the whole body, and ends the connection without a response.
        case loseAnswer
        case status(Int, LoopbackServer.Fields)
        /// Forgets the upload, then answers with 404.
        case forget
        /// Sends interim responses with these fields and status 104 before the response to a creation. `PATH` stands
        /// for the path of the upload.
        case announce([LoopbackServer.Fields], then: Ending)
    }

    /// The end of a creation that was announced.
    enum Ending: Sendable {
        case answer
        /// Ends the connection without a response.
        case loss
        case status(Int)
    }

    struct Upload: Sendable {
        var length: Int
        var bytes: [UInt8] = []
        var isComplete = false
        var fields: [String: String]
    }

    private struct State {
        var uploads: [String: Upload] = [:]
        /// The number of uploads so far.
        var created = 0
        var requests: [String] = []
        var faults: [String: [Fault]] = [:]
        var checksums: [String] = []
    }

    private let kind: UploadMessages.Kind
    private let state = Lock(State())

    init(_ kind: UploadMessages.Kind) { self.kind = kind }

    var uploads: [Upload] { state.withLock { state in state.uploads.sorted { $0.key < $1.key }.map(\.value) } }
    /// The methods and positions of the requests so far, such as `PATCH 5`.
    var requests: [String] { state.withLock { $0.requests } }
    /// An upload that has every byte.
    var completeUpload: Upload? { state.withLock { $0.uploads.values.first { $0.isComplete } } }

    func removeAll() { state.withLock { $0.uploads = [:] } }

    var checksums: [String] { state.withLock { $0.checksums } }

    func removeFaults() { state.withLock { $0.faults = [:] } }

    /// Adds faults for the next requests with a method.
    func add(_ faults: Fault..., to method: String) { state.withLock { $0.faults[method, default: []] += faults } }

    func answer(_ exchange: LoopbackServer.Exchange) throws {
        let request = exchange.request
        let (method, position) = (request.method, request["Upload-Offset"])
        let fault = state.withLock { state -> Fault? in
            state.requests.append([method, position].compactMap(\.self).joined(separator: " "))
            guard state.faults[method]?.isEmpty == false else { return nil }
            return state.faults[method]?.removeFirst()
        }
        let version = kind == .tus ? request["Tus-Resumable"] : request["Upload-Draft-Interop-Version"]
        guard version == (kind == .tus ? "1.0.0" : "8") else { return try respond(exchange, 412) }
        if case .status(let status, let fields)? = fault {
            _ = try exchange.drainBody()
            return try exchange.respond(status: status, headers: fields)
        }
        if case .forget? = fault {
            state.withLock { $0.uploads[request.path] = nil }
            _ = try exchange.drainBody()
            return try respond(exchange, 404)
        }
        switch method {
        case "POST": try create(exchange, fault)
        case "HEAD": try tell(exchange)
        case "PATCH": try append(exchange, fault)
        default: try respond(exchange, 405)
        }
    }

    private func create(_ exchange: LoopbackServer.Exchange, _ fault: Fault?) throws {
        let request = exchange.request
        guard try exchange.readBody().isEmpty, let length = request["Upload-Length"].flatMap({ Int($0) }) else {
            return try respond(exchange, 400)
        }
        var fields: [String: String] = [:]
        for name in ["Upload-Metadata", "Upload-Complete", "Content-Type", "Authorization"] {
            fields[name] = request[name]
        }
        let path = state.withLock { state in
            state.created += 1
            let path = "/files/\(state.created)"
            state.uploads[path] = Upload(length: length, isComplete: length == 0, fields: fields)
            return path
        }
        if case .loseAnswer? = fault { return exchange.close() }
        if case .announce(let heads, let ending)? = fault {
            for fields in heads {
                let lines = fields.map { "\($0.name): \($0.value.replacing("PATH", with: path))\r\n" }.joined()
                try exchange.write("HTTP/1.1 104 Upload Resumption Supported\r\n\(lines)\r\n")
            }
            switch ending {
            case .answer: break
            case .loss: return exchange.close()
            case .status(let status): return try respond(exchange, status)
            }
        }
        try respond(exchange, 201, [("Location", path)])
    }

    private func tell(_ exchange: LoopbackServer.Exchange) throws {
        guard let upload = state.withLock({ $0.uploads[exchange.request.path] }) else {
            return try respond(exchange, 404)
        }
        var fields: LoopbackServer.Fields = [
            ("Upload-Offset", "\(upload.bytes.count)"), ("Upload-Length", "\(upload.length)"),
            ("Cache-Control", "no-store"),
        ]
        if kind == .httpDraft { fields.append(("Upload-Complete", upload.isComplete ? "?1" : "?0")) }
        try respond(exchange, kind == .tus ? 200 : 204, fields)
    }

    private func append(_ exchange: LoopbackServer.Exchange, _ fault: Fault?) throws {
        let (request, path) = (exchange.request, exchange.request.path)
        let type = kind == .tus ? "application/offset+octet-stream" : "application/partial-upload"
        guard let upload = state.withLock({ $0.uploads[path] }) else { return try respond(exchange, 404) }
        guard request["Content-Type"] == type else { return try respond(exchange, 415) }
        guard request["Upload-Offset"] == "\(upload.bytes.count)" else { return try respond(exchange, 409) }
        var rest = Int.max
        if case .cut(let count)? = fault { rest = count }
        let hash = FileHash(.sha256)
        var position = upload.bytes.count
        while rest > 0, let bytes = try exchange.readChunk(upTo: min(rest, 64 << 10)) {
            rest -= bytes.count
            hash?.update(Data(bytes))
            // The bytes of a killed process can still arrive while those of the next one do.
            let isNext = state.withLock { state in
                guard state.uploads[path]?.bytes.count == position else { return false }
                state.uploads[path]?.bytes += bytes
                return true
            }
            guard isNext else {
                exchange.closeAfterResponse()
                return try respond(exchange, 409)
            }
            position += bytes.count
        }
        let stated = request["Upload-Checksum"] ?? request["Content-Digest"]
        if let stated, let digest = hash?.finalize().bytes.base64EncodedString() {
            state.withLock { $0.checksums.append(stated) }
            guard stated == "sha256 \(digest)" || stated == "sha-256=:\(digest):" else {
                return try respond(exchange, 460)
            }
        }
        let (length, count) = state.withLock { state in
            let count = state.uploads[path]?.bytes.count ?? 0
            if count == upload.length, request["Upload-Complete"] != "?0" { state.uploads[path]?.isComplete = true }
            return (upload.length, count)
        }
        switch fault {
        case .cut?, .loseAnswer?: return exchange.reset()
        default: break
        }
        if kind == .tus { return try respond(exchange, 204, [("Upload-Offset", "\(count)")]) }
        let isLast = request["Upload-Complete"] == "?1" && count == length
        try respond(exchange, isLast ? 200 : 204, [("Upload-Complete", isLast ? "?1" : "?0")], isLast ? "stored" : "")
    }

    private func respond(
        _ exchange: LoopbackServer.Exchange, _ status: Int, _ fields: LoopbackServer.Fields = [], _ text: String = ""
    ) throws {
        let version = kind == .tus ? ("Tus-Resumable", "1.0.0") : ("Upload-Draft-Interop-Version", "8")
        try exchange.respond(status: status, headers: fields + [version], body: Array(text.utf8))
    }
}
