import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The parameters of a fetch.
struct ImageFetch: Sendable {
    let request: ImageRequest
    let key: SourceKey
    /// The freshness of the cached bytes to revalidate; nil to fetch the bytes.
    let cachedFreshness: ImageFreshness?
    let priority: Request.Priority
    /// Whether the disk may keep what arrives of an interrupted response.
    let keepsPartialData: Bool
    /// The options for a source of decoded images.
    let decoding: ImageDecodingOptions
    /// The buffer for previews; nil without previews.
    let chunks: ChunkBuffer?
    /// Called with the progress, at most about thirty times a second.
    let report: @Sendable (Session.Progress) -> Void
}

/// Fetches the encoded bytes of an image. Resumes partial downloads, and keeps the data of interrupted ones.
struct ImageFetcher: Sendable {
    /// The result of a fetch.
    enum Fetched: Sendable {
        case bytes(Data, ImageFreshness, resumedFrom: Int, contentType: String? = nil)
        case image(RasterImage)
        /// The server confirmed the cached bytes (304).
        case notModified(ImageFreshness)
    }

    /// The result of one exchange with the server.
    private enum ExchangeResult {
        case done(Fetched)
        /// The response does not match the partial download: fetch the whole.
        case startOver
        /// The response was a part of the rest: fetch the next one.
        case more(PartialImage)
    }

    /// A request ready to be sent, with the partial download that it continues.
    private struct PreparedFetch {
        let fetch: ImageFetch
        let request: Request
        let cachedFreshness: ImageFreshness?
        var partial: PartialImage?
        /// The partial download on the disk.
        let stored: PartialImage?
        /// The partial download that a response did not fit, because of which the whole is fetched; nil for none.
        var contradicted: PartialImage?
        /// Whether the buffer for previews has the data of the partial download.
        var isShown = false
        let byteLimit: Int
        /// The disk cache for partial downloads; nil if none is kept.
        let disk: DiskCache?
    }

    let configuration: ImagePipeline.Configuration
    let disk: DiskTier

    /// Returns the bytes of a request's source, or the error.
    @concurrent
    func result(of fetch: ImageFetch) async -> Result<Fetched, ImageError> {
        do throws(ImageError) { return .success(try await load(fetch)) } catch { return .failure(error) }
    }

    private func load(_ fetch: ImageFetch) async throws(ImageError) -> Fetched {
        let limit = fetch.request.options.responseByteLimit ?? configuration.responseByteLimit
        switch fetch.request.source.content {
        case .invalid(let reason):
            throw ImageError(.invalidURL, reason)
        case .file(let path):
            return .bytes(try await read(path, limit: limit), .always, resumedFrom: 0)
        case .data(let load):
            return .bytes(try await data(from: load, limit: limit), .always, resumedFrom: 0)
        case .image(let load):
            return .image(try await image(from: load, fetch.decoding))
        case .request(let request):
            return try await load(fetch, sending: request, limit: limit)
        }
    }

    private func load(
        _ fetch: ImageFetch, sending request: Request, limit: Int
    ) async throws(ImageError) -> Fetched {
        let request = try await prepared(request, for: fetch)
        let isGet = request.method == .get
        let keepsParts = fetch.keepsPartialData && configuration.resumesPartialDownloads && isGet
        let cache = keepsParts ? await disk.cache : nil
        // Ranges and conditions are for GET; with other methods they would be refused (RFC 9110 §13.1, §14.2).
        let cachedFreshness = isGet ? fetch.cachedFreshness : nil
        let stored = cachedFreshness == nil ? await partialImage(of: fetch.key, in: cache) : nil
        var prepared = PreparedFetch(
            fetch: fetch, request: request, cachedFreshness: cachedFreshness, partial: stored, stored: stored,
            byteLimit: limit, disk: cache)
        // The part stays on the disk until the whole is here.
        if let part = prepared.partial, part.counts.asksForWhole {
            (prepared.contradicted, prepared.partial) = (part, nil)
        }
        while true {
            switch try await exchange(prepared) {
            case .done(let fetched):
                return fetched
            case .startOver:
                // The part stays on the disk until the whole is here, or contradicts it.
                (prepared.contradicted, prepared.partial) = (prepared.partial, nil)
                fetch.chunks?.restart()
            case .more(let part):
                (prepared.partial, prepared.isShown) = (part, true)
            }
        }
    }

