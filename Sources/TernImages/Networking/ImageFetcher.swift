import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Fetches the bytes of one picture: asks for the rest where a part is kept, and keeps what came where it breaks off.
struct ImageFetcher: Sendable {
    /// What a fetch gave.
    enum Fetched: Sendable {
        case bytes(Data, Freshness, resumedFrom: Int)
        /// The bytes that are there are still right (304).
        case notModified(Freshness)
    }

    private enum Exchange {
        case done(Fetched)
        /// The part that is kept does not fit: ask for the whole.
        case again
    }

    let configuration: ImagePipeline.Configuration
    let disk: DiskTier

    /// The bytes of a request's source, or why there are none.
    /// - Parameters:
    ///   - known: The freshness of the bytes that are there, to ask only for others; nil to ask for the bytes.
    ///   - keepsParts: Whether what comes of a response that breaks off may be kept on the disk.
    ///   - report: Told of the progress, at most about thirty times a second.
    @concurrent
    func outcome(
        _ order: ImageRequest, key: SourceKey, known: Freshness?, priority: Request.Priority, keepsParts: Bool,
        feed: ImageFeed?, report: @escaping @Sendable (Session.Progress) -> Void
    ) async -> Result<Fetched, ImageError> {
        do throws(ImageError) {
            return .success(
                try await fetch(
                    order, key: key, known: known, priority: priority, keepsParts: keepsParts, feed: feed,
                    report: report))
        } catch {
            return .failure(error)
        }
    }

    private func fetch(
        _ order: ImageRequest, key: SourceKey, known: Freshness?, priority: Request.Priority, keepsParts: Bool,
        feed: ImageFeed?, report: @Sendable (Session.Progress) -> Void
    ) async throws(ImageError) -> Fetched {
        let limit = order.options.responseByteLimit ?? configuration.responseByteLimit
        switch order.source.content {
        case .invalid(let reason):
            throw ImageError(.invalidURL, reason)
        case .file(let path):
            return .bytes(try await read(path, limit: limit), .always, resumedFrom: 0)
        case .data(let load):
            return .bytes(try await given(load, limit: limit), .always, resumedFrom: 0)
        case .request(let request):
            let request = try await prepared(request, order, priority)
            let keepsParts = keepsParts && configuration.resumesPartialDownloads && request.method == .get
            let disk = keepsParts ? await disk.cache : nil
            // Ranges and conditions are for GET: of another method they would be refused (RFC 9110 §13.1, §14.2).
            let known = request.method == .get ? known : nil
            var partial = known == nil ? await part(of: key, in: disk) : nil
            while true {
                let body = ImageBody(limit: limit)
                switch try await exchange(request, known, partial, body, feed, key, disk, report) {
                case .done(let fetched):
                    return fetched
                case .again:
                    partial = nil
                    // It will fit no better the next time. A failure to remove it costs a question, no more.
                    try? await disk?.remove(PartialImage.key(key))
                    feed?.restart()
                }
            }
        }
    }

    private func exchange(
        _ request: Request, _ known: Freshness?, _ partial: PartialImage?, _ empty: ImageBody, _ feed: ImageFeed?,
        _ key: SourceKey, _ disk: DiskCache?, _ report: @Sendable (Session.Progress) -> Void
    ) async throws(ImageError) -> Exchange {
        var asked = request
        if let conditions = known?.conditions { asked.headers.override(with: conditions) }
        if let partial { asked.headers.override(with: partial.fields) }
        let stream = configuration.session.stream(asked)
        var body = empty
        var accepted: ResponseHead?
        do throws(NetworkError) {
            let head = try await stream.response
            let verdict = partial?.verdict(on: head) ?? (head.status == 206 ? .contradicts : .startsAnew)
            if verdict == .contradicts {
                stream.task.cancel()
                if partial != nil { return .again }
                throw NetworkError(
                    .malformedResponse, reason: "a part of the picture came (206) that was not asked for")
            }
            accepted = head
            let fits = body.begin(head, after: verdict == .continues ? partial?.data : nil)
            if fits, body.offset > 0 { feed?.append(body.data) }
            var chunks = stream.chunks.makeAsyncIterator()
            while fits, let chunk = try await chunks.next() {
                guard body.append(chunk) else { throw tooLarge(stream, body) }
                feed?.append(chunk)
                if let progress = body.progress(at: MonotonicClock.nanoseconds()) { report(progress) }
            }
            if !fits { throw tooLarge(stream, body) }
        } catch {
            if partial != nil, error.status == 416 { return .again }
            if let known, error.status == 304, let head = error.response {
                let fallback = configuration.defaultFreshness
                return .done(.notModified(known.renewed(by: head, now: configuration.now(), fallback: fallback)))
            }
            if let accepted, error.kind != .tooLarge { await keep(body, of: accepted, key, in: disk) }
            throw Task.isCancelled ? .cancelled : failure(error)
        }
        guard let head = accepted else { return .again }
        // Of no use from now on. A failure to remove it costs space for a while, no more.
        if partial != nil { try? await disk?.remove(PartialImage.key(key)) }
        let freshness = Freshness(head, now: configuration.now(), fallback: configuration.defaultFreshness)
        return .done(.bytes(try await transformed(body.data, head), freshness, resumedFrom: body.offset))
    }

