import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// An open connection that speaks another protocol after a 101 response, or a stream over HTTP/2 that does so after
/// extended CONNECT (RFC 8441), as a task of its session.
///
/// Redirects, challenges, cookies, proxies, trust and time limits of the handshake are those of any request. The
/// connection ends with `finish(_:)`, with the cancellation of the task, and when this object is released.
package final class UpgradedStream: Sendable {
    package let head: ResponseHead
    /// The header fields of the request that the server accepted.
    package let requestHeaders: Headers
    /// The bytes to send.
    package let pipe: UploadPipe
    private let record: TaskRecord
    private let response: IncomingResponse
    private let attempt: Attempt
    /// The time limit of a connection whose owner has let go of it; nil before. Owned here, and cancelled at the end.
    private let limit = Lock<Task<Void, Never>?>(nil)

    private init?(_ response: IncomingResponse, record: TaskRecord) {
        guard let attempt = response.attempt, case .pipe(let pipe, _) = attempt.request.source else { return nil }
        head = response.head
        requestHeaders = attempt.request.headers
        self.pipe = pipe
        self.record = record
        self.response = response
        self.attempt = attempt
    }

    deinit {
        limit.withLock { $0 }?.cancel()
        // The owner let go of an open connection.
        pipe.close()
        record.abandon()
    }

    /// Whether the connection is a stream of an HTTP/2 connection.
    package var isMultiplexed: Bool { head.version == .http2 }

    /// The task of the connection.
    package var task: AnySessionTask { AnySessionTask(record) }
    /// The number of bytes that were received and sent on the connection after the handshake, so far.
    package var byteCounts: (received: Int64, sent: Int64) {
        (record.meter.download.completedBytes, record.meter.upload.completedBytes)
    }
    /// The configuration of the session.
    package var configuration: Session.Configuration { record.registry.configuration }
    /// The clock of the session.
    package var clock: any Clock<Duration> { record.registry.clock }
    /// The executor on which the connection's loop runs code; the concurrent executor without a loop.
    package var loopExecutor: any TaskExecutor { record.registry.transport.taskExecutor }

    /// Asks for the protocol of an offer, and returns the connection once the server has switched.
    ///
    /// - Parameter check: Returns the reason why the response is not acceptable, from its head and the fields of the
    ///   request that it answers; nil if it is acceptable.
    /// - Throws: An error of kind `.status` for a response other than 101, with its body. Over HTTP/2, a status of 200
    ///   to 299 takes its place.
    package static func open(
        _ request: Request, offer: UpgradeOffer, in session: Session,
        check: @escaping @Sendable (ResponseHead, Headers) -> FailureCause?
    ) async throws(NetworkError) -> UpgradedStream {
        let registry = session.tasks
        var request = request
        // A status of 200 is no success over HTTP/1. `PreparedRequest.isSwitched(_:)` accepts it over HTTP/2.
        request.validation = ResponseValidation(contentTypes: .any, statuses: { $0 == 101 })
        let prepared = try PreparedRequest(request, registry: registry, delivery: .streamed, upgrade: offer)
        let record = TaskRecord(id: registry.nextID(), registry: registry, request: prepared, valueType: Void.self)
        guard registry.live.join(record) else {
            record.fail()
            throw registry.invalidated(request)
        }
        let opened = TaskValue<UpgradedStream>()
        record.assign(opened.delivery) { record in
            let outcome = await record.run { record throws(NetworkError) in
                let response = try await RequestExecution(request: prepared, record: record).acceptedResponse()
                guard let attempt = response.attempt, response.isOpen else {
                    let reason = "the response to the handshake did not come over a connection"
                    throw await response.error(FailureCause(.unsupported, reason), readsBody: false)
                }
                if let refusal = check(response.head, attempt.request.headers) {
                    throw await response.error(refusal, readsBody: false)
                }
                guard let stream = UpgradedStream(response, record: record) else {
                    let failure = FailureCause(.unsupported, "the transport cannot switch to another protocol")
                    throw await response.error(failure, readsBody: false)
                }
                try record.handToReader()
                return stream
            }
            if let error = outcome.failure { return record.end(error) { opened.deliver(outcome) } }
            opened.deliver(outcome)
        }
        let result = await withTaskCancellationHandler {
            record.resume()
            return await opened.outcome()
        } onCancel: {
            record.cancel()
        }
        return try result.get()
    }

    /// Returns the next bytes of the server; nil after the last ones, also when the connection failed. One reader at a
    /// time.
    ///
    /// A server that has ended its direction can still read: the connection ends after the end of `pipe`.
    package func chunks() async -> [Data]? { await response.chunks() }

    /// Lets the transport read the pipe again, which has said that it is starved.
    package func pipeIsReady() { record.registry.transport.control(attempt, .bodyReady) }

    /// Ends this side's direction after the bytes so far, for an owner that lets go of the connection. The bytes that
    /// the server sends meanwhile must be read, and dropped. The task is cancelled after `limit` if the connection has
    /// not ended by then.
    package func finishSending(within limit: Duration) {
        if pipe.end() { pipeIsReady() }
        let clock = clock
        let timer = Task { [weak self] in
            // An error means that the connection has ended in time.
            guard (try? await clock.sleepWithoutDescriptor(for: limit)) != nil else { return }
            self?.cancel()
        }
        self.limit.withLock { $0 = timer }
    }

    /// Ends the connection now, without the end of the task. `chunks()` then returns nil.
    package func disconnect() { record.cancelAttempt() }

    /// Whether the connection has ended, in both directions.
    package var hasEnded: Bool { attempt.hasEnded }

    /// Whether the task was cancelled.
    package var isCancelled: Bool { record.isCancelled }

    /// Calls `action` when the task is cancelled, and at once if it is cancelled already. Replaces an earlier action.
    package func whenCancelled(_ action: @escaping @Sendable () -> Void) {
        if !record.setCancellation(action) { action() }
    }

    /// Ends the task like `AnySessionTask.cancel()`.
    package func cancel() { record.cancel() }

    /// Waits for the end of the connection, whose chunks were read to the end. Returns the reason of a failure.
    package func outcome() async -> (failure: NetworkError?, metrics: TaskMetrics) {
        let outcome = await response.finalOutcome()
        let error = outcome.failure.map { failure in identified(failure, outcome) }
        return (error, outcome.metrics)
    }

    /// Returns a public error of this task.
    package func error(_ failure: FailureCause) -> NetworkError {
        identified(failure, AttemptOutcome(head: head))
    }

    private func identified(_ failure: FailureCause, _ outcome: AttemptOutcome) -> NetworkError {
        response.request.error(failure, outcome)
            .identified(task: record.id, session: record.registry.sessionID, label: record.label)
    }

    /// Ends the task: nil for success.
    package func finish(_ error: NetworkError?) { record.end(error) }
}
