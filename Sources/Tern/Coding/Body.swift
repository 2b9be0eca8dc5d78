#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Request {
    /// The body of a request.
    ///
    /// Data, encoded values, files, and multipart forms of these can be sent again: after a redirect that keeps the
    /// method, a challenge, a retry, or on a new connection when a pooled one was closed. A stream cannot.
    public struct Body: Sendable {
        enum Content: Sendable {
            case none
            case data(Data)
            /// Encoded when the request is sent. `format` names the format in errors.
            case encoded(format: String, @Sendable (_ json: JSONCoding) throws -> Data)
            case file(URL)
            case multipart(MultipartForm)
            case stream(BodySequence)
        }

        let content: Content
        /// The Content-Type to send if the request has none.
        let contentType: String?
        /// The changes to make to the bytes while they are sent; nil for most bodies.
        var transformation: BodyTransformation?

        init(content: Content, contentType: String?) {
            self.content = content
            self.contentType = contentType
        }

        /// The body as an argument of a program; nil if it is no text in memory, or a long one.
        var shortText: String? {
            guard transformation == nil else { return nil }
            let bytes: Data?
            switch content {
            case .data(let data): bytes = data
            // `try?`: a value that cannot be encoded has no text.
            case .encoded(_, let encode): bytes = try? encode(JSONCoding())
            case .none, .file, .multipart, .stream: bytes = nil
            }
            guard let bytes, bytes.count <= 64 << 10, !bytes.contains(0) else { return nil }
            return String(validating: bytes, as: UTF8.self)
        }

        /// No body.
        public static let none = Body(content: .none, contentType: nil)

        /// Creates a body from bytes in memory. `contentType` is sent unless the request's headers have a Content-Type.
        public static func data(_ data: Data, contentType: String? = "application/octet-stream") -> Body {
            Body(content: .data(data), contentType: contentType)
        }

        /// Creates a body from text, sent as UTF-8.
        public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> Body {
            Body(content: .data(Data(text.utf8)), contentType: contentType)
        }

        /// Creates a body from a value as JSON. The session's encoder encodes it when the request is sent, off the
        /// caller's actor.
        public static func json(_ value: some Encodable & Sendable) -> Body {
            Body(
                content: .encoded(format: "JSON") { try $0.encode(value) },
                contentType: "application/json")
        }

        /// Creates a body from a literal whose members have different types, as in `.json(["id": 1, "tags": ["a",
        /// nil]])`.
        public static func json(_ value: JSONValue) -> Body {
            Body(
                content: .encoded(format: "JSON") { try $0.encode(value) },
                contentType: "application/json")
        }

        /// Creates a body from a file, which is read in pieces while it is sent. The length is read when the task
        /// starts, and a file whose length changes while it is read fails the task. A URL with a scheme other than
        /// `file` fails with `.invalidRequest`.
        public static func file(_ url: URL, contentType: String? = "application/octet-stream") -> Body {
            Body(content: .file(url), contentType: contentType)
        }

        /// Creates a body from a sequence of chunks, which is read only as fast as the connection accepts them. The
        /// sequence is iterated once, off the caller's actor.
        ///
        /// - Parameter length: The exact number of bytes, sent as Content-Length. A sequence that yields more or fewer
        ///   bytes fails the task. With nil, the request's own Content-Length header applies; without one the body is
        ///   sent chunked (RFC 9112 §7.1).
        public static func stream<Chunks: AsyncSequence & Sendable>(
            _ chunks: Chunks, length: Int64? = nil, contentType: String? = "application/octet-stream"
        ) -> Body where Chunks.Element == Data {
            Body(content: .stream(BodySequence(length: length) { ChunkSource(chunks) }), contentType: contentType)
        }

        /// Creates a body from a sequence of chunks, with fields that follow the last one (trailers, RFC 9110 §6.5).
        /// Use it for values that are known only at the end, such as a digest of the body.
        ///
        /// ```swift
        /// let body = Request.Body.stream(chunks, trailers: { ["Content-Digest": await digest.field] })
        /// ```
        ///
        /// The body is always sent chunked (RFC 9112 §7.1) or over HTTP/2: a request with a Content-Length is refused
        /// with `.invalidRequest` before anything is sent. Tern adds no `Trailer` field; set it if the server wants the
        /// names in advance (RFC 9110 §6.6.2). URLSession cannot send trailers, and refuses the request with
        /// `.unsupported`.
        ///
        /// - Parameters:
        ///   - chunks: The sequence. It is read like that of ``stream(_:length:contentType:)``.
        ///   - contentType: The Content-Type to send if the request has none.
        ///   - trailers: Returns the fields. Called at most once, off the caller's actor, after the sequence has ended.
        ///     Cancelling the request cancels it. An error that it throws fails the task with `.requestBody`. A field
        ///     that no trailer can be, because it frames, routes, authenticates or changes the request or describes its
        ///     body, fails it with `.invalidRequest`. In both cases, the server receives no complete request.
        public static func stream<Chunks: AsyncSequence & Sendable>(
            _ chunks: Chunks, contentType: String? = "application/octet-stream",
            trailers: @escaping @Sendable () async throws -> Headers
        ) -> Body where Chunks.Element == Data {
            Body(content: .stream(BodySequence(trailers: trailers) { ChunkSource(chunks) }), contentType: contentType)
        }

        /// Creates a body from chunks that can be iterated any number of times, always with the same bytes, so that it
        /// can be sent again.
        package static func chunks<Chunks: AsyncSequence & Sendable>(
            _ chunks: Chunks, length: Int64, contentType: String?
        ) -> Body where Chunks.Element == Data {
            let sequence = BodySequence(length: length, isReplayable: true) { ChunkSource(chunks) }
            return Body(content: .stream(sequence), contentType: contentType)
        }

        /// A Boolean value that indicates whether there is no body. An empty body is a body.
        public var isNone: Bool {
            if case .none = content { true } else { false }
        }

        /// The reason why the body cannot be sent; nil if it can be tried.
        var problem: String? {
            if case .file(let url) = content {
                do throws(FilePath.NotAFile) { _ = try FilePath.of(url) } catch { return "the body's file \(error)" }
            }
            if case .stream(let sequence) = content, let length = sequence.length, length < 0 {
                return "the body's length is \(length)"
            }
            return transformation?.throttle?.problem
        }

        /// The bytes, if they are in memory and are sent unchanged.
        package var knownBytes: Data? {
            if case .data(let data) = content, transformation == nil { data } else { nil }
        }

        /// Returns the number of bytes that are sent, as far as it is known before the body is encoded, compressed or
        /// read; nil otherwise, and for a body that cannot be measured.
        ///
        /// - Parameter stated: The Content-Length of the request; nil for none.
        func length(stated: Int64?, _ files: FileStore) async -> Int64? {
            if case .none = content { return 0 }
            if transformation?.compression != nil { return nil }
            switch content {
            case .none: return 0
            case .data(let data): return Int64(data.count)
            case .encoded: return stated
            // `try?`: the task itself fails with the reason.
            case .file(let url): return try? await files.length(ofFile: url.path)
            case .multipart(let form): return try? await MultipartMessage(form, files).length  // As above.
            case .stream(let sequence): return sequence.length ?? stated
            }
        }

        /// Whether the body comes from a sequence of the caller.
        var isSequence: Bool {
            switch content {
            case .none, .data, .encoded, .file: false
            case .multipart(let form): !form.isReplayable
            case .stream(let sequence): !sequence.isReplayable
            }
        }

        /// The same body without its sequence. A handle or an error that keeps a request after its task does not keep
        /// the sequence, and sending that request again fails instead of sending an empty body.
        var withoutSequence: Body {
            guard isSequence else { return self }
            let length: Int64? = if case .stream(let sequence) = content { sequence.length } else { nil }
            let released = BodySequence(length: length) { ChunkSource { throw ReleasedBodyStream() } }
            return Body(content: .stream(released), contentType: contentType)
        }

        /// Whether fields follow the body.
        var hasTrailers: Bool {
            if case .stream(let sequence) = content { sequence.trailers != nil } else { false }
        }

        /// A Boolean value that indicates whether the body can be sent a second time. False for a stream and for a form
        /// with one.
        public var isReplayable: Bool { !isSequence }
    }
}

