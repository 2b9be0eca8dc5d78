public import Logging
public import ServiceLifecycle
public import Tern

/// Ends a session with the process: a service of swift-service-lifecycle that lets running requests finish.
///
/// ```swift
/// let session = Session()
/// let client = try Client(baseURL: "https://api.example.com", session: session)
/// let group = ServiceGroup(
///     services: [SessionService(session: session), server], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// A group shuts its services down in the reverse order, one after the other. Put the session before the services that
/// send requests over it: they then finish their own work while the session still takes requests.
///
/// When the graceful shutdown begins, the session takes no more tasks: a new request fails with an error of the kind
/// `.sessionInvalidated`. Running tasks of any kind, also streams and WebSockets, have ``drainLimit`` to end. Those
/// that remain are cancelled, and fail with an error of the kind `.cancelled`.
///
/// The session cannot be used afterwards. Give the service a session of its own: with `Session.shared`, it ends the
/// requests of the whole process.
public struct SessionService: Service, CustomStringConvertible {
    /// The session that the service ends.
    public let session: Session
    /// The time that running tasks have to end after the graceful shutdown has begun.
    public let drainLimit: Duration
    private let logger: Logger?
    private let clock: any Clock<Duration>

    /// Creates a service that ends a session.
    ///
    /// - Parameters:
    ///   - session: The session to end.
    ///   - drainLimit: The time that running tasks have to end after the graceful shutdown has begun. 20 seconds by
    ///     default, so that a container with the usual 30 seconds ends by itself. Zero cancels them at once.
    ///   - logger: Receives one message of the level `info` when the shutdown begins, and one of the level `warning` if
    ///     tasks are cancelled at the limit. nil, the default, logs nothing.
    ///   - clock: Measures the limit.
    public init(
        session: Session, drainLimit: Duration = .seconds(20), logger: Logger? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.session = session
        self.drainLimit = drainLimit
        self.logger = logger
        self.clock = clock
    }

    /// Runs until the graceful shutdown, and returns when the last task of the session has ended.
    ///
    /// If the calling task is cancelled, before or during the shutdown, all tasks of the session are cancelled and the
    /// method ends without waiting for them.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled.
    public func run() async throws {
        do {
            try await gracefulShutdown()
        } catch {
            await session.invalidateAndCancel()
            throw error
        }
        let count = await session.tasks.count
        logger?.info("the session ends", metadata: ["running-tasks": "\(count)"])
        await drain()
        try Task.checkCancellation()
    }

    /// Accepts no more tasks, and returns when the running ones have ended or were cancelled.
    private func drain() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await session.finishTasksAndInvalidate() }
            group.addTask {
                // Cancelled when the last task has ended before the limit: there is nothing to do then.
                do { try await clock.sleep(for: drainLimit) } catch { return }
                let count = await session.tasks.count
                if count > 0 {
                    logger?.warning("tasks are cancelled at the limit", metadata: ["cancelled-tasks": "\(count)"])
                }
            }
            // Either the last task has ended, or the limit is over, or the caller is cancelled.
            await group.next()
            await session.invalidateAndCancel()
            group.cancelAll()
        }
    }

    /// The words "session service" and the session's number.
    public var description: String { "session service of \(session.id)" }
}
