import Synchronization
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
actor DurableUpload {
    nonisolated let session: Session
    nonisolated let options: DurableUploadOptions
    nonisolated let meter = ProgressMeter()
    nonisolated let trace = TransferTrace<DurableUploadEvent>()
    nonisolated let outcome = TaskValue<DurableUploadResult>()
    /// Whether the upload has ended because there is no network, for which its queue waits.
    nonisolated let endedOffline = Atomic(false)
    /// The reason for which no bytes move at present; nil for none.
    nonisolated let currentWait = Lock<TransferWait?>(nil)
    nonisolated let time: TransferTime
    private nonisolated let source: URL
    private nonisolated let endpoint: Result<Request, NetworkError>
    private nonisolated let kind: UploadMessages.Kind
    private nonisolated let system: any FileSystem
    /// The task that executes the upload. Owned here, cancelled by `cancel`.
    private nonisolated let driver = Lock<Task<Void, Never>?>(nil)

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
    private var attempts = 0
    private var sentBytes: Int64 = 0
    private var highestOffset: Int64 = 0
    /// Whether the control file describes an upload of an earlier process. It stays until another upload takes its
    /// place: a server that refuses a credential says of every upload that it is gone.
    private var hasAdopted = false
    /// Whether the present attempt has sent bytes of the file.
    private var hasMovedBytes = false

    init(
        _ source: URL, _ endpoint: Result<Request, NetworkError>, kind: UploadMessages.Kind, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) {
        self.source = source
        self.endpoint = endpoint
        self.kind = kind
        self.session = session
        self.options = options
        self.system = system
        time = TransferTime(options.clock)
        messages = UploadMessages(kind: kind, length: 0)
        schedule = RetrySchedule(options.retry)
    }

    /// Returns an upload that has started.
    static func started(
        _ source: URL, _ endpoint: Result<Request, NetworkError>, kind: UploadMessages.Kind, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) -> DurableUpload {
        let upload = DurableUpload(source, endpoint, kind: kind, session: session, options: options, system: system)
        // Owned by the upload and cancelled by `cancel`; it ends with the upload.
        let task = Task { await upload.run() }
        upload.driver.withLock { $0 = task }
        return upload
    }

    nonisolated func cancel() { driver.withLock { $0 }?.cancel() }

    nonisolated var description: String {
        switch endpoint {
        case .success(let request): "\(source.path) to \(request)"
        case .failure(let error): "\(error)"
        }
    }

    // MARK: From call to response

    private func run() async {
        let result: Result<DurableUploadResult, NetworkError>
        do throws(NetworkError) {
            result = .success(try await perform())
        } catch {
            result = .failure(error)
        }
        meter.finish()
        outcome.deliver(result)
    }

    private func perform() async throws(NetworkError) -> DurableUploadResult {
        let request = try endpoint.get()
        let (file, endpointDigest) = try files(for: request)
        do throws(NetworkError) {
            let identity = try await fileCall("the file cannot be read") { () throws(FileFailure) in
                try await file.open()
            }
            messages = UploadMessages(kind: kind, length: identity.length)
            publish(0)
            try await adopt(file, identity, endpointDigest: endpointDigest)
            try await send(UploadSource(file: file, identity: identity, endpointDigest: endpointDigest))
            let result = try result()
            if let hooks = options.hooks { try await hooks.store(result, of: request) }
            await file.close(keepsControl: false)
            return result
        } catch {
            await file.close(keepsControl: target != nil || hasAdopted)
            throw ending(error)
        }
    }

    private func result() throws(NetworkError) -> DurableUploadResult {
        guard let target, let url = URL(string: target.string) else { throw error(.invalidRequest, "no URL") }
        publish(messages.length)
        return DurableUploadResult(
            url: url, bytes: messages.length, sentBytes: sentBytes, attempts: attempts, duration: time.elapsed(),
            response: response, trace: trace.events)
    }

    /// Removes the description of an upload that does not run.
    nonisolated func removeControl() async throws(NetworkError) {
        let (file, _) = try files(for: try endpoint.get())
        let found: UploadFile.Found?
        do throws(FileFailure) {
            guard file.hasControl else { return }
            found = try await file.acquire()
        } catch {
            throw NetworkError(
                TransferFailure(.fileSystem, "the control file cannot be removed: \(error)", underlying: error),
                request: try endpoint.get())
        }
        guard let found else { throw error(.uploadInProgress, "another upload of \(source.path) is running") }
        if case .laterVersion = found { return await file.close(keepsControl: true) }
        do throws(FileFailure) {
            try await file.discard()
        } catch {
            throw NetworkError(
                TransferFailure(.fileSystem, "the control file cannot be removed: \(error)", underlying: error),
                request: try endpoint.get())
        }
    }

    /// Checks everything that needs no file, and returns the files of the upload.
    private nonisolated func files(for request: Request) throws(NetworkError) -> (UploadFile, endpointDigest: String) {
        if let problem = options.problem { throw error(.invalidRequest, problem) }
        let path: String
        do throws(FilePath.NotAFile) {
            path = try FilePath.of(source)
        } catch {
            throw self.error(.invalidRequest, "the source \(error)")
        }
        let digest = UploadControl.digest(of: request.target)
        let control = FilePath.join(
            options.controlFolder ?? FilePath.folder(of: path),
            UploadControl.name(of: FilePath.name(of: path), endpointDigest: digest))
        return (UploadFile(path: path, controlPath: control, system: system), digest)
    }

    /// Takes the lock, and continues the upload that the control file describes.
    private func adopt(
        _ file: UploadFile, _ identity: DiskCall.Identity, endpointDigest: String
    ) async throws(NetworkError) {
        let found = try await fileCall("the control file cannot be locked") { () throws(FileFailure) in
            try await file.acquire()
        }
        guard let found else { throw error(.uploadInProgress, "another upload of \(source.path) is running") }
        let control: UploadControl
        switch found {
        case .nothing:
            return
        case .invalid:
            return trace.add(.startedOver(.controlInvalid))
        case .laterVersion(let version):
            await file.close(keepsControl: true)
            throw error(
                .unsupportedControlFile,
                "a later version of Tern wrote the control file (version \(version)): \(file.controlPath)")
        case .control(let found):
            control = found
        }
        let stored = control.target(for: try endpoint.get().target, endpointDigest: endpointDigest, kind)
        guard let stored, control.describes(identity) else {
            trace.add(.startedOver(stored == nil ? .controlInvalid : .fileChanged))
            return
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
                if Task.isCancelled { throw cancellation }
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
                try await wait(after: error, hasNewBytes: hasNewBytes)
            }
        }
    }

    private func create(_ source: UploadSource) async throws(NetworkError) {
        attempts += 1
        var request = try endpoint.get()
        var metadata = options.metadata
        if metadata["filename"] == nil { metadata["filename"] = self.source.lastPathComponent }
        if metadata["filetype"] == nil { metadata["filetype"] = options.contentType }
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
            named = try meaning(of: answer) { head throws(UploadMessages.Problem) in
                try self.messages.location(head, of: head.target)
            }
        }
        if named.string != announced?.string { try await store(named, of: source) }
        target = named
        state = messages.created(answer.head)
        if state.isComplete { response = answer }
        if announced == nil { trace.add(.created) }
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
        let result: Result<Response<Data>, NetworkError>
        do throws(NetworkError) {
            result = .success(try await answer(to: request))
        } catch {
            result = .failure(error)
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
            trace.add(.created)
        } catch {
            // The final response stores the upload again, and reports the failure.
        }
    }

    private func store(_ target: Target, of source: UploadSource) async throws(NetworkError) {
        let control = UploadControl(
            kind: kind, endpointDigest: source.endpointDigest, url: target.string, file: source.identity)
        try await fileCall("the control file cannot be written") { () throws(FileFailure) in
            try await source.file.store(control)
        }
        hasAdopted = false
    }

    private func inquire(_ file: UploadFile) async throws(NetworkError) {
        attempts += 1
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
            return try startOver(.otherUpload, self.error(.malformedResponse, error.description, head: answer.head))
        }
        mustInquire = false
        publish(state.offset)
        trace.add(state.isComplete ? .foundComplete : .continued(at: state.offset))
        // The server has every byte, but has not been told that it was the last one.
        if !state.isComplete, state.offset == messages.length { try await sendNextBytes(of: file) }
    }

    /// Forgets an upload that cannot be continued, so that another one is created. A server that loses one after the
    /// other is not asked for ever.
    private func startOver(_ reason: UploadStartOverReason, _ failure: NetworkError) throws(NetworkError) {
        target = nil
        mustInquire = false
        state = UploadMessages.State(offset: 0, isComplete: false)
        trace.add(.startedOver(reason))
        startOvers += 1
        if startOvers > Self.mostStartOvers { throw failure.adding("\(startOvers) uploads were lost") }
    }

    private var startOvers = 0
    /// The number of uploads of one call that a server can lose.
    private static let mostStartOvers = 3

    private func sendNextBytes(of file: UploadFile) async throws(NetworkError) {
        attempts += 1
        let start = state.offset
        let count = Int64(clamping: min(messages.length - start, Int64(options.chunkSize ?? .max)))
        try await fileCall("the file cannot be read", kind: .requestBody) { () throws(FileFailure) in
            try await file.checkUnchanged()
        }
        var (body, end) = (Request.Body.none, start + count)
        var checksum: FileDigest?
        if let algorithm = options.checksum {
            end = start + min(count, Int64(DurableUploadOptions.mostCheckedBytes))
            let bytes = try await fileCall("the file cannot be read", kind: .requestBody) { () throws(FileFailure) in
                try await file.read(at: start, count: Int(end - start))
            }
            guard let hash = FileHash(algorithm) else {
                throw error(.unsupported, "the system forbids \(algorithm.rawValue)")
            }
            hash.update(bytes)
            checksum = hash.finalize()
            body = .data(bytes, contentType: nil)
        }
        if let hooks = options.hooks {
            // The rate can change, and is shared with others.
            let throttle = DownloadThrottle(rate: options.throttle, time: time, shared: hooks.throttles)
            let range = FileRange(file: file, start: start, end: end, throttle: throttle)
            body = .stream(range, length: end - start, contentType: nil)
        } else if checksum == nil {
            body = .stream(FileRange(file: file, start: start, end: end), length: end - start, contentType: nil)
        }
        if options.hooks == nil, let rate = options.throttle {
            body = body.throttled(.bytesPerSecond(rate, clock: options.clock))
        }
        let fields = messages.append(at: start, count: end - start, checksum: checksum)
        var request = try uploadRequest(.patch, fields)
        request.body = body
        let answer = try await answer(to: request, from: start)
        sentBytes += end - start
        state = try meaning(of: answer) { head throws(UploadMessages.Problem) in
            try self.messages.appended(head, from: start, to: end)
        }
        if state.isComplete { response = answer }
        publish(state.offset)
    }

    /// Returns a request to the upload on the server.
    private func uploadRequest(_ method: Request.Method, _ fields: Headers) throws(NetworkError) -> Request {
        var request = try endpoint.get()
        guard let target else { throw error(.invalidRequest, "the upload has no URL") }
        try request.move(to: target)
        request.method = method
        request.headers = request.headers.overriding(with: fields)
        return request
    }

    /// Returns an accepted response. Its progress is that of the upload.
    private func answer(to request: Request, from start: Int64? = nil) async throws(NetworkError) -> Response<Data> {
        var request = request
        request.cache = .noStore
        request.isRetriedByCaller = true
        options.retry.limit(&request, elapsed: time.elapsed(), in: session.configuration)
        request = try await addCredentials(request)
        let task = session.task(for: request, startsImmediately: true)
        let (meter, length) = (meter, messages.length)
        // Ends with the task.
        async let watching: Void = {
            guard let start else { return }
            for await progress in task.uploadProgress {
                meter.store(sent: start + progress.completedBytes, of: length, received: 0, of: nil)
            }
        }()
        let result = await withTaskCancellationHandler {
            await Self.result(of: task)
        } onCancel: {
            task.cancel()
        }
        await watching
        if case .failure(let error) = result, start != nil {
            sentBytes += error.metrics?.sentBytes ?? 0
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
        let home = try endpoint.get().target
        guard request.target.origin == (given ?? home).origin else { return request }
        request.headers = request.headers.overriding(with: headers)
        return request
    }

    private static func result(of task: SessionTask<Response<Data>>) async -> Result<Response<Data>, NetworkError> {
        do throws(NetworkError) { return .success(try await task.value) } catch { return .failure(error) }
    }

    /// Waits as the rules say, or throws the error.
    private func wait(after failure: NetworkError, hasNewBytes: Bool) async throws(NetworkError) {
        guard !failure.isCancelled, !Task.isCancelled, failure.kind != .requestBody else { throw failure }
        // The bytes of a lost request are not sent twice, because the server is asked first: each method can be
        // repeated.
        var request = try endpoint.get()
        request.method = .head
        let reachability = session.configuration.reachability
        let action = schedule.decide(
            RetrySchedule.Failure(
                error: failure, request: request, hasNewBytes: hasNewBytes, hasMovedBytes: hasMovedBytes,
                hasNetwork: !reachability.isOffline(to: (target ?? request.target)), elapsed: time.elapsed(),
                random: Double.random(in: 0...1),
                isTemporary: (failure.underlying as? UploadMessages.Problem)?.isTemporary ?? false))
        switch action {
        case .giveUp(let reason):
            throw reason.map { failure.adding($0) } ?? failure
        case .endOffline:
            endedOffline.store(true, ordering: .relaxed)
            throw failure
        case .replaceURL:
            throw failure
        case .retry(let delay):
            trace.add(.failed("\(failure)"))
            try await wait(delay, .delay(delay))
        case .waitForDescriptor(let delay):
            trace.add(.failed("\(failure)"))
            let start = time.elapsed()
            try await wait(delay, .descriptor(nextTrial: delay))
            attempts -= 1
            schedule.addOfflineTime(time.elapsed() - start)
        case .waitForNetwork(let limit):
            trace.add(.failed("\(failure)"))
            trace.add(.waitedForNetwork)
            let start = time.elapsed()
            let host = (target ?? request.target).host
            currentWait.withLock { $0 = .route(host: host, nextTrial: limit) }
            defer { currentWait.withLock { $0 = nil } }
            _ = await reachability.returns(within: limit, sleep: time.sleep)
            if Task.isCancelled { throw cancellation }
            attempts -= 1
            schedule.addOfflineTime(time.elapsed() - start)
        }
    }

    /// Waits for a delay, and shows its reason meanwhile.
    private func wait(_ delay: Duration, _ reason: TransferWait) async throws(NetworkError) {
        trace.add(.waited(delay))
        currentWait.withLock { $0 = reason }
        defer { currentWait.withLock { $0 = nil } }
        do {
            try await time.sleep(delay)
        } catch {
            throw cancellation
        }
    }

    private func publish(_ sent: Int64) { meter.store(sent: sent, of: messages.length, received: 0, of: nil) }

    // MARK: Errors

    private var cancellation: NetworkError { error(.cancelled, "the upload was cancelled") }

    private nonisolated func error(
        _ kind: NetworkError.Kind, _ reason: String, head: ResponseHead? = nil
    ) -> NetworkError {
        guard case .success(let request) = endpoint else { return NetworkError(kind, reason: reason) }
        return NetworkError(TransferFailure(kind, reason), request: request, response: head)
    }

    private func fileCall<Value: Sendable>(
        _ reason: String, kind: NetworkError.Kind = .fileSystem, _ call: () async throws(FileFailure) -> Value
    ) async throws(NetworkError) -> Value {
        do throws(FileFailure) {
            return try await call()
        } catch {
            let failure = TransferFailure(kind, "\(reason): \(error)", underlying: error)
            throw NetworkError(failure, request: try endpoint.get())
        }
    }

    private func meaning<Value>(
        of answer: Response<Data>, _ read: (ResponseHead) throws(UploadMessages.Problem) -> Value
    ) throws(NetworkError) -> Value {
        do throws(UploadMessages.Problem) {
            return try read(answer.head)
        } catch {
            let failure = TransferFailure(.malformedResponse, error.description, underlying: error)
            throw NetworkError(failure, request: try endpoint.get(), response: answer.head)
        }
    }

    /// Returns the error of the upload: that of its last attempt, with the number of attempts, the time and the bytes.
    private func ending(_ failure: NetworkError) -> NetworkError {
        var failure = Task.isCancelled && !failure.isCancelled ? cancellation : failure
        if attempts > 1, !failure.isCancelled { failure = failure.ending(attempts: attempts, in: time.elapsed()) }
        guard attempts > 0 else { return failure }
        let tried = attempts > 1 ? "" : "1 attempt, "
        let rest =
            target == nil ? "the server has no part" : "the server has \(state.offset) of \(messages.length) bytes"
        return failure.adding("\(tried)\(sentBytes) bytes sent, \(rest)")
    }
}

/// The file of an upload, and the facts by which a later process finds its description.
private struct UploadSource: Sendable {
    let file: UploadFile
    let identity: DiskCall.Identity
    let endpointDigest: String
}
