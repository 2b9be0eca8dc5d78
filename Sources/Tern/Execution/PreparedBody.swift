import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The body of a request, ready to be sent: encoded, opened or compressed, with its length if that is known.
///
/// A class, because each attempt of the request has it.
final class PreparedBody: Sendable {
    enum Content: Sendable {
        case none
        case bytes(Data)
        case file(String)
        case stream(@Sendable () -> ChunkSource)
    }

    let content: Content
    /// The exact number of bytes; nil if it is not known.
    let length: Int64?
    let files: FileStore
    /// The speed limit; nil for none.
    let throttle: Request.Body.Throttle?
    /// Returns the fields after the body; nil for none.
    private let trailers: (@Sendable () async throws -> Headers)?
    private let contentType: String?
    private let contentEncoding: String?

    static let none = PreparedBody()

    private init() {
        content = .none
        length = nil
        contentType = nil
        contentEncoding = nil
        throttle = nil
        trailers = nil
        files = .shared
    }

    /// Encodes, measures and compresses the body of a request.
    ///
    /// - Throws: An error of kind `.requestBody` or `.invalidRequest`.
    init(_ prepared: PreparedRequest, files: FileStore) async throws(NetworkError) {
        let request = prepared.request
        self.files = files
        let transformation = request.body.transformation
        contentType = request.body.contentType
        throttle = transformation?.throttle
        contentEncoding = transformation?.compression?.rawValue
        trailers = if case .stream(let sequence) = request.body.content { sequence.trailers } else { nil }
        let opened = try await Self.open(prepared, files)
        guard let compression = transformation?.compression else {
            if let stated = prepared.statedLength, let length = opened.length, stated != length {
                let reason = "Content-Length says \(stated) bytes and the body has \(length)"
                throw NetworkError(FailureCause(.invalidRequest, reason), request: request)
            }
            (content, length) = opened
            return
        }
        if prepared.headers.contains("Content-Encoding") || prepared.statedLength != nil {
            let reason = "a body that Tern compresses cannot have a Content-Encoding or Content-Length of its own"
            throw NetworkError(FailureCause(.invalidRequest, reason), request: request)
        }
        (content, length) = try Self.compressed(opened, by: compression, of: request, files)
    }

    /// Encodes, opens or measures the body, before it is compressed.
    private static func open(
        _ prepared: PreparedRequest, _ files: FileStore
    ) async throws(NetworkError) -> (content: Content, length: Int64?) {
        let request = prepared.request
        switch request.body.content {
        case .none:
            return (.none, nil)
        case .data(let data):
            return (.bytes(data), Int64(data.count))
        case .encoded(let format, let encode):
            do {
                let data = try encode(prepared.registry.configuration.json)
                return (.bytes(data), Int64(data.count))
            } catch {
                throw failure(
                    "the body cannot be encoded as \(format): \(EncodingProblem.text(error))", cause: error, of: request
                )
            }
        case .file(let url):
            do {
                return (.file(url.path), try await files.length(ofFile: url.path))
            } catch {
                throw failure("the body's file cannot be read: \(error)", cause: error, of: request)
            }
        case .multipart(let form):
            do {
                let message = try await MultipartMessage(form, files)
                return (.stream { message.makeSource(files) }, message.length)
            } catch {
                throw failure("the multipart form cannot be sent: \(error)", cause: error, of: request)
            }
        case .stream(let sequence):
            let exact = sequence.length ?? prepared.statedLength
            if exact != 0 { return (.stream(sequence.open), exact) }
            // An empty body is sent without its source, so the source is checked here.
            try await confirmEmpty(sequence.open(), of: request)
            return (.bytes(Data()), exact)
        }
    }

    /// Compresses bytes in memory at once, so that their length is known. A body that is read piece by piece is
    /// compressed while it is sent.
    private static func compressed(
        _ body: (content: Content, length: Int64?), by compression: Request.Body.Compression, of request: Request,
        _ files: FileStore
    ) throws(NetworkError) -> (content: Content, length: Int64?) {
        let expected = body.length
        switch body.content {
        case .none:
            return body
        case .bytes(let data):
            do {
                let compressed = try Deflater.compress(data, compression)
                return (.bytes(compressed), Int64(compressed.count))
            } catch {
                throw failure("the body cannot be compressed: \(error)", cause: error, of: request)
            }
        case .file(let path):
            let content = Content.stream {
                Deflater.source(compression, of: ChunkSource.exactly(expected) { try await files.reader(ofFile: path) })
            }
            return (content, nil)
        case .stream(let makeSource):
            return (.stream { Deflater.source(compression, of: .exactly(expected) { makeSource() }) }, nil)
        }
    }

    private static func confirmEmpty(_ source: ChunkSource, of request: Request) async throws(NetworkError) {
        var isEmpty = true
        do {
            while isEmpty, let chunk = try await source.next() { isEmpty = chunk.isEmpty }
        } catch {
            throw failure("the body failed after 0 bytes: \(error)", cause: error, of: request)
        }
        if !isEmpty {
            let reason = "the body has more than the stated 0 bytes"
            throw NetworkError(FailureCause(.requestBody, reason), request: request)
        }
    }

    private static func failure(_ reason: String, cause: any Error, of request: Request) -> NetworkError {
        NetworkError(FailureCause(.requestBody, reason, underlying: cause), request: request)
    }

    /// Adds the body and its header fields to a request. The transport sets Content-Length.
    func add(to message: inout WireRequest.Message, pipe: UploadPipe?) {
        if message.headers.contains("Content-Length") { message.headers.remove("Content-Length") }
        if case .none = content { return }
        if let contentType, !message.headers.contains("Content-Type") { message.headers["Content-Type"] = contentType }
        if let contentEncoding { message.headers["Content-Encoding"] = contentEncoding }
        if case .bytes(let data) = content { message.source = .bytes(data) }
        if let pipe { message.source = .pipe(pipe, length: length) }
    }

