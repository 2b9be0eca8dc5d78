import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The part of an earlier download at the start, the bodies of responses, the verification of the file at the end, and
// the errors.

extension DurableDownload {
    // MARK: The part of an earlier download

    /// Decides where to continue. Returns true if the part is known to be the whole file.
    func adopt(_ found: DownloadPart.Found, of part: DownloadPart) async throws(NetworkError) -> Bool {
        if case .laterVersion? = found.problem, let problem = found.problem {
            throw error(.otherDownload, "\(part.partialPath): \(problem)")
        }
        guard let control = found.control else {
            if found.problem != nil || (found.length ?? 0) > 0 { startOverReason = .controlInvalid }
            return false
        }
        let url = request?.urlString ?? ""
        guard control.urlDigest == ControlFile.digest(of: url) else {
            guard options.replacesOtherDownload else {
                throw error(
                    .otherDownload, "\(part.partialPath) is the part of another URL, \(Target.redact(control.url))")
            }
            startOverReason = .otherURL
            return false
        }
        self.control = control
        // A signature in the query can identify a user, so a part from a URL with another signature is used only after
        // the server has confirmed it. The same holds for a part that has its full length and is not marked as
        // complete: the length does not prove that the bytes reached the disk.
        if found.isComplete, control.url == url {
            try await resume(part, at: found.length ?? 0)
            return true
        }
        rule.validators = StrongValidators(etag: control.etag, lastModified: control.lastModified)
        rule.size = control.size
        rule.origin = control.origin
        rule.counts = control.counts
        if let size = options.expectedSize, let known = control.size, size != known {
            startOverReason = .fileChanged
            rule.validators = StrongValidators()
            return false
        }
        if let segments = control.segments, let size = control.size {
            // The table is cut off at the end.
            guard found.length == size, !rule.validators.isEmpty else {
                return try await adopt(SegmentPlan(size: size, segments: segments), found, of: part)
            }
            var whole = control
            whole.segments = nil
            self.control = whole
            try await fileCall("the part cannot be continued") { [whole] () throws(FileFailure) in
                try await part.store(whole)
            }
        }
        let length = DownloadPart.reliableLength(found.length ?? 0, of: control)
        guard !rule.validators.isEmpty, found.length != nil, length <= control.size ?? .max else {
            startOverReason = rule.validators.isEmpty ? .noValidator : .partMissing
            rule.validators = StrongValidators()
            return false
        }
        // The server confirms a part of full length with its last byte: not every server names the version when it
        // refuses a range behind the end (416).
        try await resume(part, at: length > 0 && length == control.size ? length - 1 : length)
        return false
    }

    /// Returns whether the file at the destination is the one that this download asks for, and was moved there by a
    /// process that was killed before it could remove the control file.
    ///
    /// The number of a removed file can be given to another one, so that its size and the caller's digest decide, too.
    func isThisDownload(
        _ found: DownloadPart.Found, length: Int64, of part: DownloadPart
    ) async throws(NetworkError) -> Bool {
        let url = request?.urlString ?? ""
        guard let control = found.control, control.size == nil || control.size == length else { return false }
        // A URL with another signature is accepted only if the caller gives a digest.
        guard control.url == url || options.digest != nil && control.urlDigest == ControlFile.digest(of: url) else {
            return false
        }
        let digest = options.digest ?? (found.isFromThisBoot ? nil : control.digest?.digest)
        return try await isExpected(part, length: length, digest: digest)
    }

    /// Returns whether the file at the destination has the size that the caller expects, and a digest.
    func isExpected(_ part: DownloadPart, length: Int64, digest: FileDigest?) async throws(NetworkError) -> Bool {
        guard options.expectedSize == nil || options.expectedSize == length else { return false }
        guard let digest else { return true }
        let hash = try newHash(digest.algorithm)
        try await self.hash(part, at: part.destination, until: length, into: hash)
        guard hash.finalize() == digest else { return false }
        trace.add(.verified(digest))
        return true
    }

    /// Continues a part that is written in segments. Returns false, because the table is still to be cut off.
    func adopt(
        _ plan: SegmentPlan, _ found: DownloadPart.Found, of part: DownloadPart
    ) async throws(NetworkError) -> Bool {
        let counts = try await fileCall("the part cannot be read") { () throws(FileFailure) -> [Int64]? in
            found.length == plan.lengthWithTable ? try await part.counts(of: plan) : nil
        }
        // After a loss of power, the table can count bytes that never reached the disk.
        let isReliable = found.isFromThisBoot || control?.bootID == nil || control?.syncedBytes != nil
        guard let counts, isReliable, !rule.validators.isEmpty else {
            startOverReason = .partMissing
            rule.validators = StrongValidators()
            return false
        }
        self.counts = counts
        self.plan = plan
        trace.add(.continued(at: counts.reduce(0, +)))
        return false
    }