/// A sequence of the caller as the body of a request. A class, because few bodies have one and requests are copied
/// often.
final class BodySequence: Sendable {
    /// The exact number of bytes; nil if it is not known.
    let length: Int64?
    /// Returns the fields after the last chunk; nil for none.
    let trailers: (@Sendable () async throws -> Headers)?
    /// Whether the sequence can be opened any number of times, with the same bytes; false for every sequence of a caller.
    let isReplayable: Bool
    /// Opens the sequence. Called once, unless it is replayable.
    let open: @Sendable () -> ChunkSource

    init(
        length: Int64? = nil, trailers: (@Sendable () async throws -> Headers)? = nil, isReplayable: Bool = false,
        open: @escaping @Sendable () -> ChunkSource
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.trailers = trailers
        self.open = open
    }
}

/// The error of a body whose sequence was released with its task.
private struct ReleasedBodyStream: Error, CustomStringConvertible {
    var description: String { "the body stream was released when its task ended, so it cannot be sent again" }
}

extension Request.Body: CustomStringConvertible, CustomReflectable {
    /// The kind of the body and its content type, without its bytes.
    public var description: String {
        let kind =
            switch content {
            case .none: "no body"
            case .data(let data): "\(data.count) bytes"
            case .encoded(let format, _): format
            case .file: "a file"
            case .multipart: "a multipart form"
            case .stream: "a stream"
            }
        return contentType.map { "\(kind) of type \($0.printable(limit: 200))" } ?? kind
    }

