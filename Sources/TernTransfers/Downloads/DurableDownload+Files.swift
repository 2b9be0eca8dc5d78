import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The part of an earlier download at the start, the bodies of responses, and the verification of the file at the end.

extension DurableDownload {
    // MARK: The part of an earlier download

    /// Decides where to continue. Returns true if the part is known to be the whole file.
    func adopt(_ found: DownloadPart.Found, of part: DownloadPart) async throws(NetworkError) -> Bool {
        if case .laterVersion? = found.problem, let problem = found.problem {
            throw attempts.error(.otherDownload, "\(part.partialPath): \(problem)")
        }
        guard let control = found.control else {
            if found.problem != nil || (found.length ?? 0) > 0 { startOverReason = .controlInvalid }
            return false
        }
        let url = try attempts.request.get().urlString
        guard control.urlDigest == ControlFile.digest(of: url) else {
            guard options.replacesOtherDownload else {
                throw attempts.error(
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
            leavePart(.fileChanged)
            return false
        }
        if let segments = control.segments, let size = control.size {
            // The table is cut off at the end.
            guard found.length == size, !rule.validators.isEmpty else {
                try await adopt(SegmentPlan(size: size, segments: segments), found, of: part)
                return false
            }
            var whole = control
            whole.segments = nil
            self.control = whole
            try await attempts.fileCall("the part cannot be continued", try await part.store(whole))
        }
        let length = DownloadPart.reliableLength(found.length ?? 0, of: control)
        guard !rule.validators.isEmpty, found.length != nil, length <= control.size ?? .max else {
            leavePart(rule.validators.isEmpty ? .noValidator : .partMissing)
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
        let url = try attempts.request.get().urlString
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
        let hash = try attempts.newHash(digest.algorithm)
        try await self.hash(part, at: part.destination, until: length, into: hash)
        guard hash.finalize() == digest else { return false }
        attempts.record(.verified(digest))
        return true
    }

    /// Continues a part that is written in segments.
    private func adopt(
        _ plan: SegmentPlan, _ found: DownloadPart.Found, of part: DownloadPart
    ) async throws(NetworkError) {
        let counts = try await attempts.fileCall(
            "the part cannot be read", found.length == plan.lengthWithTable ? try await part.counts(of: plan) : nil)
        // After a loss of power, the table can count bytes that never reached the disk.
        let isReliable = found.isFromThisBoot || control?.bootID == nil || control?.syncedBytes != nil
        guard let counts, isReliable, !rule.validators.isEmpty else {
            return leavePart(.partMissing)
        }
        segments = SegmentedDownload(plan, counts: counts, of: part, requests)
        attempts.record(.continued(at: counts.reduce(0, +)))
    }

    /// Asks for the whole file, so that the part is discarded.
    private func leavePart(_ reason: StartOverReason) {
        startOverReason = reason
        rule.validators = StrongValidators()
    }

    private func resume(_ part: DownloadPart, at offset: Int64) async throws(NetworkError) {
        try await attempts.fileCall("the part cannot be continued", try await part.resume(at: offset))
        rule.offset = offset
        highestLength = max(highestLength, offset)
        attempts.meter.startDownload(at: offset, of: rule.size)
    }

    // MARK: Verification

    /// The digest that the file must have; nil if none is known.
    private var expectedDigest: FileDigest? { options.digest ?? control?.digest?.digest }

    private func newHash() throws(NetworkError) -> FileHash? {
        if let algorithm = expectedDigest?.algorithm { try attempts.newHash(algorithm) } else { nil }
    }

    /// Hashes the bytes of the part that this process has not hashed while it wrote them.
    func hashPart(_ part: DownloadPart) async throws(NetworkError) {
        guard expectedDigest != nil else { return }
        let length = await part.length
        if hash.map({ $0.count > length }) ?? true { hash = try newHash() }
        guard let hash, hash.count < length else { return }
        try await self.hash(part, at: part.partialPath, until: length, into: hash)
        schedule.recordProgress(at: attempts.time.elapsed())
    }

    /// Hashes the rest of a file, which is the part or the destination.
    private func hash(
        _ part: DownloadPart, at path: String, until end: Int64, into hash: FileHash
    ) async throws(NetworkError) {
        do {
            try await Self.read(part, at: path, until: end, into: hash)
        } catch let failure as FileFailure {
            throw attempts.fileError(failure, "the file cannot be read")
        } catch {
            throw attempts.cancellation
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
            throw attempts.error(.unexpectedSize, "the file has \(length) bytes, not \(size)")
        }
        let expected = expectedDigest
        if let expected, !isVerified || options.digest != nil {
            try await hashPart(part)
            let found = hash?.finalize()
            guard found == expected else {
                try? await part.discard()  // As above.
                let text = found.map { "\($0)" } ?? "unknown"
                throw attempts.error(.digestMismatch, "the digest of the file is \(text), and not \(expected)")
            }
            attempts.record(.verified(expected))
        }
        if Task.isCancelled { throw attempts.cancellation }
        let move = Download.Options(existing: options.existing, createsFolders: options.createsFolders)
        let place = try await attempts.fileCall(
            "the file cannot be moved to its destination", try await part.move(move))
        return try await end(part, at: place, bytes: length, digest: expected)
    }

    /// Ends a download whose file has its name: the queue stores the result, then the control file is removed.
    func end(
        _ part: DownloadPart, at path: String, bytes: Int64, digest: FileDigest?
    ) async throws(NetworkError) -> DurableDownloadResult {
        attempts.meter.startDownload(at: bytes, of: bytes)
        let result = DurableDownloadResult(
            file: FilePath.url(of: path), bytes: bytes, receivedBytes: attempts.movedBytes, attempts: attempts.count,
            duration: attempts.time.elapsed(), digest: digest, trace: attempts.trace)
        if let hooks = options.hooks { try await hooks.store(result, of: try attempts.firstRequest.get()) }
        await part.remove()
        return result
    }
}

extension DurableDownload {
    // MARK: The body

    /// Receives a whole file from its first byte, or finds out in which segments it is to be received.
    func receiveWhole(
        _ stream: ResponseStream, _ head: ResponseHead, into part: DownloadPart
    ) async throws(NetworkError) {
        guard head.status != 206 else {
            throw attempts.error(
                .malformedResponse, "the server sent a part (206), and was asked for the whole file", response: head)
        }
        let whole = contradicted.map { $0.decision(onWholeFile: head) } ?? .use(length: nil)
        guard case .use(let knownLength) = whole else { throw await contradiction(part, head) }
        let discarded = await part.length
        if discarded > 0 || startOverReason != nil {
            attempts.record(.startedOver(startOverReason ?? doubt, discarded: discarded))
        } else if !attempts.trace.contains(.started) {
            attempts.record(.started)
        }
        startOverReason = nil
        doubt = head.contentCodings.isEmpty ? .noValidator : .encoded
        let size = knownLength ?? (head.contentCodings.isEmpty ? head.contentLength : nil)
        try checkSize(size, head: head)
        var control = ControlFile(
            url: try attempts.firstRequest.get().urlString, partialFile: part.names.partial, of: head, size: size)
        let validators = StrongValidators(head)
        rule = ContinuationRule(offset: 0, validators: validators, size: size, origin: control.origin)
        var plan: SegmentPlan?
        if mayUseSegments, !validators.isEmpty, let size {
            plan = SegmentPlan(size: size, count: options.segments, shortest: options.shortestSegment)
        }
        control.segments = plan?.ranges.count
        self.control = control
        try await attempts.fileCall("the download cannot be written", try await part.begin(control))
        try await checkSpace(for: plan?.lengthWithTable ?? size, part)
        // The bytes that it covers are gone.
        hash = nil
        attempts.meter.startDownload(at: 0)
        if let plan {
            stream.task.cancel()
            segments = SegmentedDownload(plan, of: part, requests)
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
        return attempts.error(.malformedResponse, reason, response: head, underlying: PartProblem.contradicted)
    }

    /// Receives the rest of a file that is the same, or the next part of it.
    func receiveRest(
        _ stream: ResponseStream, until end: Int64, of total: Int64, into part: DownloadPart
    ) async throws(NetworkError) {
        try checkSize(total)
        attempts.record(.continued(at: rule.offset))
        stage = .body
        if rule.size == nil, var control {
            rule.size = total
            control.size = total
            self.control = control
            try await attempts.fileCall("the download cannot be written", try await part.store(control))
        }
        try await checkSpace(for: total, part)
        do throws(NetworkError) {
            try await copy(stream, to: part, from: rule.offset, until: end, total: total)
        } catch {
            // Bytes of a body with too many are not kept.
            if error.hasWrongBody { try await resume(part, at: rule.offset) }
            let isMarked = requests.latestResponse.withLock { $0?.hasMarkedEnd ?? false }
            guard isMarked, error.kind == .truncatedBody, error.underlying as? PartProblem == .otherLength,
                await part.length == rule.offset
            else {
                throw error
            }
            // A message that is whole has none of the bytes. It would have none the next time. As above.
            try? await part.discard()
            throw attempts.error(.malformedResponse, error.reason, underlying: PartProblem.empty)
        }
    }

    /// Throws if a size that the server states is no size of a file, or not the expected one.
    private func checkSize(_ size: Int64?, head: ResponseHead? = nil) throws(NetworkError) {
        guard let size else { return }
        if size > ControlFile.mostBytes {
            throw attempts.error(
                .malformedResponse, "the server states a size of \(size) bytes", response: head)
        }
        if let expected = options.expectedSize, size != expected {
            throw attempts.error(.unexpectedSize, "the file has \(size) bytes, not \(expected)", response: head)
        }
    }

    private func checkSpace(for size: Int64?, _ part: DownloadPart) async throws(NetworkError) {
        guard options.freeSpaceCheck, let size, let missing = await part.missingSpace(for: size) else { return }
        throw attempts.fileError(
            FileFailure("write", part.partialPath, code: DiskCall.noSpace),
            "the file needs \(missing.needed) more bytes, and the disk has \(missing.free)")
    }

    private func copy(
        _ stream: ResponseStream, to part: DownloadPart, from offset: Int64, until end: Int64? = nil, total: Int64?
    ) async throws(NetworkError) {
        attempts.meter.startDownload(at: offset, of: total)
        let end = end ?? total
        let copy = BodyCopy(
            part: part, throttle: requests.throttle, time: attempts.time,
            progress: BodyProgress(attempts.meter, rest: total.map { $0 - offset }), offset: offset,
            limit: end ?? options.expectedSize, hash: hash)
        let (_, failure) = await copy.run(stream, isolation: hash == nil ? part : nil)
        let length = await part.length
        attempts.addMoved(length - offset)
        if case .tooLong(let limit) = failure, total == nil {
            throw attempts.error(.unexpectedSize, "the file has more than \(limit) bytes")
        }
        if let failure { throw requests.error(failure) }
        if let end, length < end {
            throw attempts.error(
                .truncatedBody, "the body ended after \(length) of \(end) bytes", underlying: PartProblem.otherLength)
        }
    }
}
