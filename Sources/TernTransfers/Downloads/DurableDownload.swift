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
    let attempts: DownloadAttempts
    let requests: DownloadRequests
    let options: DurableDownloadOptions
    private let destination: URL
    private let system: any FileSystem

    var control: ControlFile?
    /// The segments in which the file is received; nil for one stream.
    var segments: SegmentedDownload?
    var mayUseSegments = true
    /// The reason why the bytes so far cannot be continued, if their response had no validator.
    var doubt = StartOverReason.noValidator
    var rule = ContinuationRule(offset: 0, validators: StrongValidators())
    /// The facts that a response contradicted, because of which the whole file is asked for; nil otherwise.
    var contradicted: ContinuationRule?
    /// The stage of the newest request for the rest, or for the whole file in its place.
    var stage = PartCounts.Stage.rest
    var schedule: RetrySchedule
    /// The hash of the bytes so far; nil if no digest is expected.
    var hash: FileHash?
    /// The reason for which the part is about to be discarded.
    var startOverReason: StartOverReason?
    /// The greatest number of bytes that the part has had.
    var highestLength: Int64 = 0

    /// The time between two looks at the lock of another download.
    private static let lockInterval = Duration.milliseconds(100)
    /// The number of requests that one attempt can need until bytes come: with the entity tag, with the date, for the
    /// whole file.
    private static let mostRequests = 3

    init(
        _ request: Result<Request, NetworkError>, session: Session, to destination: URL,
        options: DurableDownloadOptions,
        system: any FileSystem = PosixFileSystem()
    ) {
        attempts = DurableAttempts(
            request, session: session, retry: options.retry, clock: options.clock, newURL: options.url)
        requests = DownloadRequests(attempts, options)
        self.destination = destination
        self.options = options
        self.system = system
        schedule = RetrySchedule(options.retry)
    }

    /// Returns a download that has started.
    static func started(
        _ request: Result<Request, NetworkError>, session: Session, to destination: URL,
        options: DurableDownloadOptions,
        system: any FileSystem = PosixFileSystem()
    ) -> DurableDownload {
        let download = DurableDownload(request, session: session, to: destination, options: options, system: system)
        download.attempts.start(on: download) { () throws(NetworkError) in try await download.perform() }
        return download
    }

    /// Nonisolated as the protocol requires it: the executor of all parts, which never changes.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe DownloadPart.executor.asUnownedSerialExecutor()
    }

    // MARK: The handle

    /// The request and the destination, without secrets. Nonisolated: both never change.
    nonisolated var description: String {
        switch attempts.firstRequest {
        case .success(let request): "\(request) to \(destination.path)"
        case .failure(let error): "\(error)"
        }
    }

    /// Continues a paused download from its part.
    nonisolated func resume() {
        attempts.resume(on: self) { () throws(NetworkError) in try await self.perform() }
    }

    /// Cancels the download, waits for its end and removes its part.
    func discard() async throws(NetworkError) {
        attempts.cancel()
        // The download has ended; its own error is that of `value`.
        _ = await Result { () async throws(NetworkError) in try await attempts.outcome.value() }
        try await removePart()
    }

    /// Removes the part of a download that does not run.
    func removePart() async throws(NetworkError) {
        // A folder that cannot be written, or is not there, has no part.
        guard case .success(let request) = attempts.firstRequest, let part = idlePart, part.hasFiles else { return }
        let isLocked: Bool
        do throws(FileFailure) {
            isLocked = try await part.acquire(createsFolder: false)
            if isLocked { try await part.discard(partOf: ControlFile.digest(of: request.urlString)) }
        } catch {
            // The folder does not exist.
            if error.code == DiskCall.notThere { return }
            throw attempts.fileError(error, "the part cannot be removed")
        }
        if !isLocked { throw inProgress(part) }
    }

    /// Removes the control file that a killed process left beside a finished file. One that is not that of the file
    /// stays.
    func removeRest() async throws(FileFailure) {
        guard let part = idlePart, part.hasControl, try await part.acquire(createsFolder: false) else { return }
        try await part.removeIfFinished()
    }

    /// The files of a download that does not run; nil without a destination.
    private var idlePart: DownloadPart? {
        // `try?`: a download without a destination has no part.
        (try? FilePath.of(destination)).map { DownloadPart(destination: $0, synchronizes: false, system: system) }
    }

    // MARK: From call to file

    private func perform() async throws(NetworkError) -> DurableDownloadResult {
        let request = try attempts.firstRequest.get()
        forgetPart()
        let part = DownloadPart(
            destination: try checkedPath(request), synchronizes: options.synchronizes,
            synchronizesEnd: options.hooks != nil, system: system)
        try await attempts.fileCall(
            "no file can be moved to the destination", try await part.checkDestination())
        do throws(NetworkError) {
            if let length = try await lock(part, request),
                try await isExpected(part, length: length, digest: options.digest)
            {
                attempts.record(.finishedByOtherDownload)
                return try await end(part, at: part.destination, bytes: length, digest: options.digest)
            }
            var found = try await attempts.fileCall("the part cannot be read", try await part.load())
            if let finished = found.finishedLength {
                if try await isThisDownload(found, length: finished, of: part) {
                    attempts.record(.foundWhole)
                    return try await end(part, at: part.destination, bytes: finished, digest: options.digest)
                }
                // It describes a file that another download has finished, and nothing of it is left to continue.
                found.control = nil
            }
            found = try await takeForeignPart(found, of: part)
            let isWhole = try await adopt(found, of: part)
            if isWhole { attempts.record(.foundWhole) } else { try await receive(into: part) }
            return try await finish(part, isVerified: isWhole && found.isComplete && found.isFromThisBoot)
        } catch {
            throw ending(error, rest: await part.closeKeepingPart(), part)
        }
    }

    /// Forgets what is known of a part, which another download can have changed during a pause.
    private func forgetPart() {
        (control, segments, hash, startOverReason, contradicted) = (nil, nil, nil, nil, nil)
        (mayUseSegments, doubt, stage) = (true, .noValidator, .rest)
        rule = ContinuationRule(offset: 0, validators: StrongValidators())
    }

    /// Checks everything that needs no file, and returns the path of the destination.
    private func checkedPath(_ request: Request) throws(NetworkError) -> String {
        var problem = options.problem
        if request.method != .get { problem = "a durable download has the method GET" }
        if request.headers.contains("Range") || request.headers.contains("If-Range") {
            problem = "a durable download sets Range and If-Range itself"
        }
        return try attempts.path(of: destination, problem: problem)
    }

    /// Takes the lock of the destination. Returns the length of the file if another download of the same URL finished
    /// it meanwhile.
    private func lock(_ part: DownloadPart, _ request: Request) async throws(NetworkError) -> Int64? {
        var hasWaited = false
        var other: OtherPart?
        while true {
            let isLocked = try await attempts.fileCall(
                "the control file cannot be locked", try await part.acquire(createsFolder: options.createsFolders))
            if isLocked { break }
            guard options.contention == .wait else { throw inProgress(part) }
            if !hasWaited { attempts.record(.waitedForOtherDownload) }
            hasWaited = true
            let remaining = attempts.time.remaining ?? Self.lockInterval
            if remaining <= .zero { throw inProgress(part).adding("the time limit of the transfer is reached") }
            // Keeps the last part that was seen, because it may already have been moved to the destination.
            other = await OtherPart(part, of: request.urlString, system) ?? other
            try await attempts.sleep(min(remaining, Self.lockInterval))
        }
        schedule.recordProgress(at: attempts.time.elapsed())
        guard let other, let found = part.destinationIdentity(), found.number == other.number else { return nil }
        return found.length
    }

    private func inProgress(_ part: DownloadPart) -> NetworkError {
        attempts.error(.downloadInProgress, "another download has the destination \(part.destination)")
    }

    /// Returns the error of the download, with what is left of it.
    private func ending(_ failure: NetworkError, rest: DownloadPart.Rest, _ part: DownloadPart) -> NetworkError {
        let kept: String
        switch rest {
        case .nothing: kept = "nothing is kept"
        case .part(let length): kept = "\(length) bytes are kept in \(part.partialPath)"
        case .file: kept = "the file is complete: \(part.destination)"
        case .notRemoved(let reason): kept = "the part cannot be removed: \(reason)"
        }
        let error = attempts.ending(failure, rest: kept)
        if attempts.count == 0, case .notRemoved = rest { return error.adding(kept) }
        return error
    }

    // MARK: Attempts

    /// Receives the file, in as many attempts as it takes.
    private func receive(into part: DownloadPart) async throws(NetworkError) {
        while true {
            let start = await part.length
            if let segments {
                guard let reason = try await receive(segments, into: part, after: start) else { return }
                self.segments = nil
                mayUseSegments = false
                startOverReason = reason
                contradicted = rule
                contradicted?.size = segments.plan.size
                rule = ContinuationRule(offset: 0, validators: StrongValidators())
            }
            let (moved, asksForPart) = (attempts.movedBytes, rule.fields != nil)
            do throws(NetworkError) {
                try await attempt(part)
                if segments == nil { return }
            } catch {
                // A later process continues what this one has, also while this one waits.
                try await attempts.fileCall("the download cannot be written", try await part.writeToDisk())
                let length = await part.length
                let hasNewBytes = length > highestLength
                highestLength = max(highestLength, length)
                rule.offset = length
                if asksForPart { await recordRefusal(error, hasNewBytes: length > start, of: part) }
                let isWrongBody = stage == .body && error.refusesPart && !error.discardsPart
                schedule = try await attempts.next(
                    schedule,
                    after: RetrySchedule.Failure(
                        error: error, request: try attempts.request.get(), hasNewBytes: hasNewBytes,
                        hasMovedBytes: attempts.movedBytes > moved,
                        isTemporary: isWrongBody || error.underlying as? PartProblem == .refused))
            }
        }
    }

    /// Receives the missing bytes of all segments, and counts a refusal. The segments are taken up again by themselves.
    private func receive(
        _ segments: SegmentedDownload, into part: DownloadPart, after start: Int64
    ) async throws(NetworkError) -> StartOverReason? {
        if rule.counts.asksForWhole { return .rangeRefused }
        do throws(NetworkError) {
            return try await segments.receive(following: rule, schedule: schedule)
        } catch {
            let length = await part.length
            let isAccepted = error.response?.status == 206 && error.underlying as? PartProblem != .refused
            stage = isAccepted || error.hasWrongBody ? .body : .rest
            // One stream costs no byte.
            if length == 0, rule.counts.after(error, at: stage) != rule.counts { return .rangeRefused }
            if error.hasWrongBody { attempts.meter.startDownload(at: length, of: segments.plan.size) }
            // The bytes of the segments that ended because of a wrong body say nothing for the server.
            let hasNewBytes = length > start && !error.hasWrongBody
            await recordRefusal(error, hasNewBytes: hasNewBytes, of: part)
            throw error
        }
    }

    /// Asks for the rest of the file and receives it.
    private func attempt(_ part: DownloadPart) async throws(NetworkError) {
        try await requests.begin()
        var asksForPart = rule.fields != nil
        if asksForPart { contradicted = nil }
        if asksForPart, rule.counts.asksForWhole {
            (startOverReason, contradicted, asksForPart) = (.rangeRefused, rule, false)
        }
        var count = 0
        while count < Self.mostRequests {
            count += 1
            stage = asksForPart ? .rest : .whole
            if asksForPart { try await hashPart(part) }
            let (stream, answer) = await requests.send(try requests.request(asksForPart ? rule : nil))
            do throws(NetworkError) {
                guard asksForPart else { return try await receiveWhole(stream, try answer.get(), into: part) }
                switch rule.decision(on: answer) {
                case .append(let end, let total):
                    try await receiveRest(stream, until: end, of: total, into: part)
                    if end == total { return }
                    // The server sends the rest in several parts.
                    (rule.offset, count) = (end, 0)
                    continue
                case .replace(let reason):
                    startOverReason = reason
                    return try await receiveWhole(stream, try answer.get(), into: part)
                case .complete:
                    return stream.task.cancel()
                case .askWithDate:
                    rule.prefersDate = true
                case .askForWhole(let reason):
                    (startOverReason, contradicted, asksForPart) = (reason, rule, false)
                case .refuse:
                    throw requests.refusal(try answer.get())
                }
            } catch {
                stream.task.cancel()
                throw error
            }
            stream.task.cancel()
        }
        throw attempts.error(
            .malformedResponse, "the server answers a request for the whole file as one for a part")
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

extension Request {
    var cancelled: NetworkError { NetworkError(FailureCause.cancelled, request: self) }
}