    func resume(_ part: DownloadPart, at offset: Int64) async throws(NetworkError) {
        try await fileCall("the part cannot be continued") { () throws(FileFailure) in try await part.resume(at: offset)
        }
        rule.offset = offset
        highestLength = max(highestLength, offset)
        showProgress(at: offset, of: rule.size)
    }

    // MARK: Verification

    /// The digest that the file must have; nil if none is known.
    var expectedDigest: FileDigest? { options.digest ?? control?.digest?.digest }

    func newHash() throws(NetworkError) -> FileHash? {
        guard let algorithm = expectedDigest?.algorithm else { return nil }
        return try newHash(algorithm)
    }

    private func newHash(_ algorithm: FileDigest.Algorithm) throws(NetworkError) -> FileHash {
        guard let hash = FileHash(algorithm) else {
            throw error(.unsupported, "the system's configuration forbids \(algorithm.rawValue)")
        }
        return hash
    }

    /// Hashes the bytes of the part that this process has not hashed while it wrote them.
    func hashPart(_ part: DownloadPart) async throws(NetworkError) {
        guard expectedDigest != nil else { return }
        let length = await part.length
        if hash.map({ $0.count > length }) ?? true { hash = try newHash() }
        guard let hash, hash.count < length else { return }
        try await self.hash(part, at: part.partialPath, until: length, into: hash)
        schedule.recordProgress(at: time.elapsed())
    }

    /// Hashes the rest of a file, which is the part or the destination.
    func hash(
        _ part: DownloadPart, at path: String, until end: Int64, into hash: FileHash
    ) async throws(NetworkError) {
        do {
            try await Self.read(part, at: path, until: end, into: hash)
        } catch let failure as FileFailure {
            throw fileError(failure, "the file cannot be read", request: try firstRequest.get())
        } catch {
            throw cancellation
        }
    }

    @concurrent
    private static func read(
        _ part: DownloadPart, at path: String, until end: Int64, into hash: FileHash
    ) async throws {
        while hash.count < end {
            try Task.checkCancellation()
            let bytes = try await part.read(path, at: hash.count, until: end)
            guard !bytes.isEmpty else { throw FileFailure("read", path, code: DiskCall.inputOutput) }
            hash.update(bytes)
        }
    }

    /// Verifies the file and gives it its name.
    func finish(_ part: DownloadPart, isVerified: Bool) async throws(NetworkError) -> DurableDownloadResult {
        let length = await part.length
        if let size = options.expectedSize, size != length {
            // The end of the download reports a part that cannot be removed.
            try? await part.discard()
            throw error(.unexpectedSize, "the file has \(length) bytes, not \(size)")
        }
        let expected = expectedDigest
        if let expected, !isVerified || options.digest != nil {
            try await hashPart(part)
            let found = hash?.finalize()
            guard found == expected else {
                try? await part.discard()  // As above.
                let text = found.map { "\($0)" } ?? "unknown"
                throw error(.digestMismatch, "the digest of the file is \(text), and not \(expected)")
            }
            trace.add(.verified(expected))
        }
        if Task.isCancelled { throw cancellation }
        let place = try await fileCall("the file cannot be moved to its destination") { () throws(FileFailure) in
            try await part.move(
                Download.Options(existing: options.existing, createsFolders: options.createsFolders))
        }
        return try await end(part, at: place, bytes: length, digest: expected)
    }

    /// Ends a download whose file has its name: the queue stores the result, then the control file is removed.
    func end(
        _ part: DownloadPart, at path: String, bytes: Int64, digest: FileDigest?
    ) async throws(NetworkError) -> DurableDownloadResult {
        let result = result(path, bytes: bytes, digest: digest)
        if let hooks = options.hooks { try await hooks.store(result, of: try firstRequest.get()) }
        await part.remove()
        return result
    }

    func result(_ path: String, bytes: Int64, digest: FileDigest?) -> DurableDownloadResult {
        meter.startDownload(at: bytes, of: bytes)
        return DurableDownloadResult(
            file: FilePath.url(of: path), bytes: bytes, receivedBytes: receivedBytes, attempts: attempts,
            duration: time.elapsed(), digest: digest, trace: trace.events)
    }

    // MARK: Errors

    /// The end of the time for the download; nil for none.
    var deadline: TransferDeadline? { TransferDeadline(time, maximum: options.retry.maximumTime) }

    var deadlinePassed: NetworkError {
        error(.totalTimedOut, "the time was over while the download waited because of its limit on the rate")
    }

    var cancellation: NetworkError { error(.cancelled, "the download was cancelled") }