    private func exchange(_ prepared: PreparedFetch) async throws(ImageError) -> ExchangeResult {
        let (fetch, partial) = (prepared.fetch, prepared.partial)
        var request = prepared.request
        if let conditions = prepared.cachedFreshness?.conditions { request.headers.override(with: conditions) }
        if let partial { request.headers.override(with: partial.fields) }
        let stream = configuration.session.stream(request)
        var body = ImageResponseBody(limit: prepared.byteLimit)
        var accepted: ResponseHead?
        var place: (end: Int, total: Int)?
        do throws(NetworkError) {
            let head = try await stream.response
            switch partial?.decision(for: head) ?? (head.status == 206 ? .mismatch : .replace) {
            case .append(let end, let total): place = (end, total)
            case .replace: break
            case .mismatch:
                stream.task.cancel()
                if partial != nil { return .startOver }
                throw NetworkError(
                    .malformedResponse, reason: "the server sent a partial response (206) that was not requested")
            case .refuse:
                stream.task.cancel()
                throw refusal(head, request)
            }
            if let part = prepared.contradicted { try check(head, of: stream, against: part, request: request) }
            accepted = head
            let fits = body.begin(head, after: place == nil ? nil : partial?.data, total: place?.total)
            if fits, body.offset > 0, !prepared.isShown { fetch.chunks?.append(body.data) }
            var chunks = stream.chunks.makeAsyncIterator()
            while fits, let chunk = try await chunks.next() {
                if let place, body.data.count + chunk.count > place.end {
                    stream.task.cancel()
                    throw otherLength(of: body, until: place.end, before: chunk.count, head: head, request: request)
                }
                guard body.append(chunk) else { throw tooLarge(stream, limit: body.limit) }
                fetch.chunks?.append(chunk)
                if let progress = body.progress(at: MonotonicClock.nanoseconds()) { fetch.report(progress) }
            }
            if !fits { throw tooLarge(stream, limit: body.limit) }
            if let part = prepared.contradicted, !part.admits(body.data.count, of: head) {
                throw contradiction(head, request)
            }
            if let place, body.data.count < place.end {
                throw otherLength(of: body, until: place.end, head: head, request: request)
            }
        } catch {
            if let partial, accepted == nil, case .askForWhole = partial.decision(after: error) { return .startOver }
            if let cachedFreshness = prepared.cachedFreshness, error.status == 304, let head = error.response {
                let fallback = configuration.defaultFreshness
                return .done(
                    .notModified(cachedFreshness.updated(by: head, now: configuration.now(), fallback: fallback)))
            }
            await keep(body, of: accepted, after: error, for: prepared)
            throw Task.isCancelled ? .cancelled : imageError(for: error)
        }
        guard let head = accepted else { return .startOver }
        if let place, place.end < place.total, let partial {
            return .more(PartialImage(data: body.data, validator: partial.validator, length: place.total))
        }
        // The partial download is complete. If its entry stays, it only takes space for a while.
        if partial != nil || prepared.contradicted != nil {
            try? await prepared.disk?.remove(PartialImage.key(fetch.key))
        }
        let freshness = ImageFreshness(head, now: configuration.now(), fallback: configuration.defaultFreshness)
        return .done(
            .bytes(
                try await transformed(body.data, head), freshness, resumedFrom: body.offset,
                contentType: head.headers["Content-Type"]))
    }

    /// Throws if the head of the response to the request for the whole contradicts a part of the same version.
    private func check(
        _ head: ResponseHead, of stream: ResponseStream, against part: PartialImage, request: Request
    ) throws(NetworkError) {
        guard case .fail = part.resumeRules.decision(onWholeFile: head.status, headers: head.headers) else { return }
        stream.task.cancel()
        throw contradiction(head, request)
    }

    private func refusal(_ head: ResponseHead, _ request: Request) -> NetworkError {
        let reason = "the server answers the request for the rest of the image with status \(head.status)"
        let failure = FailureCause(.malformedResponse, reason, underlying: PartProblem.refused)
        return NetworkError(failure, request: request, response: head)
    }

