#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The body of a request, ready to be sent: encoded if it is to be, its length known where it can be.
struct PreparedBody: Sendable {
    enum Content: Sendable {
        case none
        case bytes(Data)
        case file(String)
        case stream(@Sendable () -> ChunkSource)
    }

    private(set) var content: Content
    /// Exact; nil when it is not known.
    private(set) var length: Int64?
    let files: FileStore
    /// How fast it may go; nil for as fast as it can.
    let throttle: Request.Body.Throttle?
    private let contentType: String?
    private let contentEncoding: String?

    static let none = PreparedBody()

    private init() {
        content = .none
        length = nil
        contentType = nil
        contentEncoding = nil
        throttle = nil
        files = .shared
    }

    init(_ plan: RequestPlan, files: FileStore) async throws(NetworkError) {
        self.files = files
        let shaping = plan.request.body.shaping
        contentType = plan.request.body.contentType
        throttle = shaping?.throttle
        contentEncoding = shaping?.compression?.rawValue
        let stated = plan.statedLength
        switch plan.request.body.content {
        case .none:
            content = .none
            length = nil
        case .data(let data):
            content = .bytes(data)
            length = Int64(data.count)
        case .encoded(let format, let encode):
            do {
                let data = try encode(plan.context.configuration)
                content = .bytes(data)
                length = Int64(data.count)
            } catch {
                throw Self.failure(
                    "the body cannot be encoded as \(format): \(EncodingProblem.text(error))", error, plan)
            }
        case .file(let url):
            let path = url.path
            do {
                length = try await files.length(ofFile: path)
            } catch {
                throw Self.failure("the body's file cannot be read: \(error)", error, plan)
            }
            content = .file(path)
        case .multipart(let form):
            do {
                let message = try await MultipartMessage(form, files)
                content = .stream { message.makeSource(files) }
                length = message.length
            } catch {
                throw Self.failure("the multipart form cannot be sent: \(error)", error, plan)
            }
        case .stream(let makeSource, let length):
            let exact = length ?? stated
            if exact == 0 {
                // An empty body is sent without asking its source: whether that agrees is seen here or never.
                try await Self.confirmEmpty(makeSource(), plan)
                content = .bytes(Data())
            } else {
                content = .stream(makeSource)
            }
            self.length = exact
        }
        if let compression = shaping?.compression {
            if plan.headers.contains("Content-Encoding") || stated != nil {
                let reason =
                    "a body that is to be compressed cannot have a Content-Encoding or Content-Length of its own"
                throw NetworkError(TransferFailure(.invalidRequest, reason), request: plan.request)
            }
            try compress(compression, plan)
        } else if let stated, let length, stated != length {
            let reason = "Content-Length says \(stated) bytes and the body has \(length)"
            throw NetworkError(TransferFailure(.invalidRequest, reason), request: plan.request)
        }
    }

    /// Bytes in memory are compressed at once, and have a length; what is read piece by piece is compressed on its way.
    private mutating func compress(
        _ compression: Request.Body.Compression, _ plan: RequestPlan
    ) throws(NetworkError) {
        switch content {
        case .none:
            break
        case .bytes(let data):
            do {
                let compressed = try Deflater.compress(data, compression)
                content = .bytes(compressed)
                length = Int64(compressed.count)
            } catch {
                throw Self.failure("the body cannot be compressed: \(error)", error, plan)
            }
        case .file(let path):
            let (files, expected) = (files, length)
            content = .stream {
                Deflater.source(compression, of: ChunkSource.exactly(expected) { try await files.reader(ofFile: path) })
            }
            length = nil
        case .stream(let makeSource):
            let expected = length
            content = .stream { Deflater.source(compression, of: .exactly(expected) { makeSource() }) }
            length = nil
        }
    }

    private static func confirmEmpty(_ source: ChunkSource, _ plan: RequestPlan) async throws(NetworkError) {
        var isEmpty = true
        do {
            while isEmpty, let chunk = try await source.next() { isEmpty = chunk.isEmpty }
        } catch {
            throw failure("the body failed after 0 bytes: \(error)", error, plan)
        }
        if !isEmpty {
            let reason = "the body has more than the stated 0 bytes"
            throw NetworkError(TransferFailure(.requestBody, reason), request: plan.request)
        }
    }