    /// The bytes of a body in memory, empty for no body; nil for a file or a stream.
    var bytesInMemory: Data? {
        switch content {
        case .none: Data()
        case .bytes(let data): data
        case .file, .stream: nil
        }
    }

    /// Creates a pipe for a body that is produced piece by piece; nil for a body in memory.
    func makePipe() -> UploadPipe? {
        if case .none = content { return nil }
        // A throttled body is sent piece by piece from any source, at most one piece ahead.
        if let throttle { return UploadPipe(capacity: throttle.pieceSize, hasTrailers: trailers != nil) }
        if case .bytes = content { return nil }
        return UploadPipe(hasTrailers: trailers != nil)
    }
}

extension BodyPump {
    /// Begins to feed the pipe of an attempt.
    convenience init(_ body: PreparedBody, into pipe: UploadPipe, for attempt: Attempt, over transport: any Transport) {
        let task = Task {
            let end = await Self.feed(pipe, from: body) { transport.control(attempt, .bodyReady) }
            if pipe.end(end) { transport.control(attempt, .bodyReady) }
        }
        self.init(pipe, task: task)
    }

    /// Produces the body to its end, and checks that it has the stated length. Returns the trailers.
    @concurrent
    private static func feed(
        _ pipe: UploadPipe, from body: PreparedBody, wakeTransport: @Sendable () -> Void
    ) async -> Result<Headers, FailureCause> {
        var sent: Int64 = 0
        var throttle = BodyThrottle(body.throttle)
        // The chunk that completes the stated length waits for the end of the source. Otherwise, the server would
        // answer before it is known whether the source produces more bytes.
        var last: Data?
        do {
            let (source, readCount) = try await body.openSource(pipe, wakeTransport)
            sent = readCount
            while let chunk = try await source.next() {
                if chunk.isEmpty { continue }
                sent += Int64(chunk.count)
                if let length = body.length, sent > length {
                    let reason = "the body has more than the stated \(length) bytes"
                    return .failure(FailureCause(.requestBody, reason))
                }
                if sent == body.length {
                    last = chunk
                    continue
                }
                let isAccepted = try await throttle.push(chunk, into: pipe, wakeTransport: wakeTransport)
                guard isAccepted else { return .success([:]) }
            }
        } catch {
            let reason = "the body failed after \(sent) bytes: \(error)"
            return .failure(FailureCause(.requestBody, reason, underlying: error))
        }
        if let length = body.length, sent < length {
            let reason = "the body ended after \(sent) of the stated \(length) bytes"
            return .failure(FailureCause(.requestBody, reason))
        }
        // `try?`: a task that is cancelled while it waits has already ended.
        if let last { _ = try? await throttle.push(last, into: pipe, wakeTransport: wakeTransport) }
        return await body.finalTrailers()
    }
}

extension PreparedBody {
    /// Returns the fields after the body. Called after its last byte was produced.
    fileprivate func finalTrailers() async -> Result<Headers, FailureCause> {
        guard let trailers else { return .success([:]) }
        do {
            return .success(try await trailers())
        } catch {
            let reason = "the trailers of the request failed: \(error)"
            return .failure(FailureCause(.requestBody, reason, underlying: error))
        }
    }

    /// Returns the source of the body and the number of bytes that were already sent.
    fileprivate func openSource(
        _ pipe: UploadPipe, _ wakeTransport: () -> Void
    ) async throws -> (source: ChunkSource, sent: Int64) {
        switch content {
        case .none:
            return (ChunkSource { nil }, 0)
        case .bytes(let data):
            var rest: Data? = data
            return (ChunkSource { rest.take() }, 0)
        case .file(let path):
            let file = try await files.openForReading(path)
            // The last byte is held back until a read confirms the end of the file. A throttled body is read in pieces.
            let most = throttle == nil ? (length ?? 0) - 1 : 0
            let sent = most > 0 ? await pipe.sendFile(file, upTo: most, wakeTransport: wakeTransport) : 0
            return (files.reader(of: file, from: sent), sent)
        case .stream(let makeSource):
            return (makeSource(), 0)
        }
    }
}

/// Pushes the chunks of one body into its pipe, as fast as the throttle allows.
struct BodyThrottle {
    private let throttle: Request.Body.Throttle?
    /// The time to wait before the next piece.
    private var delay = Duration.zero

    init(_ throttle: Request.Body.Throttle?) { self.throttle = throttle }

    /// Pushes a chunk. Returns false if the transport reads no more bytes.
    ///
    /// - Throws: `CancellationError` if the wait is cancelled.
    mutating func push(
        _ chunk: Data, into pipe: UploadPipe, wakeTransport: () -> Void
    ) async throws -> Bool {
        guard let throttle else { return await Self.push(chunk, into: pipe, wakeTransport: wakeTransport) }
        var rest = chunk
        while !rest.isEmpty {
            if delay > .zero { try await throttle.clock.sleepWithoutDescriptor(for: delay) }
            let piece = rest.prefix(throttle.pieceSize)
            guard await Self.push(piece, into: pipe, wakeTransport: wakeTransport) else { return false }
            delay = throttle.delay(after: piece.count)
            rest = rest.dropFirst(piece.count)
        }
        return true
    }

    private static func push(_ chunk: Data, into pipe: UploadPipe, wakeTransport: () -> Void) async -> Bool {
        let push = await pipe.push(chunk)
        if push.accepted, push.isStarved { wakeTransport() }
        return push.accepted
    }
}