    /// Returns the error of a part that has another length than its Content-Range says.
    ///
    /// - Parameter extra: The number of bytes that follow the body.
    private func otherLength(
        of body: ImageResponseBody, until end: Int, before extra: Int = 0, head: ResponseHead, request: Request
    ) -> NetworkError {
        let count = body.data.count + extra
        let isEmpty = count == body.offset && head.hasMarkedEnd
        let reason = "the part (206) has \(count - body.offset) bytes, and not \(end - body.offset)"
        let failure = FailureCause(
            count > end ? .malformedResponse : .truncatedBody, reason,
            underlying: isEmpty ? PartProblem.empty : count > end ? PartProblem.otherLength : nil)
        return NetworkError(failure, request: request, response: head)
    }

    private func contradiction(_ head: ResponseHead, _ request: Request) -> NetworkError {
        let failure = FailureCause(
            .malformedResponse, PartProblem.contradiction(of: head, totalBytes: nil),
            underlying: PartProblem.contradicted)
        return NetworkError(failure, request: request, response: head)
    }

    private func tooLarge(_ stream: ResponseStream, limit: Int) -> NetworkError {
        stream.task.cancel()
        return NetworkError(.tooLarge, reason: "the response exceeds the limit of \(limit) bytes")
    }

    private func imageError(for error: NetworkError) -> ImageError {
        if error.kind == .tooLarge { return ImageError(.limitExceeded, error.reason, underlying: error) }
        // The reason names the status.
        let reason = error.kind == .status ? error.reason : "\(error.kind): \(error.reason)"
        return ImageError(.network, reason, underlying: error)
    }
}

// MARK: Partial downloads

extension ImageFetcher {
    private func partialImage(of key: SourceKey, in disk: DiskCache?) async -> PartialImage? {
        let key = PartialImage.key(key)
        guard let disk, disk.contains(key) else { return nil }
        // An entry that cannot be read is fetched again.
        guard let entry = try? await disk.entry(for: key) else { return nil }
        return PartialImage(entry.value, metadata: entry.metadata)
    }

    /// Keeps what a failed exchange leaves on the disk for the next fetch: the bytes of an interrupted response, or the
    /// part before it with the counts of the requests in a row that brought nothing. Bytes with `no-store` are not
    /// kept, and the part that they were to continue is removed (RFC 9111 §5.2.2.5).
    ///
    /// - Parameters:
    ///   - body: The bytes so far.
    ///   - head: The head of the response; nil if it was not accepted.
    private func keep(
        _ body: ImageResponseBody, of head: ResponseHead?, after error: NetworkError, for prepared: PreparedFetch
    ) async {
        guard let disk = prepared.disk else { return }
        let known = prepared.partial ?? prepared.contradicted
        if error.discardsPart || head.map(forbidsStorage) ?? false {
            // If it cannot be removed, it leaves the disk at the end of its lifetime.
            if known != nil { try? await disk.remove(PartialImage.key(prepared.fetch.key)) }
            return
        }
        let part =
            if let head {
                PartialImage(body, of: head, continuing: prepared.partial, after: error)
            } else {
                known?.counting(after: error, at: prepared.partial == nil ? .whole : .rest)
            }
        guard let part, part != prepared.stored else { return }
        // If it cannot be stored, the bytes are fetched again.
        try? await disk.insert(
            part.data, for: PartialImage.key(prepared.fetch.key), metadata: part.metadata,
            timeToLive: .seconds(86_400))
    }

    private func forbidsStorage(_ head: ResponseHead) -> Bool {
        ImageFreshness(head, now: configuration.now(), fallback: configuration.defaultFreshness).forbidsStorage
    }
}

// MARK: Files, closures and hooks

extension ImageFetcher {
    private func read(_ path: String, limit: Int) async throws(ImageError) -> Data {
        try await configuration.executor.run { () throws(ImageError) in
            let result: Result<Data, ImageError>
            do throws(FileFailure) {
                // Without waiting, or opening a pipe would wait for its writer.
                let descriptor = FileCall.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
                guard descriptor >= 0 else { throw FileFailure("open", path, code: errno) }
                defer { _ = FileCall.close(descriptor) }  // It was only read.
                result = try Self.bytes(of: descriptor, path: path, limit: limit)
            } catch {
                throw ImageError(.source, "the file cannot be read: \(ErrorText.text(error.code))", underlying: error)
            }
            return try result.get()
        }
    }

