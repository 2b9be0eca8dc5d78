import Synchronization
import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one durable download: lock → continue or begin → receive, as often as needed → verify → move.
///
/// The functions stand in the order in which they run. They run on the thread of ``DownloadPart``, so that a call on
/// the part costs no wake-up. Bytes are hashed off this thread, and the functions of the caller are called off it.
actor DurableDownload {
    nonisolated let session: Session
    nonisolated let options: DurableDownloadOptions
    nonisolated let meter = ProgressMeter()
    nonisolated let throttle: DownloadThrottle
    nonisolated let trace = TransferTrace<DurableDownloadEvent>()
    nonisolated let outcome = TaskValue<DurableDownloadResult>()
    /// The head of the newest response that was accepted; nil before the first one.
    nonisolated let latestResponse = Lock<ResponseHead?>(nil)
    /// Whether the download has ended because there is no network, for which its queue waits.
    nonisolated let endedOffline = Atomic(false)
    /// The reason for which no bytes move at present; nil for none.
    nonisolated let currentWait = Lock<TransferWait?>(nil)
    nonisolated let time: TransferTime
    nonisolated let firstRequest: Result<Request, NetworkError>
    private nonisolated let destination: URL
    private nonisolated let system: any FileSystem
    /// The task that executes the download. Owned here, cancelled by `cancel`.
    private nonisolated let driver = Lock<Task<Void, Never>?>(nil)

    /// The request of the next attempt. The caller can give another URL.
    private(set) var request: Request?
    var control: ControlFile?
    /// The segments in which the file is received; nil for one stream.
    var plan: SegmentPlan?
    /// The number of bytes of each segment.
    var counts: [Int64] = []
    var mayUseSegments = true
    /// Whether segments speak HTTP/1, so that each has a connection of its own. False after a server has refused that.
    var segmentsAvoidHTTP2 = true
    /// The reason why the bytes so far cannot be continued, if their response had no validator.
    var doubt = StartOverReason.noValidator
    var rule = ContinuationRule(offset: 0, validators: StrongValidators())
    /// The facts that a response contradicted, because of which the whole file is asked for; nil otherwise.
    var contradicted: ContinuationRule?
    /// The stage of the newest request for the rest, or for the whole file in its place.
    var stage = PartCounts.Stage.rest
    var schedule: RetrySchedule
    /// The number of failed attempts of the download, with all of its segments.
    private var failedAttempts = 0
    /// The hash of the bytes so far; nil if no digest is expected.
    var hash: FileHash?
    /// The reason for which the part is about to be discarded.
    var startOverReason: StartOverReason?
    var attempts = 0
    var receivedBytes: Int64 = 0
    /// The greatest number of bytes that the part has had.
    var highestLength: Int64 = 0

    /// The time between two looks at the lock of another download.
    static let lockInterval = Duration.milliseconds(100)
    /// The largest number of bytes that are read at once.
    static let chunkLimit = 64 << 10
    /// The limits of the pipe through which a body is moved: a killed process loses what is in it. Without a window of
    /// its own, the system would give a reader of small portions a small one.
    static let pipe = BodyPipe.Limits(capacity: 512 << 10, portion: 256 << 10, window: 4 << 20)
    /// The limits with a throttle, under which a server must not send far ahead.
    static let throttledPipe = BodyPipe.Limits(capacity: 256 << 10, portion: 256 << 10)
    /// The number of bytes that may wait in memory before the connection is read no further. With a chunk, that is 128
    /// KiB, and as many bytes are being written at the same time: a killed process loses at most 256 KiB.
    static let bufferLimit = (64 << 10) + 1
    /// The same for all segments together.
    static let segmentBufferLimit = 32 << 10
    /// The number of requests that one attempt can need until bytes come: with the entity tag, with the date, for the
    /// whole file.
    static let mostRequests = 3

    init(
        _ request: Result<Request, NetworkError>, session: Session, to destination: URL,
        options: DurableDownloadOptions,
        system: any FileSystem = PosixFileSystem()
    ) {
        firstRequest = request
        self.session = session
        self.destination = destination
        self.options = options
        self.system = system
        time = TransferTime(options.clock)
        throttle = DownloadThrottle(
            rate: options.throttle, time: time, shared: options.hooks?.throttles ?? [])
        schedule = RetrySchedule(options.retry)
    }

    /// Returns a download that has started.
    static func started(
        _ request: Result<Request, NetworkError>, session: Session, to destination: URL,
        options: DurableDownloadOptions,
        system: any FileSystem = PosixFileSystem()
    ) -> DurableDownload {
        let download = DurableDownload(request, session: session, to: destination, options: options, system: system)
        // Owned by the download and cancelled by `cancel`; it ends with the download.
        let task: Task<Void, Never>
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // Without a detour over the threads of the global executor.
            task = .immediate { await download.run() }
        } else {
            task = Task { await download.run() }
        }
        download.driver.withLock { $0 = task }
        return download
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe DownloadPart.executor.asUnownedSerialExecutor()
    }

    // MARK: The handle

    nonisolated func cancel() { driver.withLock { $0 }?.cancel() }

    /// Cancels the download, waits for its end and removes its part.
    nonisolated func discard() async throws(NetworkError) {
        cancel()
        do throws(NetworkError) {
            _ = try await outcome.value()
        } catch {
            // The download has ended; its own error is that of `value`.
        }
        try await removePart()
    }

    /// Removes the part of a download that does not run.
    nonisolated func removePart() async throws(NetworkError) {
        // `try?`: a download without a destination has no part.
        guard case .success(let request) = firstRequest, let path = try? FilePath.of(destination) else { return }
        let part = DownloadPart(destination: path, synchronizes: false, system: system)
        // A folder that cannot be written, or is not there, has no part.
        guard part.hasFiles else { return }
        let isLocked: Bool
        do throws(FileFailure) {
            isLocked = try await part.acquire(createsFolder: false)
            if isLocked { try await part.discard(partOf: ControlFile.digest(of: request.urlString)) }
        } catch {
            // The folder does not exist.
            if error.code == DiskCall.notThere { return }
            throw fileError(error, "the part cannot be removed", request: request)
        }
        if !isLocked { throw inProgress(part, request) }
    }

    /// Removes the control file that a killed process left beside a finished file. One that is not that of the file
    /// stays.
    nonisolated func removeRest() async throws(FileFailure) {
        // `try?`: a download without a destination has no files.
        guard let path = try? FilePath.of(destination) else { return }
        let part = DownloadPart(destination: path, synchronizes: false, system: system)
        guard part.hasControl, try await part.acquire(createsFolder: false) else { return }
        try await part.removeIfFinished()
    }

    nonisolated var description: String {
        switch firstRequest {
        case .success(let request): "\(request) to \(destination.path)"
        case .failure(let error): "\(error)"
        }
    }

    // MARK: From call to file

    func run() async {
        let result: Result<DurableDownloadResult, NetworkError>
        do throws(NetworkError) {
            result = .success(try await perform())
        } catch {
            result = .failure(error)
        }
        meter.finish()
        outcome.deliver(result)
    }

    func perform() async throws(NetworkError) -> DurableDownloadResult {
        let request = try firstRequest.get()
        self.request = request
        let part = DownloadPart(
            destination: try checkedPath(request), synchronizes: options.synchronizes,
            synchronizesEnd: options.hooks != nil, system: system)
        try await fileCall("no file can be moved to the destination") { () throws(FileFailure) in
            try await part.checkDestination()
        }
        do throws(NetworkError) {
            if let length = try await lock(part, request),
                try await isExpected(part, length: length, digest: options.digest)
            {
                trace.add(.finishedByOtherDownload)
                return try await end(part, at: part.destination, bytes: length, digest: options.digest)
            }
            var found = try await fileCall("the part cannot be read") { () throws(FileFailure) in
                try await part.load()
            }
            if let finished = found.finishedLength {
                if try await isThisDownload(found, length: finished, of: part) {
                    trace.add(.foundWhole)
                    return try await end(part, at: part.destination, bytes: finished, digest: options.digest)
                }
                // It describes a file that another download has finished, and nothing of it is left to continue.
                found.control = nil
            }
            found = try await takeForeignPart(found, of: part)
            let isWhole = try await adopt(found, of: part)
            if isWhole { trace.add(.foundWhole) } else { try await receive(into: part) }
            return try await finish(part, isVerified: isWhole && found.isComplete && found.isFromThisBoot)
        } catch {
            throw ending(error, rest: await part.closeKeepingPart(), part)
        }
    }

    /// Checks everything that needs no file, and returns the path of the destination.
    func checkedPath(_ request: Request) throws(NetworkError) -> String {
        var problem = options.problem
        if request.method != .get { problem = "a durable download has the method GET" }
        if request.headers.contains("Range") || request.headers.contains("If-Range") {
            problem = "a durable download sets Range and If-Range itself"
        }
        if problem == nil {
            do throws(FilePath.NotAFile) {
                return try FilePath.of(destination)
            } catch {
                problem = "the destination \(error)"
            }
        }
        throw NetworkError(TransferFailure(.invalidRequest, problem ?? ""), request: request)
    }

    /// Takes the lock of the destination. Returns the length of the file if another download of the same URL finished
    /// it meanwhile.
    func lock(_ part: DownloadPart, _ request: Request) async throws(NetworkError) -> Int64? {
        var hasWaited = false
        var other: OtherPart?
        while true {
            let isLocked = try await fileCall("the control file cannot be locked") { () throws(FileFailure) in
                try await part.acquire(createsFolder: options.createsFolders)
            }
            if isLocked { break }
            guard options.contention == .wait else { throw inProgress(part, request) }
            if !hasWaited { trace.add(.waitedForOtherDownload) }
            hasWaited = true
            let remaining = deadline?.remaining ?? Self.lockInterval
            if remaining <= .zero {
                throw inProgress(part, request).adding("the time limit of the transfer is reached")
            }
            // Keeps the last part that was seen, because it may already have been moved to the destination.
            other = await OtherPart(part, of: request.urlString, system) ?? other
            try await sleep(min(remaining, Self.lockInterval))
        }
        schedule.recordProgress(at: time.elapsed())
        guard let other, let found = part.destinationIdentity(), found.number == other.number else { return nil }
        return found.length
    }

    private nonisolated func inProgress(_ part: DownloadPart, _ request: Request) -> NetworkError {
        let reason = "another download has the destination \(part.destination)"
        return NetworkError(TransferFailure(.downloadInProgress, reason), request: request)
    }

    // MARK: Attempts

    /// Receives the file, in as many attempts as it takes.
    func receive(into part: DownloadPart) async throws(NetworkError) {
        while true {
            let start = await part.length
            if let plan {
                guard let reason = try await receivedSegments(of: plan, into: part, after: start) else { return }
                self.plan = nil
                mayUseSegments = false
                startOverReason = reason
                contradicted = rule
                contradicted?.size = plan.size
                rule = ContinuationRule(offset: 0, validators: StrongValidators())
            }
            let (received, asksForPart) = (receivedBytes, rule.fields != nil)
            do throws(NetworkError) {
                try await attempt(part)
                if plan == nil { return }
            } catch {
                // A later process continues what this one has, also while this one waits.
                try await fileCall("the download cannot be written") { () throws(FileFailure) in
                    try await part.writeToDisk()
                }
                let length = await part.length
                let hasNewBytes = length > highestLength
                highestLength = max(highestLength, length)
                rule.offset = length
                if asksForPart { await recordRefusal(error, hasNewBytes: length > start, of: part) }
                schedule = try await nextSchedule(
                    schedule, after: error, hasNewBytes: hasNewBytes, hasMovedBytes: receivedBytes > received)
            }
        }
    }

    /// Receives the missing bytes of all segments, and counts a refusal. The segments are taken up again by themselves.
    private func receivedSegments(
        of plan: SegmentPlan, into part: DownloadPart, after start: Int64
    ) async throws(NetworkError) -> StartOverReason? {
        if rule.counts.asksForWhole { return .rangeRefused }
        do throws(NetworkError) {
            return try await receiveSegments(of: plan, into: part)
        } catch {
            let length = await part.length
            let isAccepted = error.response?.status == 206 && error.underlying as? PartProblem != .refused
            stage = isAccepted || error.hasWrongBody ? .body : .rest
            // One stream costs no byte.
            if length == 0, rule.counts.after(error, at: stage) != rule.counts { return .rangeRefused }
            if error.hasWrongBody { showProgress(at: length, of: plan.size) }
            // The bytes of the segments that ended because of a wrong body say nothing for the server.
            let hasNewBytes = length > start && !error.hasWrongBody
            await recordRefusal(error, hasNewBytes: hasNewBytes, of: part)
            throw error
        }
    }

    /// Waits as the rules say, or throws the error. Returns the rules for the next failure.
    ///
    /// - Parameter used: The URL of the attempt, if others may have replaced it meanwhile.
    func nextSchedule(
        _ schedule: RetrySchedule, after error: NetworkError, hasNewBytes: Bool, hasMovedBytes: Bool = false,
        used: Target? = nil
    ) async throws(NetworkError) -> RetrySchedule {
        guard let request, !error.isCancelled, !Task.isCancelled else { throw error }
        var schedule = schedule
        schedule.failedAttempts = failedAttempts
        let reachability = session.configuration.reachability
        let isWrongBody = used == nil && stage == .body && error.refusesPart && !error.discardsPart
        let isTemporary = isWrongBody || error.underlying as? PartProblem == .refused
        let action = schedule.decide(
            RetrySchedule.Failure(
                error: error, request: request, hasNewBytes: hasNewBytes, hasMovedBytes: hasMovedBytes,
                hasNetwork: !reachability.isOffline(to: request.target), canReplaceURL: options.url != nil,
                elapsed: time.elapsed(), random: Double.random(in: 0...1),
                isTemporary: isTemporary))
        failedAttempts = schedule.failedAttempts
        switch action {
        case .giveUp(let reason):
            throw reason.map { error.adding($0) } ?? error
        case .endOffline:
            endedOffline.store(true, ordering: .relaxed)
            throw error
        case .retry(let delay):
            trace.add(.failed("\(error)"))
            trace.add(.waited(delay))
            try await waiting(.delay(delay)) { () throws(NetworkError) in try await sleep(delay) }
        case .waitForNetwork(let limit):
            trace.add(.failed("\(error)"))
            trace.add(.waitedForNetwork)
            let start = time.elapsed()
            await waiting(.route(host: request.target.host, nextTrial: limit)) {
                _ = await reachability.returns(within: limit, sleep: time.sleep)
            }
            if Task.isCancelled { throw cancellation }
            attempts -= 1
            schedule.addOfflineTime(time.elapsed() - start)
        case .waitForDescriptor(let delay):
            trace.add(.failed("\(error)"))
            trace.add(.waited(delay))
            let start = time.elapsed()
            try await waiting(.descriptor(nextTrial: delay)) { () throws(NetworkError) in try await sleep(delay) }
            attempts -= 1
            schedule.addOfflineTime(time.elapsed() - start)
        case .replaceURL:
            trace.add(.failed("\(error)"))
            if let used, used.string != request.target.string { break }
            try await replaceURL(after: error)
        }
        return schedule
    }

    /// Does `wait`, and shows its reason meanwhile.
    private func waiting<Failure: Error>(
        _ reason: TransferWait, _ wait: () async throws(Failure) -> Void
    ) async throws(Failure) {
        currentWait.withLock { $0 = reason }
        defer { currentWait.withLock { $0 = nil } }
        try await wait()
    }

    /// Asks the caller for another URL. Secret headers go to the origin that they were meant for.
    func replaceURL(after failure: NetworkError) async throws(NetworkError) {
        guard let makeURL = options.url, var request else { throw failure }
        do {
            try request.move(to: try Target(try await Self.url(after: failure, makeURL)))
        } catch {
            throw failure.adding("no new URL could be made: \(error)")
        }
        self.request = request
        trace.add(.replacedURL)
    }

    /// Calls the function of the caller, off the thread of the files.
    @concurrent
    private static func url(
        after failure: NetworkError, _ makeURL: @Sendable (NetworkError) async throws -> URL
    ) async throws -> URL {
        try await makeURL(failure)
    }

    /// Asks for the rest of the file and receives it.
    func attempt(_ part: DownloadPart) async throws(NetworkError) {
        attempts += 1
        try await prepareAttempt()
        var asksForPart = rule.fields != nil
        if asksForPart { contradicted = nil }
        if asksForPart, rule.counts.asksForWhole {
            (startOverReason, contradicted, asksForPart) = (.rangeRefused, rule, false)
        }
        var requests = 0
        while requests < Self.mostRequests {
            requests += 1
            stage = asksForPart ? .rest : .whole
            if asksForPart { try await hashPart(part) }
            let stream = session.stream(try attemptRequest(asksForPart ? rule : nil))
            let answer = await answer(of: stream)
            guard asksForPart else { return try await receiveWhole(stream, try answer.get(), into: part) }
            switch rule.decision(on: answer) {
            case .append(let end, let total):
                try await receiveRest(stream, until: end, of: total, into: part)
                if end == total { return }
                // The server sends the rest in several parts.
                (rule.offset, requests) = (end, 0)
            case .replace(let reason):
                startOverReason = reason
                return try await receiveWhole(stream, try answer.get(), into: part)
            case .complete:
                stream.task.cancel()
                return
            case .askWithDate:
                stream.task.cancel()
                rule.prefersDate = true
            case .askForWhole(let reason):
                stream.task.cancel()
                startOverReason = reason
                contradicted = rule
                asksForPart = false
            case .refuse:
                stream.task.cancel()
                throw refusal(try answer.get())
            }
        }
        throw error(.malformedResponse, "the server answers a request for the whole file as one for a part")
    }

    /// Asks the queue for the credentials of an attempt.
    func prepareAttempt() async throws(NetworkError) {
        guard let hooks = options.hooks else { return }
        request = try await hooks.request(try firstRequest.get())
    }

    /// Returns the request of an attempt.
    ///
    /// - Parameters:
    ///   - rule: The part to ask for; nil for the whole file.
    ///   - bufferLimit: The number of bytes that may wait in memory; nil for that of one stream.
    func attemptRequest(_ rule: ContinuationRule?, bufferLimit: Int? = nil) throws(NetworkError) -> Request {
        guard var request else { throw try firstRequest.get().cancelled }
        options.retry.limit(&request, elapsed: time.elapsed(), in: session.configuration)
        if let fields = rule?.fields { request.headers = request.headers.overriding(with: fields) }
        if !request.headers.contains("Accept-Encoding") { request.headers["Accept-Encoding"] = "identity" }
        request.cache = .noStore
        request.isRetriedByCaller = true
        request.bufferLimit = bufferLimit ?? Self.bufferLimit
        if bufferLimit == nil { request.chunkLimit = Self.chunkLimit }
        return request
    }

    /// Returns the head of a response that was accepted, or the error of the request.
    func answer(of stream: ResponseStream) async -> Result<ResponseHead, NetworkError> {
        let task = stream.task
        let answer = await withTaskCancellationHandler {
            await stream.head
        } onCancel: {
            task.cancel()
        }
        if case .success(let head) = answer { latestResponse.withLock { $0 = head } }
        return answer
    }

    /// Returns the error of a response to the request for the rest that was accepted, and brings no file.
    func refusal(_ head: ResponseHead) -> NetworkError {
        let kind = head.status < 300 ? NetworkError.Kind.malformedResponse : .status
        let reason = "the server answers the request for the rest of the file with status \(head.status)"
        return error(kind, reason, head: head, underlying: .refused)
    }

    /// Counts the requests for the rest in a row that brought nothing, also over several processes.
    private func recordRefusal(_ error: NetworkError, hasNewBytes: Bool, of part: DownloadPart) async {
        let counts = hasNewBytes ? PartCounts() : rule.counts.after(error, at: stage)
        guard counts != rule.counts, !error.discardsPart, var control else { return }
        rule.counts = counts
        control.counts = counts
        self.control = control
        // `try?`: a count that is not stored costs another refusal.
        try? await part.store(control)
    }
}