    /// An empty mirror. The bytes can hold secrets, so `dump` shows only ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Request.Body {
    /// Creates a body from a value as a form (`application/x-www-form-urlencoded`), encoded when the request is sent,
    /// off the caller's actor. nil gives an empty body of that type.
    public static func form(
        _ value: some Encodable & Sendable, encoder: FormEncoder = FormEncoder()
    ) -> Self {
        Self(
            content: .encoded(format: "a form") { _ in Data(try encoder.text(of: value).utf8) }, contentType: formType)
    }

    /// Creates a body from names and values as a form (`application/x-www-form-urlencoded`), in their order.
    public static func form(_ items: Request.Query) -> Self {
        Self(content: .data(Data(items.encoded.utf8)), contentType: formType)
    }

    /// Creates a body from a value as a property list (`application/x-plist`), encoded when the request is sent, off
    /// the caller's actor.
    public static func propertyList(
        _ value: some Encodable & Sendable, format: PropertyListDecoder.PropertyListFormat = .xml
    ) -> Self {
        let encode: @Sendable (JSONCoding) throws -> Data = { _ in
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return try encoder.encode(value)
        }
        return Self(content: .encoded(format: "a property list", encode), contentType: "application/x-plist")
    }

    /// Creates a body from a multipart form. Each part is read in pieces while it is sent, and the exact length is sent
    /// before. A form without parts gives no body.
    public static func multipart(_ form: MultipartForm) -> Self {
        form.isEmpty ? .none : Self(content: .multipart(form), contentType: form.contentType)
    }

    private static let formType = "application/x-www-form-urlencoded"
}

/// Describes the error of an encoder without the value, which can be secret.
package enum EncodingProblem {
    package static func text(_ error: any Error) -> String {
        guard case EncodingError.invalidValue(let value, let context)? = error as? EncodingError else {
            return "\(error)"
        }
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        let place = path.isEmpty ? "" : " at \(path)"
        return "\(context.debugDescription) (a \(Swift.type(of: value))\(place))"
    }
}

extension Request.Body {
    /// The changes to the bytes of a body while it is sent. A reference, because few bodies have it and requests are
    /// copied often.
    final class BodyTransformation: Sendable {
        let compression: Compression?
        let throttle: Throttle?

        init(compression: Compression?, throttle: Throttle?) {
            self.compression = compression
            self.throttle = throttle
        }
    }

    /// A compression of a body, by its name in `Content-Encoding` (RFC 9110 §8.4.1).
    public enum Compression: String, Sendable, Hashable {
        /// The zlib format (RFC 1950).
        case deflate
        /// The gzip format (RFC 1952).
        case gzip

        /// Returns bytes in this format, compressed at zlib's default level. Takes time in proportion to their number,
        /// on the caller's thread.
        ///
        /// - Throws: `NetworkError` of kind `.requestBody` without memory for the compression.
        public func compress(_ bytes: Data) throws(NetworkError) -> Data {
            do {
                return try Deflater.compress(bytes, self)
            } catch {
                throw NetworkError(.requestBody, reason: "\(bytes.count) bytes could not be compressed: \(error)")
            }
        }

        /// Returns the content of bytes in this format, on the caller's thread. At most 64 KiB beyond the limit are
        /// decompressed, whatever the bytes contain.
        ///
        /// - Parameter limit: The maximum number of bytes of the content.
        /// - Throws: `NetworkError` of kind `.tooLarge` for a longer content, `.malformedResponse` for bytes that are
        ///   not in the format or are followed by others, and `.truncatedBody` for bytes that end before the content
        ///   does.
        public func decompress(_ bytes: Data, upTo limit: Int) throws(NetworkError) -> Data {
            do throws(FailureCause) {
                return try Inflater.decompress(bytes, self, upTo: limit)
            } catch {
                throw NetworkError(error.kind, reason: error.reason)
            }
        }
    }

    /// Returns the same body, compressed while it is sent, with the matching `Content-Encoding`. Use it only for
    /// servers that are known to accept it, because HTTP has no way to ask before.
    ///
    /// Bytes in memory are sent with their exact length, files and streams chunked (RFC 9112 §7.1). A request with a
    /// `Content-Encoding` or `Content-Length` of its own is refused with `.invalidRequest`.
    public func compressed(_ compression: Compression = .deflate) -> Self {
        var body = self
        body.transformation = BodyTransformation(compression: compression, throttle: transformation?.throttle)
        return body
    }

    /// Returns the same body, limited to the rate of the throttle each time that it is sent.
    public func throttled(_ throttle: Throttle) -> Self {
        var body = self
        body.transformation = BodyTransformation(compression: transformation?.compression, throttle: throttle)
        return body
    }
}