    func error(
        _ kind: NetworkError.Kind, _ reason: String, head: ResponseHead? = nil, underlying: PartProblem? = nil
    ) -> NetworkError {
        guard let request else { return NetworkError(kind, reason: reason) }
        return NetworkError(TransferFailure(kind, reason, underlying: underlying), request: request, response: head)
    }

    nonisolated func fileError(_ cause: any Error, _ reason: String, request: Request) -> NetworkError {
        NetworkError(TransferFailure(.fileSystem, "\(reason): \(cause)", underlying: cause), request: request)
    }

    func writeError(_ failure: FileFailure) throws(NetworkError) -> NetworkError {
        fileError(failure, "the download cannot be written", request: try firstRequest.get())
    }

    func fileCall<Value: Sendable>(
        _ reason: String, _ call: () async throws(FileFailure) -> Value
    ) async throws(NetworkError) -> Value {
        do throws(FileFailure) {
            return try await call()
        } catch {
            throw fileError(error, reason, request: try firstRequest.get())
        }
    }

    func sleep(_ duration: Duration) async throws(NetworkError) {
        do {
            try await time.sleep(duration)
        } catch {
            throw cancellation
        }
    }

    /// Returns the error of the download: that of its last attempt, with the number of attempts, the time and the
    /// bytes.
    func ending(_ failure: NetworkError, rest: DownloadPart.Rest, _ part: DownloadPart) -> NetworkError {
        var failure = Task.isCancelled && !failure.isCancelled ? cancellation : failure
        let elapsed = time.elapsed()
        if attempts > 1, !failure.isCancelled { failure = failure.ending(attempts: attempts, in: elapsed) }
        let kept: String
        switch rest {
        case .nothing: kept = "nothing is kept"
        case .part(let length): kept = "\(length) bytes are kept in \(part.partialPath)"
        case .file: kept = "the file is complete: \(part.destination)"
        case .notRemoved(let reason): kept = "the part cannot be removed: \(reason)"
        }
        guard attempts > 0 else {
            if case .notRemoved = rest { return failure.adding(kept) }
            return failure
        }
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let tried = attempts > 1 ? "" : "1 attempt in \((seconds * 1_000).rounded() / 1_000) seconds, "
        return failure.adding("\(tried)\(receivedBytes) bytes received, \(kept)")
    }
}

extension DurableDownload {
    // MARK: The body

    /// Receives a whole file from its first byte.
    func receiveWhole(
        _ stream: ResponseStream, _ head: ResponseHead, into part: DownloadPart
    ) async throws(NetworkError) {
        guard head.status != 206 else {
            stream.task.cancel()
            throw error(
                .malformedResponse, "the server sent a part (206), and was asked for the whole file", head: head)
        }
        let whole = contradicted.map { $0.decision(onWholeFile: head) } ?? .use(length: nil)
        guard case .use(let knownLength) = whole else {
            stream.task.cancel()
            throw await contradiction(part, head)
        }
        let discarded = await part.length
        if discarded > 0 || startOverReason != nil {
            trace.add(.startedOver(startOverReason ?? doubt, discarded: discarded))
        } else if !trace.events.contains(.started) {
            trace.add(.started)
        }
        startOverReason = nil
        doubt = head.contentCodings.isEmpty ? .noValidator : .encoded
        let size = knownLength ?? (head.contentCodings.isEmpty ? head.contentLength : nil)
        try checkSize(size, stream: stream, head: head)
        let validators = StrongValidators(head)
        rule = ContinuationRule(offset: 0, validators: validators, size: size, origin: head.target.origin)
        var control = ControlFile(url: try firstRequest.get().urlString, partialFile: part.names.partial)
        (control.etag, control.lastModified) = (validators.etag, validators.lastModified)
        (control.size, control.origin) = (size, head.target.origin)
        control.digest = FileDigest(of: head.headers, status: head.status).map { ControlFile.StoredDigest($0) }
        let plan = mayUseSegments && !validators.isEmpty ? size.flatMap { newPlan(size: $0) } : nil
        control.segments = plan?.ranges.count
        self.control = control
        do throws(NetworkError) {
            try await fileCall("the download cannot be written") { [control] () throws(FileFailure) in
                try await part.begin(control)
            }
            try await checkSpace(for: plan?.lengthWithTable ?? size, part)
        } catch {
            stream.task.cancel()
            throw error
        }
        // The bytes that it covers are gone.
        hash = nil
        meter.startDownload(at: 0)
        if let plan {
            stream.task.cancel()
            self.plan = plan
            counts = Array(repeating: 0, count: plan.ranges.count)
            return
        }
        hash = try newHash()
        do throws(NetworkError) {
            try await copy(stream, to: part, from: 0, total: size)
        } catch {
            guard knownLength != nil, error.underlying as? PartProblem == .otherLength else { throw error }
            throw await contradiction(part, head)
        }
        contradicted = nil
    }

