package import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Answers the requests of `CacheStage`, behind `FollowUpStage`. `TernHTTPCache` implements it.
package protocol ExchangeCache: Sendable {
    /// Returns the response to a request: a stored one, or that of the server.
    func response(to exchange: NetworkExchange) async throws(NetworkError) -> IncomingResponse
    /// Returns the stored responses, at most `limit`, in the order of their URLs.
    func storedResponses(limit: Int) async -> [StoredResponse]
}

/// A response that a cache keeps, for a list of them.
package struct StoredResponse: Sendable {
    package var url: String
    package var method: String
    package var status: Int
    package var bytes: Int64
    /// Whether the whole body is stored.
    package var isWhole: Bool
    package var age: Duration
    /// The time for which the response is still fresh; negative if it is stale.
    package var timeToLive: Duration

    package init(
        url: String, method: String, status: Int, bytes: Int64, isWhole: Bool, age: Duration, timeToLive: Duration
    ) {
        self.url = url
        self.method = method
        self.status = status
        self.bytes = bytes
        self.isWhole = isWhole
        self.age = age
        self.timeToLive = timeToLive
    }
}

extension Session.Configuration {
    /// The cache around each exchange with a server; nil for none. `TernHTTPCache` sets it.
    package var exchangeCache: (any ExchangeCache)? {
        get { untypedCache as? any ExchangeCache }
        set { untypedCache = newValue }
    }
}