    private static func failure(_ reason: String, _ error: any Error, _ plan: RequestPlan) -> NetworkError {
        NetworkError(TransferFailure(.requestBody, reason, underlying: error), request: plan.request)
    }

    /// Adds the body to an order. Content-Length itself is set by the engine.
    func complete(_ order: inout TransferOrder, _ pipe: UploadPipe?) {
        if order.headers.contains("Content-Length") { order.headers.remove("Content-Length") }
        if case .none = content { return }
        if let contentType, !order.headers.contains("Content-Type") { order.headers["Content-Type"] = contentType }
        if let contentEncoding { order.headers["Content-Encoding"] = contentEncoding }
        if case .bytes(let data) = content { order.source = .bytes(data) }
        if let pipe { order.source = .pipe(pipe, length: length) }
    }

    /// The bytes of a body that is in memory, none for no body; nil for a file or a stream.
    var bytesInMemory: Data? {
        switch content {
        case .none: Data()
        case .bytes(let data): data
        case .file, .stream: nil
        }
    }

    /// A pipe for a body that is produced piece by piece; nil for one that is in memory.
    func makePipe() -> UploadPipe? {
        if case .none = content { return nil }
        // A throttled body goes piece by piece wherever it comes from, and no further ahead than a piece.
        if let throttle { return UploadPipe(capacity: throttle.pieceSize) }
        if case .bytes = content { return nil }
        return UploadPipe()
    }
}

/// Feeds one attempt's pipe, in a Swift task of its own: the response may come, and end the attempt, at any time.
final class BodyPump: Sendable {
    // Owned here; `stop`, called at the attempt's end, cancels it. It is not awaited: a sequence that ignores
    // cancellation must not hold the response up.
    private let task: Task<Void, Never>
    private let pipe: UploadPipe

    init(_ body: PreparedBody, into pipe: UploadPipe, _ transfer: Transfer, _ transport: any Transport) {
        self.pipe = pipe
        task = Task {
            let failure = await Self.feed(pipe, from: body) { transport.control(transfer, .bodyReady) }
            if pipe.end(failure: failure) { transport.control(transfer, .bodyReady) }
        }
    }

    deinit {
        // An attempt that nobody awaited to its end: a stream that was dropped.
        stop()
    }

    func stop() {
        pipe.close()
        task.cancel()
    }

    /// Produces until the end; the exact length is checked here, before a server can be confused by another.
    @concurrent
    private static func feed(
        _ pipe: UploadPipe, from body: PreparedBody, wakeTransport: @Sendable () -> Void
    ) async -> TransferFailure? {
        var sent: Int64 = 0
        var pace = Pace(body.throttle)
        // The chunk that completes the stated length waits for the source's end: a server that has all its bytes answers,
        // and whether more would have come is not known in time.
        var last: Data?
        do {
            let (source, lent) = try await body.openSource(pipe, wakeTransport)
            sent = lent
            while let chunk = try await source.next() {
                if chunk.isEmpty { continue }
                sent += Int64(chunk.count)
                if let length = body.length, sent > length {
                    return TransferFailure(.requestBody, "the body has more than the stated \(length) bytes")
                }
                if sent == body.length {
                    last = chunk
                    continue
                }
                guard try await pace.push(chunk, into: pipe, wakeTransport) else { return nil }
            }
        } catch {
            return TransferFailure(.requestBody, "the body failed after \(sent) bytes: \(error)", underlying: error)
        }
        if let length = body.length, sent < length {
            return TransferFailure(.requestBody, "the body ended after \(sent) of the stated \(length) bytes")
        }
        // A task that is cancelled while it waits for its pace has ended already.
        if let last { _ = try? await pace.push(last, into: pipe, wakeTransport) }
        return nil
    }
}

extension PreparedBody {
    /// The source, and how many bytes of it are sent already.
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
            // All but the last byte, which waits until it is seen to be the last. What is throttled goes by the piece.
            let most = throttle == nil ? (length ?? 0) - 1 : 0
            let sent = most > 0 ? await pipe.lend(file, upTo: most, wakeTransport) : 0
            return (files.reader(of: file, from: sent), sent)
        case .stream(let makeSource):
            return (makeSource(), 0)
        }
    }
}