    /// Discards the part, and returns the error of a server that contradicts what it has said about the file.
    private func contradiction(_ part: DownloadPart, _ head: ResponseHead) async -> NetworkError {
        let reason = PartProblem.contradiction(of: head, totalBytes: contradicted?.size)
        contradicted = nil
        // The end of the download reports a part that cannot be removed.
        try? await part.discard()
        return error(.malformedResponse, reason, head: head, underlying: .contradicted)
    }

    /// Receives the rest of a file that is the same, or the next part of it.
    func receiveRest(
        _ stream: ResponseStream, until end: Int64, of total: Int64, into part: DownloadPart
    ) async throws(NetworkError) {
        try checkSize(total, stream: stream)
        trace.add(.continued(at: rule.offset))
        stage = .body
        do throws(NetworkError) {
            if rule.size == nil, var control {
                rule.size = total
                control.size = total
                self.control = control
                try await fileCall("the download cannot be written") { [control] () throws(FileFailure) in
                    try await part.store(control)
                }
            }
            try await checkSpace(for: total, part)
        } catch {
            stream.task.cancel()
            throw error
        }
        do throws(NetworkError) {
            try await copy(stream, to: part, from: rule.offset, until: end, total: total)
        } catch {
            // Bytes of a body with too many are not kept.
            if error.hasWrongBody { try await resume(part, at: rule.offset) }
            let isMarked = latestResponse.withLock { $0?.hasMarkedEnd ?? false }
            guard isMarked, error.kind == .truncatedBody, error.underlying as? PartProblem == .otherLength,
                await part.length == rule.offset
            else {
                throw error
            }
            // A message that is whole has none of the bytes. It would have none the next time. As above.
            try? await part.discard()
            throw self.error(.malformedResponse, error.reason, underlying: .empty)
        }
    }

    /// Throws if a size that the server states is no size of a file, or not the expected one.
    func checkSize(_ size: Int64?, stream: ResponseStream, head: ResponseHead? = nil) throws(NetworkError) {
        if let size, size > ControlFile.mostBytes {
            stream.task.cancel()
            throw error(.malformedResponse, "the server states a size of \(size) bytes", head: head)
        }
        guard let size, let expected = options.expectedSize, size != expected else { return }
        stream.task.cancel()
        throw error(.unexpectedSize, "the file has \(size) bytes, not \(expected)", head: head)
    }

    func checkSpace(for size: Int64?, _ part: DownloadPart) async throws(NetworkError) {
        guard options.freeSpaceCheck, let size, let missing = await part.missingSpace(for: size) else { return }
        let failure = FileFailure("write", part.partialPath, code: DiskCall.noSpace)
        throw fileError(
            failure, "the file needs \(missing.needed) more bytes, and the disk has \(missing.free)",
            request: try firstRequest.get())
    }

    func copy(
        _ stream: ResponseStream, to part: DownloadPart, from offset: Int64, until end: Int64? = nil, total: Int64?
    ) async throws(NetworkError) {
        showProgress(at: offset, of: total)
        let end = end ?? total
        let limit = end ?? options.expectedSize
        let copy = BodyCopy(
            part: part, hash: hash, throttle: throttle, deadline: deadline, meter: meter, offset: offset,
            total: total, limit: limit)
        let failure: BodyCopy.Failure?
        do throws(BodyCopy.Failure) {
            try await copy.run(stream, isolation: hash == nil ? part : nil)
            failure = nil
        } catch {
            failure = error
        }
        let length = await part.length
        receivedBytes += length - offset
        guard let failure else {
            guard let end, length < end else { return }
            throw error(.truncatedBody, "the body ended after \(length) of \(end) bytes", underlying: .otherLength)
        }
        if case .network = failure {} else { stream.task.cancel() }
        if case .tooLong(let limit) = failure, total == nil {
            throw error(.unexpectedSize, "the file has more than \(limit) bytes")
        }
        throw try bodyError(failure)
    }

    /// Returns the error of a body that ended early.
    func bodyError(_ failure: BodyCopy.Failure) throws(NetworkError) -> NetworkError {
        switch failure {
        case .network(let error): error
        case .file(let failure): try writeError(failure)
        case .tooLong:
            error(.malformedResponse, "the body has more bytes than the response says", underlying: .otherLength)
        case .cancelled: cancellation
        case .deadline: deadlinePassed
        }
    }

    func newPlan(size: Int64) -> SegmentPlan? {
        SegmentPlan(size: size, count: options.segments, shortest: options.shortestSegment)
    }

    func showProgress(at offset: Int64, of total: Int64?) { meter.startDownload(at: offset, of: total) }
}
