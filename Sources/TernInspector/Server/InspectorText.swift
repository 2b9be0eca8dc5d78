import Tern
import TernConcurrency
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns tasks into what a page shows. Each URL and each header field goes through the redaction first, the same as in
/// recordings and HAR files.
struct InspectorText: Sendable {
    private let redaction: Recording.Redaction
    /// The time since 1970 at the zero of the monotonic clock, in milliseconds.
    private let zero: Double

    init(_ redaction: Recording.Redaction) {
        self.redaction = redaction
        zero = Date().timeIntervalSince1970 * 1_000 - Self.milliseconds(MonotonicClock.nanoseconds())
    }

    private static func milliseconds(_ nanoseconds: UInt64) -> Double {
        (Double(nanoseconds) / 1_000).rounded() / 1_000
    }

    private static func milliseconds(_ duration: Duration?) -> Double? {
        duration.map { ($0 / .microseconds(1)).rounded() / 1_000 }
    }

    // MARK: The list

    func row(of task: InspectedTask) -> InspectorRow {
        let last = task.attempts.last
        let end = task.end
        let response = end?.response ?? last?.response
        let metrics = end?.metrics ?? last?.metrics
        let progress = task.handle?.progressNow
        let trace = response?.cacheTrace
        return InspectorRow(
            number: task.number, end: task.endNumber, session: task.key.session, task: task.key.task,
            label: task.handle?.label ?? task.label, state: state(of: task), method: task.method,
            url: redacted(task.url), status: response?.status ?? nil, error: end?.failure?.kind,
            start: (zero + Self.milliseconds(task.start)).rounded(toPlaces: 3),
            duration: end.map { Self.milliseconds($0.time - min($0.time, task.start)) },
            phases: phases(of: metrics), attempts: attempts(of: task),
            sent: metrics?.sentBytes ?? task.handle?.uploadProgressNow.completedBytes ?? 0,
            received: metrics?.receivedBytes ?? progress?.completedBytes ?? 0, total: progress?.totalBytes,
            version: (metrics?.httpVersion ?? response?.version)?.rawValue,
            connection: metrics?.connectionNumber, isReused: metrics?.isReusedConnection ?? false,
            cache: trace?.source == .network ? nil : trace?.source.rawValue)
    }

    private func state(of task: InspectedTask) -> String {
        guard let end = task.end else { return task.handle?.state == .suspended ? "paused" : "running" }
        guard let failure = end.failure else { return "done" }
        return failure.kind == NetworkError.Kind.cancelled.rawValue ? "cancelled" : "failed"
    }

    private func phases(of metrics: TaskMetrics?) -> InspectorRow.Phases {
        guard let metrics else { return InspectorRow.Phases() }
        var details = Recording.Details()
        details.take(metrics)
        return InspectorRow.Phases(
            lookup: Self.milliseconds(details.nameLookup), connect: Self.milliseconds(details.connect),
            tls: Self.milliseconds(details.tls), wait: Self.milliseconds(details.wait),
            receive: Self.milliseconds(details.receive))
    }

    private func attempts(of task: InspectedTask) -> [InspectorRow.Attempt] {
        task.attempts.map { attempt in
            InspectorRow.Attempt(
                cause: attempt.cause.rawValue,
                start: Self.milliseconds(attempt.start - min(attempt.start, task.start)),
                duration: attempt.end.map { Self.milliseconds($0 - min($0, attempt.start)) },
                status: attempt.response?.status, error: attempt.failure?.kind)
        }
    }

    // MARK: One task

    func details(of task: InspectedTask) -> InspectorDetails {
        InspectorDetails(
            row: row(of: task), error: task.end?.failure?.reason, omittedAttempts: task.omittedAttempts,
            attempts: task.attempts.map { attempt in
                let exchange = redacted(exchange(of: attempt))
                return InspectorDetails.Attempt(
                    cause: attempt.cause.rawValue, method: exchange.request.method, url: exchange.request.url,
                    start: Self.milliseconds(attempt.start - min(attempt.start, task.start)),
                    duration: attempt.end.map { Self.milliseconds($0 - min($0, attempt.start)) },
                    status: exchange.response?.status, reasonPhrase: attempt.response?.reasonPhrase,
                    error: attempt.failure?.reason, requestHeaders: Self.fields(exchange.request.headers),
                    responseHeaders: Self.fields(exchange.response?.headers ?? []))
            }, facts: facts(of: task))
    }

