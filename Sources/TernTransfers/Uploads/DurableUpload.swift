import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one durable upload: lock → create or ask how much the server has → send the rest, as often as needed.
///
/// The functions stand in the order in which they run. The file is read on the thread of ``UploadFile``.
actor DurableUpload: RunningUpload {
    nonisolated let attempts: UploadAttempts
    private let options: DurableUploadOptions
    nonisolated let source: URL
    private let kind: UploadMessages.Kind
    private let system: any FileSystem

    private var messages: UploadMessages
    /// The URL of the upload on the server; nil before it is created.
    private var target: Target?
    /// The number of bytes that the server is known to have.
    private var state = UploadMessages.State(offset: 0, isComplete: false)
    /// Whether the server must be asked for the number before the next byte.
    private var mustInquire = false
    /// The last response to bytes of the file.
    private var response: Response<Data>?
    private var schedule: RetrySchedule
    private var highestOffset: Int64 = 0
    /// Whether the control file describes an upload of an earlier process. It stays until another upload takes its
    /// place: a server that refuses a credential says of every upload that it is gone.
    private var hasAdopted = false
    /// Whether the present attempt has sent bytes of the file.
    private var hasMovedBytes = false
    private var startOvers = 0

    /// The number of uploads of one call that a server can lose.
    private static let mostStartOvers = 3

    init(
        _ source: URL, _ endpoint: Result<Request, NetworkError>, kind: UploadMessages.Kind, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) {
        attempts = DurableAttempts(endpoint, session: session, retry: options.retry, clock: options.clock)
        self.source = source
        self.kind = kind
        self.options = options
        self.system = system
        messages = UploadMessages(kind: kind, length: 0)
        schedule = RetrySchedule(options.retry)
    }

    /// Returns an upload that has started.
    static func started(
        _ source: URL, _ endpoint: Result<Request, NetworkError>, kind: UploadMessages.Kind, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) -> DurableUpload {
        let upload = DurableUpload(source, endpoint, kind: kind, session: session, options: options, system: system)
        upload.attempts.start(on: upload) { () throws(NetworkError) in try await upload.perform() }
        return upload
    }

    /// The file and the request, without secrets. Nonisolated: both never change.
    nonisolated var description: String { attempts.description(of: source) }

    /// Continues a paused upload.
    nonisolated func resume() {
        attempts.resume(on: self) { () throws(NetworkError) in try await self.perform() }
    }

    // MARK: From call to response

    private func perform() async throws(NetworkError) -> DurableUploadResult {
        let request = try attempts.firstRequest.get()
        // The upload on the server can have changed during a pause.
        (target, mustInquire, hasAdopted) = (nil, false, false)
        state = UploadMessages.State(offset: 0, isComplete: false)
        let endpointDigest = UploadControl.digest(of: request.target)
        let file = try file(endpointDigest)
        do throws(NetworkError) {
            let identity = try await attempts.fileCall("the file cannot be read", try await file.open())
            messages = UploadMessages(kind: kind, length: identity.length)
            publish(attempts.meter.upload.completedBytes)
            let source = UploadSource(file: file, identity: identity, endpointDigest: endpointDigest)
            try await adopt(source)
            try await send(source)
            let result = try result()
            if let hooks = options.hooks { try await hooks.store(result, of: request) }
            await file.close(keepsControl: false)
            return result
        } catch {
            await file.close(keepsControl: target != nil || hasAdopted)
            let part = target == nil ? "no part" : "\(state.offset) of \(messages.length) bytes"
            throw attempts.ending(error, rest: "the server has \(part)")
        }
    }

    private func result() throws(NetworkError) -> DurableUploadResult {
        guard let target, let url = URL(string: target.string) else { throw attempts.error(.invalidRequest, "no URL") }
        publish(messages.length)
        return DurableUploadResult(
            url: url, bytes: messages.length, sentBytes: attempts.movedBytes, attempts: attempts.count,
            duration: attempts.time.elapsed(), response: response, trace: attempts.trace)
    }

    /// Removes the description of an upload that does not run, of any kind.
    func removePart() async throws(NetworkError) {
        let request = try attempts.firstRequest.get()
        // An upload in one request has a name without the signature of its URL.
        for digest in [UploadControl.digest(of: request.target), ControlFile.digest(of: request.urlString)] {
            try await removePart(try file(digest))
        }
    }

    private func removePart(_ file: UploadFile) async throws(NetworkError) {
        guard file.hasControl else { return }
        let reason = "the control file cannot be removed"
        guard let found = try await attempts.fileCall(reason, try await file.acquire()) else {
            throw attempts.inProgress(source)
        }
        if case .laterVersion = found { return await file.close(keepsControl: true) }
        try await attempts.fileCall(reason, try await file.discard())
    }

    /// Checks everything that needs no file, and returns the files of the upload.
    private func file(_ digest: String) throws(NetworkError) -> UploadFile {
        try attempts.file(source, options, problem: options.problem, digest: digest, system: system)
    }

    /// Takes the lock, and continues the upload that the control file describes.
    private func adopt(_ source: UploadSource) async throws(NetworkError) {
        let file = source.file
        let control: UploadControl
        switch try await attempts.lock(file, of: self.source) {
        case .nothing, .laterVersion:
            return
        case .invalid:
            return attempts.record(.startedOver(.controlInvalid))
        case .control(let found):
            control = found
        }
        let endpoint = try attempts.firstRequest.get().target
        let stored = control.target(for: endpoint, endpointDigest: source.endpointDigest, kind)
        guard let stored, control.describes(source.identity) else {
            return attempts.record(.startedOver(stored == nil ? .controlInvalid : .fileChanged))
        }
        target = stored
        hasAdopted = true
        mustInquire = true
    }

    // MARK: Attempts

    /// Sends the file, in as many attempts as it takes.
    private func send(_ source: UploadSource) async throws(NetworkError) {
        let file = source.file
        while !state.isComplete {
            hasMovedBytes = false
            do throws(NetworkError) {
                if Task.isCancelled { throw attempts.cancellation }
                if target == nil {
                    try await create(source)
                } else if mustInquire {
                    try await inquire(file)
                } else {
                    try await sendNextBytes(of: file)
                }
            } catch {
                mustInquire = target != nil
                let hasNewBytes = state.offset > highestOffset
                highestOffset = max(highestOffset, state.offset)
                // The file cannot be read, or has changed.
                if error.kind == .requestBody { throw error }
                schedule = try await attempts.next(
                    schedule,
                    after: RetrySchedule.Failure(
                        error: error, request: try failedRequest(), hasNewBytes: hasNewBytes,
                        hasMovedBytes: hasMovedBytes,
                        isTemporary: (error.underlying as? UploadMessages.Problem)?.isTemporary ?? false))
            }
        }
    }

    /// Returns the request for which the rules for trying again decide. The bytes of a lost request are not sent twice,
    /// because the server is asked first: each method can be repeated.
    private func failedRequest() throws(NetworkError) -> Request {
        var request = try attempts.firstRequest.get()
        request.method = .head
        if let target { request.target = target }
        return request
    }

    private func create(_ source: UploadSource) async throws(NetworkError) {
        attempts.begin()
        var request = try attempts.firstRequest.get()
        let facts = ["filename": self.source.lastPathComponent, "filetype": options.contentType]
        let metadata = options.metadata.merging(facts) { own, _ in own }
        let fields = messages.creation(contentType: options.contentType, metadata: metadata)
        request.headers = request.headers.overriding(with: fields)
        request.body = .data(Data(), contentType: nil)
        let answer: Response<Data>
        do throws(NetworkError) {
            answer = try await announcedAnswer(to: request, source)
        } catch {
            // A server that refuses the upload has none, whatever it said before.
            if let status = error.status, status < 500 { target = nil }
            throw error
        }
        let announced = target
        let named: Target
        if let announced, !answer.head.headers.contains("Location") {
            named = announced
        } else {
            named = try meaning(of: answer, try messages.location(answer.head, of: answer.head.target))
        }
        if named.string != announced?.string { try await store(named, of: source) }
        target = named
        state = messages.created(answer.head)
        if state.isComplete { response = answer }
        if announced == nil { attempts.record(.created) }
    }

    /// Returns the response to a creation. An upload that an interim response names is stored at once, so that it is
    /// continued if the response is lost.
    private func announcedAnswer(
        to request: Request, _ source: UploadSource
    ) async throws(NetworkError) -> Response<Data> {
        guard kind == .httpDraft else { return try await answer(to: request) }
        var request = request
        let (heads, received) = AsyncStream.makeStream(of: ResponseHead.self)
        // The transport limits their number.
        request.onInterimResponse = { received.yield($0) }
        // Ends with the request.
        async let storing: Void = {
            for await head in heads { await self.storeAnnouncement(head, of: source) }
        }()
        let result = await Result { [request] () async throws(NetworkError) in
            try await answer(to: request)
        }
        received.finish()
        await storing
        return try result.get()
    }

    /// Stores the upload that an interim response names, if it is the first one.
    private func storeAnnouncement(_ head: ResponseHead, of source: UploadSource) async {
        guard target == nil, let announced = messages.announcedUpload(head) else { return }
        do throws(NetworkError) {
            try await store(announced, of: source)
            target = announced
            attempts.record(.created)
        } catch {
            // The final response stores the upload again, and reports the failure.
        }
    }

    private func store(_ target: Target, of source: UploadSource) async throws(NetworkError) {
        let control = UploadControl(
            kind: UploadControl.Kind(kind), endpointDigest: source.endpointDigest, url: target.string,
            file: source.identity)
        try await attempts.fileCall("the control file cannot be written", try await source.file.store(control))
        hasAdopted = false
    }

    private func inquire(_ file: UploadFile) async throws(NetworkError) {
        attempts.begin()
        let answer: Response<Data>
        do throws(NetworkError) {
            answer = try await self.answer(to: try uploadRequest(.head, messages.inquiry))
        } catch {
            guard error.kind == .status, let status = error.status, UploadMessages.goneStatuses.contains(status) else {
                throw error
            }
            return try startOver(.gone, error)
        }
        do throws(UploadMessages.Problem) {
            state = try messages.state(answer.head)
        } catch {
            let failure = attempts.error(.malformedResponse, error.description, response: answer.head)
            return try startOver(.otherUpload, failure)
        }
        mustInquire = false
        publish(state.offset)
        attempts.record(state.isComplete ? .foundComplete : .continued(at: state.offset))
        // The server has every byte, but has not been told that it was the last one.
        if !state.isComplete, state.offset == messages.length { try await sendNextBytes(of: file) }
    }

    /// Forgets an upload that cannot be continued, so that another one is created. A server that loses one after the
    /// other is not asked for ever.
    private func startOver(_ reason: UploadStartOverReason, _ failure: NetworkError) throws(NetworkError) {
        target = nil
        mustInquire = false
        state = UploadMessages.State(offset: 0, isComplete: false)
        attempts.record(.startedOver(reason))
        startOvers += 1
        if startOvers > Self.mostStartOvers { throw failure.adding("\(startOvers) uploads were lost") }
    }

    private func sendNextBytes(of file: UploadFile) async throws(NetworkError) {
        attempts.begin()
        let start = state.offset
        let count = Int64(clamping: min(messages.length - start, Int64(options.chunkSize ?? .max)))
        let problem = "the file cannot be read"
        try await attempts.fileCall(problem, kind: .requestBody, try await file.checkUnchanged())
        var (body, end) = (Request.Body.none, start + count)
        var checksum: FileDigest?
        if let algorithm = options.checksum {
            end = start + min(count, Int64(DurableUploadOptions.mostCheckedBytes))
            let bytes = try await attempts.fileCall(
                problem, kind: .requestBody, try await file.read(at: start, count: Int(end - start)))
            let hash = try attempts.newHash(algorithm)
            hash.update(bytes)
            checksum = hash.finalize()
            body = .data(bytes, contentType: nil)
        }
        let throttle = options.sharedThrottle(attempts.time)
        if checksum == nil || throttle != nil {
            let range = FileRange(file: file, start: start, end: end, throttle: throttle)
            body = .stream(range, length: end - start, contentType: nil)
        }
        if throttle == nil, let rate = options.throttle {
            body = body.throttled(.bytesPerSecond(rate, clock: options.clock))
        }
        let fields = messages.append(at: start, count: end - start, checksum: checksum)
        var request = try uploadRequest(.patch, fields)
        request.body = body
        let answer = try await answer(to: request, from: start)
        attempts.addMoved(end - start)
        state = try meaning(of: answer, try messages.appended(answer.head, from: start, to: end))
        if state.isComplete { response = answer }
        publish(state.offset)
    }

    /// Returns a request to the upload on the server.
    private func uploadRequest(_ method: Request.Method, _ fields: Headers) throws(NetworkError) -> Request {
        var request = try attempts.firstRequest.get()
        guard let target else { throw attempts.error(.invalidRequest, "the upload has no URL") }
        try request.move(to: target)
        request.method = method
        request.headers = request.headers.overriding(with: fields)
        return request
    }

    /// Returns an accepted response. Its progress is that of the upload.
    private func answer(to request: Request, from start: Int64? = nil) async throws(NetworkError) -> Response<Data> {
        let request = try attempts.prepared(try await addCredentials(request))
        let task = attempts.session.task(for: request, startsImmediately: true)
        let (meter, length) = (attempts.meter, messages.length)
        // Ends with the task.
        async let watching: Void = {
            guard let start else { return }
            for await progress in task.uploadProgress {
                meter.store(sent: start + progress.completedBytes, of: length, received: 0, of: nil)
            }
        }()
        let result = await task.end
        await watching
        if case .failure(let error) = result, start != nil {
            attempts.addMoved(error.metrics?.sentBytes ?? 0)
            hasMovedBytes = task.uploadProgressNow.completedBytes > 0
        }
        return try result.get()
    }

    /// Asks the queue for the credentials of a request. They go to the origin at which uploads are created.
    private func addCredentials(_ request: Request) async throws(NetworkError) -> Request {
        guard let hooks = options.hooks else { return request }
        var request = request
        let (headers, given) = try await hooks.newCredentials(for: request)
        if target == nil, let given { try request.move(to: given) }
        let home = try attempts.firstRequest.get().target
        guard request.target.origin == (given ?? home).origin else { return request }
        request.headers = request.headers.overriding(with: headers)
        return request
    }

    private func publish(_ sent: Int64) { attempts.meter.store(sent: sent, of: messages.length, received: 0, of: nil) }

    /// Reads a response, or throws the error of one that has no meaning.
    private func meaning<Value>(
        of answer: Response<Data>, _ read: @autoclosure () throws(UploadMessages.Problem) -> Value
    ) throws(NetworkError) -> Value {
        do throws(UploadMessages.Problem) {
            return try read()
        } catch {
            throw attempts.error(.malformedResponse, error.description, response: answer.head, underlying: error)
        }
    }
}
