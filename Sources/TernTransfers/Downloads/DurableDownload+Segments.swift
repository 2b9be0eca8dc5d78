import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension DurableDownload {
    /// The end of one segment.
    private enum SegmentEnd {
        case complete
        /// The server does not serve this part of this version.
        case refused(StartOverReason)
        case failed(NetworkError)
    }

    /// Receives the missing bytes of all segments at the same time, and cuts the table off.
    ///
    /// - Returns: The reason why the file must be received in one stream from its beginning; nil if it is complete.
    func receiveSegments(of plan: SegmentPlan, into part: DownloadPart) async throws(NetworkError) -> StartOverReason? {
        trace.add(.segmented(plan.ranges.count))
        let start = counts.reduce(0, +)
        showProgress(at: start, of: plan.size)
        let progress = SegmentProgress(meter: meter, rest: plan.size - start)
        let end = await withTaskGroup(of: SegmentEnd.self) { group in
            for (index, range) in plan.ranges.enumerated() where counts[index] < range.upperBound - range.lowerBound {
                group.addTask { await self.receiveSegment(index, of: plan, into: part, progress) }
            }
            var end = SegmentEnd.complete
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
            try await fileCall("the download cannot be written") { () throws(FileFailure) in
                try await part.endSegments(of: plan)
            }
            return nil
        }
    }

    /// Receives one segment, in as many attempts as it takes.
    private func receiveSegment(
        _ index: Int, of plan: SegmentPlan, into part: DownloadPart, _ progress: SegmentProgress
    ) async -> SegmentEnd {
        var schedule = schedule
        schedule.recordProgress(at: time.elapsed())
        while true {
            let before = counts[index]
            let used = request?.target
            let avoidsHTTP2 = segmentsAvoidHTTP2
            do throws(NetworkError) {
                return try await attempt(index, of: plan, into: part, progress, avoidsHTTP2: avoidsHTTP2)
            } catch {
                if error.kind == .tls, avoidsHTTP2 {
                    // The server speaks HTTP/2 alone. Another segment can have found that out meanwhile.
                    segmentsAvoidHTTP2 = false
                    continue
                }
                do throws(NetworkError) {
                    let hasNewBytes = counts[index] > before
                    schedule = try await nextSchedule(schedule, after: error, hasNewBytes: hasNewBytes, used: used)
                } catch {
                    return .failed(error)
                }
            }
        }
    }

    private func attempt(
        _ index: Int, of plan: SegmentPlan, into part: DownloadPart, _ progress: SegmentProgress, avoidsHTTP2: Bool
    ) async throws(NetworkError) -> SegmentEnd {
        attempts += 1
        try await prepareAttempt()
        let range = plan.ranges[index]
        // A server can send a segment in several parts.
        while range.lowerBound + counts[index] < range.upperBound {
            let end = try await receivePart(of: index, plan, into: part, progress, avoidsHTTP2: avoidsHTTP2)
            if let end { return end }
        }
        return .complete
    }

    /// Receives the next bytes of a segment. Returns the end of the segment if the server does not send them; otherwise
    /// nil.
    private func receivePart(
        of index: Int, _ plan: SegmentPlan, into part: DownloadPart, _ progress: SegmentProgress, avoidsHTTP2: Bool
    ) async throws(NetworkError) -> SegmentEnd? {
        let range = plan.ranges[index]
        let start = range.lowerBound + counts[index]
        var rule = rule
        (rule.offset, rule.end, rule.size) = (start, range.upperBound, plan.size)
        var request = try attemptRequest(
            rule, bufferLimit: max(4 << 10, Self.segmentBufferLimit / plan.ranges.count))
        request.avoidsHTTP2 = avoidsHTTP2
        let stream = session.stream(request)
        let answer = await answer(of: stream)
        let end: Int64
        switch rule.decision(on: answer) {
        case .append(let position, _):
            end = position
        case .refuse:
            stream.task.cancel()
            throw refusal(try answer.get())
        case .replace(let reason), .askForWhole(let reason):
            stream.task.cancel()
            return .refused(reason)
        case .askWithDate, .complete:
            stream.task.cancel()
            return .refused(.rangeIgnored)
        }
        let copy = SegmentCopy(
            plan: plan, index: index, end: end, throttle: throttle, deadline: deadline, progress: progress)
        let (count, failure) = await copy.run(stream, to: part, from: start)
        receivedBytes += count
        if let failure {
            stream.task.cancel()
            let error = try bodyError(failure)
            guard error.hasWrongBody else {
                counts[index] += count
                throw error
            }
            // Bytes of a body with too many are not kept.
            try await fileCall("the download cannot be written") { [counts] () throws(FileFailure) in
                try await part.cut(segment: index, to: counts[index], before: count, of: plan)
            }
            throw error
        }
        counts[index] += count
        guard start + count == end else {
            throw error(.truncatedBody, "a segment ended after \(start + count - range.lowerBound) bytes")
        }
        return nil
    }
}

/// Receives the body of one segment.
private struct SegmentCopy: Sendable {
    let plan: SegmentPlan
    let index: Int
    /// The position after the last byte of the body.
    let end: Int64
    let throttle: DownloadThrottle
    /// The end of the time for the download; nil for none.
    let deadline: TransferDeadline?
    let progress: SegmentProgress

    /// Receives a body to its end. Returns the number of bytes that were written, and the reason of an early end.
    ///
    /// - Parameter part: The part, where the reader waits and writes, so that a portion costs one wake-up.
    func run(
        _ stream: ResponseStream, to part: isolated DownloadPart, from start: Int64
    ) async -> (count: Int64, failure: BodyCopy.Failure?) {
        var position = start
        while true {
            let chunks: [Data]
            do throws(NetworkError) {
                guard let next = try await stream.nextChunks(isolation: part) else { return (position - start, nil) }
                chunks = next
            } catch {
                return (position - start, .network(error))
            }
            for chunk in chunks {
                if Int64(chunk.count) > end - position { return (position - start, .tooLong(end)) }
                do throws(FileFailure) {
                    try part.write(chunk, at: position, segment: index, of: plan)
                } catch {
                    return (position - start, .file(error))
                }
                position += Int64(chunk.count)
                progress.add(chunk.count)
                do throws(DownloadThrottle.WaitEnd) {
                    try await throttle.wait(after: chunk.count, deadline: deadline)
                } catch {
                    return (position - start, BodyCopy.Failure(error))
                }
                await part.yieldTurn(after: chunk.count)
            }
        }
    }
}

/// The progress of all segments together.
private final class SegmentProgress: Sendable {
    private let meter: ProgressMeter
    private let rest: Int64
    private let received = Lock<Int64>(0)

    init(meter: ProgressMeter, rest: Int64) {
        self.meter = meter
        self.rest = rest
    }

    func add(_ count: Int) {
        let isWatched = received.withLock { received in
            received += Int64(count)
            // Stored under the lock, so that no earlier number replaces a later one.
            return meter.update(sent: 0, of: nil, received: received, of: rest)
        }
        if isWatched { meter.publishSoon() }
    }
}