/// The part of another download of the same URL, which has the lock.
///
/// A third download can take the lock, and finish, while a waiting one does not look. A part never holds bytes of two
/// URLs, because the one of another URL is removed and not emptied. So the file at the destination belongs to the URL
/// if it has the inode number of the part. The open descriptor keeps that number from being given to another file.
private final class OtherPart: Sendable {
    /// The inode number of the part.
    let number: UInt64
    private let descriptor: Int32
    private let system: any FileSystem

    /// Opens the part; nil if it is not there, or that of another URL.
    init?(_ part: DownloadPart, of url: String, _ system: any FileSystem) async {
        // `try?`: the other download may remove the file at any time.
        guard let number = DiskCall.identity(of: part.partialPath)?.number,
            let descriptor = try? system.open(part.partialPath, .read)
        else { return nil }
        // The open file must be the part before and after the control file is read.
        guard DiskCall.identity(of: descriptor)?.number == number, await part.otherURL() == url,
            DiskCall.identity(of: part.partialPath)?.number == number
        else {
            try? system.close(descriptor)  // It was not read.
            return nil
        }
        (self.number, self.descriptor, self.system) = (number, descriptor, system)
    }

    deinit {
        try? system.close(descriptor)  // It was not read.
    }
}

extension ResponseStream {
    /// The head of the response, or the error of the request.
    var head: Result<ResponseHead, NetworkError> {
        get async {
            do throws(NetworkError) { return .success(try await response) } catch { return .failure(error) }
        }
    }
}

extension Request {
    var cancelled: NetworkError { NetworkError(TransferFailure.cancelled, request: self) }
}