    private static func fields(_ lines: [String]) -> [[String]] {
        Headers(recorded: lines).map { [$0.name, $0.value] }
    }

    private func facts(of task: InspectedTask) -> [InspectorDetails.Facts] {
        var facts: [InspectorDetails.Facts] = []
        func add(_ name: String, _ value: String?) {
            if let value { facts.append(InspectorDetails.Facts(name: name, value: value)) }
        }
        let metrics = task.end?.metrics
        add("Session", "\(task.key.session)")
        add("Task", "\(task.key.task)")
        add("Label", task.handle?.label ?? task.label)
        add("Priority", Request.Priority(rawValue: task.priority).map { "\($0)" })
        if let metrics {
            add("Protocol", metrics.httpVersion?.rawValue)
            let peer = metrics.remoteAddress.map { $0.contains(":") ? "[\($0)]" : $0 }
            add("Peer", peer.map { address in address + (metrics.remotePort.map { ":\($0)" } ?? "") })
            add("Connection", metrics.connectionNumber.map { "\($0)" + (metrics.isReusedConnection ? ", reused" : "") })
            add("Sent", "\(metrics.sentBytes) bytes")
            add("Received", "\(metrics.receivedBytes) bytes")
            if metrics.decodedBodyBytes > 0 { add("Body", "\(metrics.decodedBodyBytes) bytes") }
            if metrics.transactions > 1 { add("Sent over the wire", "\(metrics.transactions) times") }
            add("Pins", metrics.pinReport)
        }
        if let trace = (task.end?.response ?? task.attempts.last?.response)?.cacheTrace {
            add("Cache", trace.description)
            add("Cache-Status", trace.cacheStatus)
        }
        return facts
    }

    // MARK: Caches and files

    func list(of stored: [StoredResponse]) -> [InspectorStored] {
        stored.map { response in
            InspectorStored(
                method: response.method, url: redacted(InspectedTask.kept(response.url)), status: response.status,
                bytes: response.bytes, isWhole: response.isWhole, age: response.age.components.seconds,
                timeToLive: response.timeToLive.components.seconds)
        }
    }

    /// Returns the requests of tasks as a HAR file, without bodies.
    func har(of tasks: [InspectedTask]) throws -> Data {
        let exchanges = tasks.flatMap(\.attempts).sorted { $0.start < $1.start }.map { exchange(of: $0) }
        return try Recording(exchanges).har(redaction: redaction)
    }

    // MARK: Redaction

    private func exchange(of attempt: InspectedAttempt) -> Recording.Exchange {
        var exchange = Recording.Exchange(
            request: Recording.Sent(
                method: attempt.method, url: attempt.url, headers: attempt.headers.recorded))
        if let response = attempt.response {
            exchange.response = Recording.Received(
                status: response.status, headers: response.headers.recorded, cut: Recording.Cut())
        } else if let failure = attempt.failure {
            exchange.failure = Recording.Failed(kind: failure.kind, reason: failure.reason)
        }
        var details = Recording.Details()
        if let metrics = attempt.metrics { details.take(metrics) }
        details.started = Date(timeIntervalSince1970: (zero + Self.milliseconds(attempt.start)) / 1_000)
        details.httpVersion = attempt.response?.version
        details.reasonPhrase = attempt.response?.reasonPhrase
        details.total =
            details.total ?? attempt.end.map { .nanoseconds(Int64(clamping: $0 - min($0, attempt.start))) }
        exchange.details = details
        return exchange
    }

    private func redacted(_ exchange: Recording.Exchange) -> Recording.Exchange {
        var exchange = exchange
        redaction.change(&exchange)
        return exchange
    }

    private func redacted(_ url: String) -> String {
        redacted(Recording.Exchange(request: Recording.Sent(method: "", url: url))).request.url
    }
}

extension Double {
    fileprivate func rounded(toPlaces places: Int) -> Double {
        let factor = Double([1, 10, 100, 1_000][min(places, 3)])
        return (self * factor).rounded() / factor
    }
}
