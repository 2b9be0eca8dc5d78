#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Request {
    /// What a request carries.
    ///
    /// Data, encoded values, files and multipart forms of these can be sent again (a redirect that keeps the method, a
    /// challenge, a retry, a pooled connection that turns out to be dead); a stream cannot.
    public struct Body: Sendable {
        enum Content: Sendable {
            case none
            case data(Data)
            /// Made when the request is sent; `format` names what it is for errors.
            case encoded(format: String, @Sendable (_ configuration: Session.Configuration) throws -> Data)
            case file(URL)
            case multipart(MultipartForm)
            case stream(@Sendable () -> ChunkSource, length: Int64?)
        }

        let content: Content
        /// The Content-Type to send if the request has none.
        let contentType: String?
        /// What is done to the bytes on their way; nil for most.
        var shaping: Shaping?

        init(content: Content, contentType: String?) {
            self.content = content
            self.contentType = contentType
        }

        /// No body.
        public static let none = Body(content: .none, contentType: nil)

        /// Bytes in memory. `contentType` is sent unless the request's headers have a Content-Type.
        public static func data(_ data: Data, contentType: String? = "application/octet-stream") -> Body {
            Body(content: .data(data), contentType: contentType)
        }

        /// Text as UTF-8.
        public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> Body {
            Body(content: .data(Data(text.utf8)), contentType: contentType)
        }

        /// A value as JSON, encoded when the request is sent, off the caller's actor, with the session's encoder.
        public static func json(_ value: some Encodable & Sendable) -> Body {
            Body(
                content: .encoded(format: "JSON") { try $0.makeJSONEncoder().encode(value) },
                contentType: "application/json")
        }

        /// A file, read piece by piece while it is sent; its length is taken when the task starts, and a file that
        /// changes its length while it is read fails the task. A URL with another scheme than `file` fails with
        /// `.invalidRequest`.
        public static func file(_ url: URL, contentType: String? = "application/octet-stream") -> Body {
            Body(content: .file(url), contentType: contentType)
        }

        /// Chunks as a sequence yields them, pulled only as fast as the connection takes them. The sequence is iterated
        /// once, off the caller's actor.
        ///
        /// - Parameter length: The exact number of bytes, sent as Content-Length; a sequence that yields more or fewer
        ///   fails the task. nil: the Content-Length among the request's headers, and without one the body is sent
        ///   chunked (RFC 9112 §7.1).
        public static func stream<Chunks: AsyncSequence & Sendable>(
            _ chunks: Chunks, length: Int64? = nil, contentType: String? = "application/octet-stream"
        ) -> Body where Chunks.Element == Data {
            Body(content: .stream({ ChunkSource(chunks) }, length: length), contentType: contentType)
        }

        /// Whether there is a body at all; an empty one counts.
        public var isNone: Bool {
            if case .none = content { true } else { false }
        }

        /// Why it cannot be sent; nil for what can be tried.
        var problem: String? {
            if case .file(let url) = content {
                do throws(FilePath.NoFile) { _ = try FilePath.of(url) } catch { return "the body's file \(error)" }
            }
            return shaping?.throttle?.problem
        }

        /// The bytes, where they are in memory and are sent as they are.
        package var knownBytes: Data? {
            if case .data(let data) = content, shaping == nil { data } else { nil }
        }

        /// Whether the body comes from a sequence that was given.
        var isSequence: Bool {
            switch content {
            case .none, .data, .encoded, .file: false
            case .multipart(let form): !form.isReplayable
            case .stream: true
            }
        }

        /// For who keeps a request beyond its task, a handle or an error: the sequence is let go of, and sending the
        /// request again fails instead of sending an empty body.
        fileprivate var withoutSequence: Body {
            guard isSequence else { return self }
            let length: Int64? = if case .stream(_, let length) = content { length } else { nil }
            let spent: @Sendable () -> ChunkSource = { ChunkSource { throw SpentBody() } }
            return Body(content: .stream(spent, length: length), contentType: contentType)
        }

        /// Whether the body can be sent a second time: everything but a stream, and a form with one.
        public var isReplayable: Bool { !isSequence }
    }
}

/// The chunks of a body, from whatever sequence they come.
struct ChunkSource {
    /// The next chunk, nil at the end. `@concurrent`: the user's sequence never runs on an actor of ours.
    let next: @concurrent () async throws -> Data?

    init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        next = { try await iterator.next() }
    }

    init(_ next: @escaping @concurrent () async throws -> Data?) { self.next = next }
}

/// What the body of a task that has ended gives.
private struct SpentBody: Error, CustomStringConvertible {
    var description: String { "its task has ended, and let go of the sequence" }
}

extension Request {
    /// The same request without the sequence that was its body, if it was one.
    var withoutSequence: Request {
        var request = self
        request.body = body.withoutSequence
        return request
    }
}

extension Request.Body: CustomStringConvertible, CustomReflectable {
    /// The kind of the body and its content type, without any of its bytes.
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