/// A request on its way to the server, for which the cache may have an answer.
package struct NetworkExchange: Sendable {
    let prepared: PreparedRequest
    private let record: TaskRecord
    /// The stage behind the cache.
    private let network: any Stage

    package var target: Target { prepared.request.target }
    package var method: Request.Method { prepared.request.method }
    package var cacheChoice: Request.CacheChoice { prepared.request.cache }
    package var registry: TaskRegistry { prepared.registry }
    /// The header fields as they are sent, except those for a proxy, and with a digest in place of an authorization
    /// that the session adds.
    package let headers: Headers
    /// The cookies and the authorization that ``headers`` have, and with which the request is sent.
    private let sessionFields: SessionFields
    /// The parts of the key that belong to the session.
    package let scope: CacheScope
    /// The scope of a response that sets cookies: that of the requests which send them.
    package var scopeOfCookies: CacheScope {
        let handlesCookies = prepared.request.cookies.map { $0.makeStore() != nil } ?? (registry.cookies != nil)
        guard handlesCookies, let cache = registry.cache else { return scope }
        return cache.scope(of: prepared, headers: headers, sendsCookies: true)
    }
    /// A digest of the request's own credentials; nil without any. Where the partition stands for them, it is the same
    /// for all: a response to a request with credentials never answers one without.
    package var credentials: String? {
        guard let digest = prepared.credentialDigest(with: sessionFields) else { return nil }
        return registry.configuration.hasPartitionForCredentials ? CachePartition.digest(["partition"]) : digest
    }
    /// Whether the transport decompresses bodies itself, so that stored bytes have no coding.
    package var deliversDecodedBodies: Bool { !registry.transport.leavesStreamsCompressed }
    /// Whether the body goes to memory as a whole.
    package var isCollected: Bool { prepared.delivery == .collected }
    /// Whether the request refreshes a stored response in the background.
    package var isRefresh: Bool { prepared.isRefresh }

    init(prepared: PreparedRequest, task: TaskRecord, network: any Stage) {
        record = task
        self.prepared = prepared
        self.network = network
        sessionFields = prepared.presentSessionFields
        headers = prepared.fieldsAsSent(with: sessionFields)
        scope =
            prepared.registry.cache?.scope(of: prepared, headers: headers, sendsCookies: sessionFields.cookies != nil)
            ?? CacheScope(partition: "", trust: "")
    }

    private init(_ other: NetworkExchange, prepared: PreparedRequest) {
        record = other.record
        network = other.network
        self.prepared = prepared
        headers = other.headers
        sessionFields = other.sessionFields
        scope = other.scope
    }

    /// The same exchange with the present cookies and authorization of the session, if they are those of another user;
    /// nil if they are not. They change while a request waits, and a stored response belongs to those with whose fields
    /// it was sent.
    package var ofAnotherUser: NetworkExchange? {
        guard !prepared.presentSessionFields.hasSameUser(as: sessionFields) else { return nil }
        return NetworkExchange(prepared: prepared, task: record, network: network)
    }

    /// Sends the request with the cookies and the authorization that ``headers`` have.
    ///
    /// - Parameters:
    ///   - fields: The fields of a condition, which replace the request's own.
    ///   - onHead: Receives the head before the body of a response that is collected. Called on the transport's thread,
    ///     so it must be fast; again for each attempt.
    package func send(
        adding fields: Headers = [:], onHead: (@Sendable (ResponseHead) -> Void)? = nil
    ) async throws(NetworkError) -> IncomingResponse {
        let sent = prepared.adding(fields, with: sessionFields, onHead: onHead)
        return try await network.response(to: sent, of: record).answering(prepared)
    }

    /// Returns a stored response.
    package func answer(_ head: ResponseHead, body: StoredBody) -> IncomingResponse {
        registry.observe { $0.didReceive(head, of: AnySessionTask(record)) }
        return IncomingResponse(stored: body, request: prepared, head: head, record: record)
    }

    /// Returns the error of the request.
    package func error(_ kind: NetworkError.Kind, _ reason: String) -> NetworkError {
        error(FailureCause(kind, reason))
    }

    /// Returns the error of the request.
    package func error(_ failure: FailureCause) -> NetworkError { NetworkError(failure, request: prepared.request) }

    /// Asks the policies whether the response may be stored, and for how long.
    package func storing(of head: ResponseHead) async throws(NetworkError) -> ResponseStoring? {
        try await prepared.policies?.ask(about: prepared.request) { policy in
            try await policy.storing(of: head, for: AnySessionTask(record))
        }
    }

    /// Waits for another request. A cancellation of the task, and of the Swift task, calls `wake`, which must resume
    /// the waiter.
    package func wait<Value: Sendable>(
        for waiter: Waiter<Value>, onCancel wake: @escaping @Sendable () -> Void
    ) async -> Value {
        if !record.setCancellation(wake) { wake() }
        let value = await waiter.wait(onCancel: wake)
        _ = record.setCancellation(nil)
        return value
    }

    /// Does work that waits, in a Swift task of its own. A cancellation of the task, and of the Swift task, cancels the
    /// work, and returns nil at once, also if the work goes on.
    package func wait<Value: Sendable>(for work: @escaping @Sendable () async -> Value) async -> Value? {
        let waiter = Waiter<Value?>()
        // Owned and cancelled here. The result of work that goes on after that has no reader.
        let task = Task { waiter.resume(returning: await work()) }
        return await wait(for: waiter) {
            task.cancel()
            waiter.resume(returning: nil)
        }
    }

    /// Calls `action` when the task is paused, and at once if it is paused already. Replaces an earlier action.
    package func whenPaused(_ action: @escaping @Sendable () -> Void) {
        guard prepared.hasHandle else { return }
        if !record.setPauseAction(action) { action() }
    }

    /// Sleeps on the clock of the session.
    package func sleep(for duration: Duration) async throws {
        try await registry.clock.sleepWithoutDescriptor(for: duration)
    }

    /// Lets the task of another exchange take part in this one, for whose response it waits: this one gets its priority
    /// if that is higher, and the other one sees the progress of this one.
    ///
    /// - Returns: A function that ends the second.
    package func isJoined(by other: NetworkExchange) -> @Sendable () -> Void {
        let (record, joining) = (record, other.record)
        if record.priority < joining.priority { record.priority = joining.priority }
        record.meter.addFollower(joining.meter)
        return { record.meter.removeFollower(joining.meter) }
    }

    package var isCancelled: Bool { record.isCancelled }

    /// The time after which the request ends, with the limit that is the reason; nil for none.
    package var end: (after: Duration, limit: Timeouts.Phase)? { prepared.timeouts(of: record).end }

    /// The limit on the time without any byte; nil for none.
    package var idleTime: Duration? { prepared.timeouts.idle }

    /// Returns the same exchange without the time since another, in nanoseconds of `MonotonicClock`.
    package func spending(since start: UInt64) -> NetworkExchange {
        let time = Duration.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- start))
        return NetworkExchange(self, prepared: prepared.limitingTime(spent: prepared.timeSpent + time))
    }

    /// Sends the request as a task of its own, through the cache, and reads a body that is stored to its end. Returns
    /// when it has ended.
    ///
    /// It has the choice `revalidate`. It follows no redirect, answers no challenge, and asks no interceptor.
    package func refresh() async {
        let prepared = prepared.refreshing()
        let record = TaskRecord(id: registry.nextID(), registry: registry, request: prepared, valueType: Void.self)
        guard record.startInCaller() else { return }
        let result = await withTaskCancellationHandler {
            await record.run { record throws(NetworkError) in
                let response = try await registry.stages.exchange.response(to: prepared, of: record)
                while response.isRecorded, await response.chunks() != nil {}
                // Nobody needs a body that is not stored.
                guard response.isRecorded else {
                    await response.discard()
                    return
                }
                let outcome = await response.finalOutcome()
                if let failure = outcome.failure { throw prepared.error(failure, outcome) }
            }
        } onCancel: {
            record.cancel()
        }
        record.end(result.failure)
    }
}

/// The body of a stored response.
package struct StoredBody: Sendable {
    /// The bytes as they were sent.
    let bytes: Data
    /// The time of the request, in nanoseconds of `MonotonicClock`.
    let start: UInt64
    /// The measurements of the exchange that confirmed or completed the response; nil if no request was sent.
    let exchange: TaskMetrics?
    /// Called if the bytes cannot be decompressed.
    let onDamage: @Sendable () -> Void

    package init(
        bytes: Data, start: UInt64, exchange: TaskMetrics?, onDamage: @escaping @Sendable () -> Void
    ) {
        self.bytes = bytes
        self.start = start
        self.exchange = exchange
        self.onDamage = onDamage
    }
}

/// Receives a copy of a body while its reader reads it, as it was sent.
package protocol BodyRecorder: Sendable {
    /// Receives the next bytes.
    func receive(_ chunks: [Data])
    /// Whether the body may still be stored.
    var isRecording: Bool { get }
    /// Called when the reader has read the last byte.
    func reachEnd()
    /// Receives the end of the response. Called at most once; not at all if the response is dropped before.
    ///
    /// - Parameters:
    ///   - isWhole: Whether the response arrived whole.
    ///   - isDamaged: Whether the bytes could not be decompressed.
    ///   - isCancelled: Whether the task was cancelled.
    func finish(isWhole: Bool, isDamaged: Bool, isCancelled: Bool)
}