    /// Returns the bytes of an open file, of which it reads no more than the limit and one byte: pipes and devices can
    /// have no end, and a file can grow.
    private static func bytes(
        of descriptor: Int32, path: String, limit: Int
    ) throws(FileFailure) -> Result<Data, ImageError> {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw FileFailure("stat", path, code: errno) }
        // Files in /proc report size 0.
        let size = status.st_mode & S_IFMT == S_IFREG ? Int(clamping: status.st_size) : 0
        var bytes = Data()
        // Before memory is taken.
        if size > limit { return .failure(exceeds(size, limit)) }
        while bytes.count <= limit {
            if Task.isCancelled { return .failure(.cancelled) }
            let count = readCount(after: bytes.count, of: size, limit: limit)
            guard let more = try piece(of: descriptor, path: path, count: count) else { continue }
            if more.isEmpty { return .success(bytes) }
            if bytes.isEmpty { bytes = more } else { bytes.append(more) }
        }
        return .failure(exceeds(bytes.count, limit))
    }

    /// Returns the number of bytes to ask for: the rest of the size and one byte more, which a file that has not grown
    /// does not have. At most one byte beyond the limit.
    static func readCount(after count: Int, of size: Int, limit: Int) -> Int {
        let rest = size > 0 && count <= size ? size - count : 64 << 10
        return min(rest, limit - count) + 1
    }

    /// Returns the next bytes of a file, none at its end, or nil if none arrive within 50 ms.
    ///
    /// A pipe whose writer is idle is asked again until the load is cancelled, and occupies a thread of the executor.
    private static func piece(of descriptor: Int32, path: String, count: Int) throws(FileFailure) -> Data? {
        // A pipe without a writer would otherwise be at its end.
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&entry, 1, 50) > 0 else { return nil }
        guard let memory = unsafe malloc(count) else { throw FileFailure("read", path, code: ENOMEM) }
        let got = unsafe systemRead(descriptor, memory, count: count)
        if got > 0 { return unsafe Data(bytesNoCopy: memory, count: got, deallocator: .free) }
        let code = errno
        unsafe free(memory)
        if got == 0 { return Data() }
        guard code == EINTR || code == EAGAIN else { throw FileFailure("read", path, code: code) }
        return nil
    }

    private func data(
        from load: @concurrent @Sendable () async throws -> Data, limit: Int
    ) async throws(ImageError) -> Data {
        let data: Data
        do {
            data = try await load()
        } catch {
            if Task.isCancelled { throw .cancelled }
            let reason = "the data closure of the request failed: \(ImageError.words(error))"
            throw ImageError(.source, reason, underlying: error)
        }
        try Self.check(data.count, limit: limit)
        return data
    }

    private func image(
        from load: @concurrent @Sendable (ImageDecodingOptions) async throws -> RasterImage,
        _ options: ImageDecodingOptions
    ) async throws(ImageError) -> RasterImage {
        do {
            return try await load(options)
        } catch {
            if Task.isCancelled { throw .cancelled }
            let reason = "the image closure of the request failed: \(ImageError.words(error))"
            throw ImageError(.source, reason, underlying: error)
        }
    }

    private static func check(_ count: Int, limit: Int) throws(ImageError) {
        if count > limit { throw exceeds(count, limit) }
    }

    private static func exceeds(_ count: Int, _ limit: Int) -> ImageError {
        ImageError(.limitExceeded, "\(count) bytes exceed the response limit of \(limit)")
    }

    private func prepared(_ request: Request, for fetch: ImageFetch) async throws(ImageError) -> Request {
        let options = fetch.request.options
        var request = request
        request.priority = fetch.priority
        if !options.handlesCookies, request.cookies == nil { request.cookies = CookieUse.none }
        if options.acceptsAnyCertificate { request.trust = .unchecked }
        guard let prepare = configuration.hooks.prepare else { return request }
        do {
            return try await prepare(request)
        } catch {
            throw ImageError(.hook, "the `prepare` hook failed: \(ImageError.words(error))", underlying: error)
        }
    }

    private func transformed(_ data: Data, _ head: ResponseHead) async throws(ImageError) -> Data {
        guard let transform = configuration.hooks.transform else { return data }
        do {
            return try await transform(data, head)
        } catch {
            throw ImageError(.hook, "the `transform` hook failed: \(ImageError.words(error))", underlying: error)
        }
    }
}

private func systemRead(_ descriptor: Int32, _ memory: UnsafeMutableRawPointer, count: Int) -> Int {
    unsafe read(descriptor, memory, count)
}
