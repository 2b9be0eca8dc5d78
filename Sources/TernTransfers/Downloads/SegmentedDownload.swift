import Tern

/// Receives a file in several segments at the same time, each in as many attempts as it takes.
///
/// Runs on the thread of ``DownloadPart``, as the download does, so that a call on either costs no wake-up.
actor SegmentedDownload {
    /// The end of one segment.
    private enum End {
        case complete
        /// The server does not serve this part of this version.
        case refused(StartOverReason)
        case failed(NetworkError)
    }

    let plan: SegmentPlan
    private let part: DownloadPart
    private let requests: DownloadRequests
    /// The number of bytes of each segment.
    private var counts: [Int64]
    /// Whether segments speak HTTP/1, so that each has a connection of its own. False after a server has refused that.
    private var avoidsHTTP2 = true

    /// The number of bytes that may wait in memory, for all segments together.
    private static let bufferLimit = 32 << 10

    /// Creates the segments of a file.
    ///
    /// - Parameter counts: The number of bytes that each segment has; nil for none.
    init(_ plan: SegmentPlan, counts: [Int64]? = nil, of part: DownloadPart, _ requests: DownloadRequests) {
        self.plan = plan
        self.part = part
        self.requests = requests
        self.counts = counts ?? Array(repeating: 0, count: plan.ranges.count)
    }

    /// Nonisolated as the protocol requires it: the executor of the part, which never changes.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe DownloadPart.executor.asUnownedSerialExecutor()
    }

    /// Receives the missing bytes of all segments, and cuts the table off.
    ///
    /// - Parameters:
    ///   - rule: The version of the file that each response must have.
    ///   - schedule: The rules for the failures of each segment.
    /// - Returns: The reason why the file must be received in one stream from its beginning; nil if it is complete.
    func receive(
        following rule: ContinuationRule, schedule: RetrySchedule
    ) async throws(NetworkError) -> StartOverReason? {
        let attempts = requests.attempts
        attempts.record(.segmented(plan.ranges.count))
        let start = counts.reduce(0, +)
        attempts.meter.startDownload(at: start, of: plan.size)
        let progress = BodyProgress(attempts.meter, rest: plan.size - start)
        let end = await withTaskGroup(of: End.self) { group in
            for (index, range) in plan.ranges.enumerated() where counts[index] < range.upperBound - range.lowerBound {
                group.addTask {
                    await self.receive(segment: index, following: rule, schedule: schedule, progress: progress)
                }
            }
            var end = End.complete
            for await next in group {
                // The others end because of the first that does not complete.
                guard case .complete = end else { continue }
                end = next
                if case .complete = next { continue }
                group.cancelAll()
            }
            return end
        }
        switch end {
        case .refused(let reason):
            return reason
        case .failed(let error):
            throw error
        case .complete:
            try await attempts.fileCall("the download cannot be written", try await part.endSegments(of: plan))
            return nil
        }
    }

    /// Receives one segment, in as many attempts as it takes.
    private func receive(
        segment index: Int, following rule: ContinuationRule, schedule: RetrySchedule, progress: BodyProgress
    ) async -> End {
        let attempts = requests.attempts
        var schedule = schedule
        schedule.recordProgress(at: attempts.time.elapsed())
        while true {
            let before = counts[index]
            // Another segment can replace the URL, or find out that the server speaks HTTP/2 alone, meanwhile.
            let (used, avoidsHTTP2) = (attempts.request, avoidsHTTP2)
            do throws(NetworkError) {
                try await requests.begin()
                // A server can send a segment in several parts.
                while counts[index] < plan.ranges[index].upperBound - plan.ranges[index].lowerBound {
                    let refusal = try await receivePart(
                        of: index, following: rule, progress: progress, avoidsHTTP2: avoidsHTTP2)
                    if let refusal { return .refused(refusal) }
                }
                return .complete
            } catch {
                if error.kind == .tls, avoidsHTTP2 {
                    self.avoidsHTTP2 = false
                    continue
                }
                do throws(NetworkError) {
                    schedule = try await attempts.next(
                        schedule,
                        after: RetrySchedule.Failure(
                            error: error, request: try used.get(), hasNewBytes: counts[index] > before,
                            isTemporary: error.underlying as? PartProblem == .refused))
                } catch {
                    return .failed(error)
                }
            }
        }
    }

    /// Receives the next bytes of a segment. Returns the reason if the server does not send them; otherwise nil.
    private func receivePart(
        of index: Int, following rule: ContinuationRule, progress: BodyProgress, avoidsHTTP2: Bool
    ) async throws(NetworkError) -> StartOverReason? {
        let range = plan.ranges[index]
        var rule = rule
        (rule.offset, rule.end, rule.size) = (range.lowerBound + counts[index], range.upperBound, plan.size)
        var request = try requests.request(rule, bufferLimit: max(4 << 10, Self.bufferLimit / plan.ranges.count))
        request.avoidsHTTP2 = avoidsHTTP2
        let (stream, answer) = await requests.send(request)
        do throws(NetworkError) {
            switch rule.decision(on: answer) {
            case .append(let end, _):
                try await copy(stream, to: index, from: rule.offset, until: end, progress: progress)
                return nil
            case .refuse:
                throw requests.refusal(try answer.get())
            case .replace(let reason), .askForWhole(let reason):
                stream.task.cancel()
                return reason
            case .askWithDate, .complete:
                stream.task.cancel()
                return .rangeIgnored
            }
        } catch {
            stream.task.cancel()
            throw error
        }
    }

    /// Writes the body of a response to its segment.
    private func copy(
        _ stream: ResponseStream, to index: Int, from start: Int64, until end: Int64, progress: BodyProgress
    ) async throws(NetworkError) {
        let copy = BodyCopy(
            part: part, throttle: requests.throttle, time: requests.attempts.time, progress: progress, offset: start,
            limit: end, segment: (index, plan))
        let (count, failure) = await copy.run(stream, isolation: part)
        requests.attempts.addMoved(count)
        let error = failure.map { requests.error($0) }
        if let error, error.hasWrongBody {
            // Bytes of a body with too many are not kept.
            let kept = counts[index]
            try await requests.attempts.fileCall(
                "the download cannot be written",
                try await part.cut(segment: index, to: kept, before: count, of: plan))
            throw error
        }
        counts[index] += count
        if let error { throw error }
        guard start + count == end else {
            let received = start + count - plan.ranges[index].lowerBound
            throw requests.attempts.error(.truncatedBody, "a segment ended after \(received) bytes")
        }
    }
}
