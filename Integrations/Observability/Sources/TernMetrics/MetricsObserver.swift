public import Metrics
public import Tern
import TernObservation

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Measures the requests of a session, with the names of OpenTelemetry's conventions for HTTP.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.observers = [MetricsObserver()]
/// ```
///
/// | Metric | Type | Dimensions |
/// |---|---|---|
/// | `http.client.request.duration` | `Timer`, displayed in seconds | all |
/// | `http.client.active_requests` | `Meter` | method and server |
/// | `http.client.open_connections` | `Meter` | server, and `http.connection.state` |
///
/// The dimensions are `http.request.method`, `server.address`, `server.port`, `url.template`,
/// `http.response.status_code`, `error.type` and `network.protocol.version`. Further metrics, and `url.scheme`, are a
/// choice (``Options``). Connections are measured while ``measureConnections(of:every:)`` runs. Each redirect, each answer to a
/// challenge and each retry is a request of its own. A duration ends with the body of the response, and does not
/// contain the wait before a retry. A response that a cache answers is not measured.
///
/// The number of dimensions is bounded: a method that is not known and a status outside 100–599 are `_OTHER`, and so are
/// each server after the first `maximumServers` and each template after the first 100. A dimension without a value, such as `error.type` of a success,
/// is an empty string, because some backends require the same names for each value of a metric.
public struct MetricsObserver: SessionObserver {
    private let measurements: RequestMeasurements
    private let tracker: AttemptTracker<RequestMeasurements>

    /// Creates an observer. One observer can serve several sessions.
    ///
    /// - Parameters:
    ///   - factory: The factory of the metrics. By default the one that is bootstrapped now, so bootstrap it before.
    ///   - maximumServers: The number of servers with values of their own. 100 by default.
    ///   - options: The metrics and dimensions beyond those of the table. None by default.
    public init(
        factory: any MetricsFactory = MetricsSystem.factory, maximumServers: Int = 100, options: Options = Options()
    ) {
        measurements = RequestMeasurements(factory: factory, maximumServers: maximumServers, options: options)
        tracker = AttemptTracker(measurements)
    }

    /// Measures the open connections of a session, `http.client.open_connections`, until the calling task is cancelled
    /// or the session was invalidated.
    ///
    /// ```swift
    /// await withTaskGroup { group in
    ///     group.addTask { await metrics.measureConnections(of: session) }
    ///     await run(session)
    ///     group.cancelAll()
    /// }
    /// ```
    ///
    /// Each server has two values, for the states `active` and `idle` (`http.connection.state`). They are 0 once the
    /// server has no connection any more, and at the end of this call. Calls for several sessions add up, so call it
    /// once for each session, which needs no observer for it. Nothing is measured on Apple's systems, because
    /// URLSession does not report its connections.
    ///
    /// The call holds the session. It returns at once after a cancellation, and within the interval after an
    /// invalidation. The metrics are recorded in the calling task.
    ///
    /// - Parameters:
    ///   - session: The session, also one without this observer.
    ///   - interval: The time between two measurements, at least 1 millisecond. 10 seconds by default.
    public func measureConnections(of session: Session, every interval: Duration = .seconds(10)) async {
        await measureConnections(of: session, every: interval, clock: ContinuousClock())
    }

    func measureConnections(of session: Session, every interval: Duration, clock: some Clock<Duration>) async {
        let interval = max(interval, .milliseconds(1))
        var counts = ConnectionCounts()
        var isOver = false
        while !isOver, !Task.isCancelled {
            // Read first, so that the last measurement is that of an invalidated session.
            isOver = await session.isInvalidated
            measurements.measure(await session.openConnections, since: &counts)
            if isOver { break }
            // Only a cancellation ends the sleep.
            do { try await clock.sleep(for: interval) } catch { break }
        }
        measurements.measure([], since: &counts)
    }

    /// The number of tasks that have not ended.
    package var count: Int { tracker.count }

    /// Begins to measure a request.
    public func willSend(_ request: Request, of task: AnySessionTask) { tracker.willSend(request, of: task) }

    /// Records the status.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) { tracker.didReceive(response, of: task) }

    /// Records the time of the newest bytes.
    public func didReceive(bytes: Data, of task: AnySessionTask) { tracker.didReceiveBytes(of: task) }

    /// Measures a request whose response is refused.
    public func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {
        tracker.didValidate(error: error, of: task)
    }

    /// Measures a request that failed.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) { tracker.didFail(error, of: task) }

    /// Measures a request that is sent again.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: false)
    }

    /// Measures a request that was redirected.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: true)
    }

    /// Records the number of bytes of the request's body.
    public func didSend(bodyBytes: Int64, of task: AnySessionTask) { tracker.didSend(bodyBytes: bodyBytes, of: task) }

    /// Records the measurements of a request, and measures one that another follows.
    public func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) { tracker.didCollect(metrics, of: task) }

    /// Measures the last request of a task.
    public func didObserve(_ event: TaskRegistry.Event) { tracker.observe(event) }
}