    private func tooLarge(_ stream: ResponseStream, _ body: ImageBody) -> NetworkError {
        stream.task.cancel()
        return NetworkError(.tooLarge, reason: "the response has more than the \(body.limit) bytes that it may have")
    }

    private func failure(_ error: NetworkError) -> ImageError {
        if error.kind == .tooLarge { return ImageError(.limitExceeded, error.reason, underlying: error) }
        return ImageError(.network, "\(error.kind): \(error.reason)", underlying: error)
    }
}

// MARK: Parts

extension ImageFetcher {
    private func part(of key: SourceKey, in disk: DiskCache?) async -> PartialImage? {
        let key = PartialImage.key(key)
        guard let disk, disk.contains(key) else { return nil }
        // What cannot be read is fetched.
        guard let entry = try? await disk.entry(for: key) else { return nil }
        return PartialImage(entry.value, metadata: entry.metadata)
    }

    private func keep(_ body: ImageBody, of head: ResponseHead, _ key: SourceKey, in disk: DiskCache?) async {
        guard let disk, let part = PartialImage(body.data, of: head, length: body.length) else { return }
        // It saves bytes the next time; without it they are fetched again.
        try? await disk.insert(
            part.data, for: PartialImage.key(key), metadata: part.metadata, timeToLive: .seconds(86_400))
    }
}

// MARK: Sources and hooks

extension ImageFetcher {
    private func read(_ path: String, limit: Int) async throws(ImageError) -> Data {
        try await configuration.executor.run { () throws(ImageError) in
            let data: Data
            do {
                // Before memory is taken for it. Without a size it is measured once it is read.
                if let size = FileSize.of(path) { try Self.check(size, limit) }
                data = try Data(contentsOf: URL(filePath: path))
            } catch let error as ImageError {
                throw error
            } catch {
                throw ImageError(.source, "the file cannot be read: \(ErrorText.text(error))", underlying: error)
            }
            try Self.check(data.count, limit)
            return data
        }
    }

    private func given(
        _ load: @concurrent @Sendable () async throws -> Data, limit: Int
    ) async throws(ImageError) -> Data {
        let data: Data
        do {
            data = try await load()
        } catch {
            if Task.isCancelled { throw .cancelled }
            let reason = "the closure that gives the bytes threw \(ImageError.words(error))"
            throw ImageError(.source, reason, underlying: error)
        }
        try Self.check(data.count, limit)
        return data
    }

    private static func check(_ count: Int, _ limit: Int) throws(ImageError) {
        if count > limit { throw ImageError(.limitExceeded, "\(count) bytes, the limit of a response is \(limit)") }
    }

    private func prepared(
        _ request: Request, _ order: ImageRequest, _ priority: Request.Priority
    ) async throws(ImageError) -> Request {
        var request = request
        request.priority = priority
        if !order.options.handlesCookies, request.cookies == nil { request.cookies = CookieUse.none }
        if order.options.allowsInvalidCertificates { request.trust = .unchecked }
        guard let prepare = configuration.hooks.prepare else { return request }
        do {
            return try await prepare(request)
        } catch {
            throw ImageError(.hook, "the hook `prepare` threw \(ImageError.words(error))", underlying: error)
        }
    }

    private func transformed(_ data: Data, _ head: ResponseHead) async throws(ImageError) -> Data {
        guard let transform = configuration.hooks.transform else { return data }
        do {
            return try await transform(data, head)
        } catch {
            throw ImageError(.hook, "the hook `transform` threw \(ImageError.words(error))", underlying: error)
        }
    }
}
