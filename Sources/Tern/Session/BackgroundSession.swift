#if TERN_URLSESSION || !os(Linux)
import Foundation
import TernConcurrency
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
#endif

extension Session {
    /// Creates a session whose transfers the system continues while the app is suspended and after it has ended. **On
    /// Apple's systems only.**
    ///
    /// The tasks that the system kept from an earlier run are restored: they are in `tasks`, with their label and
    /// priority, when `prepare` is called, and they report no event before that. Their closures ended with the process
    /// that made them, so `configuration.destination` decides where their files go. Without a destination, each file
    /// stays in the temporary folder, and the event `.completed` names it.
    ///
    /// ```swift
    /// let session = try await Session.background("com.example.transfers", configuration: configuration) { session in
    ///     follow(session.tasks.events)
    /// }
    /// ```
    ///
    /// Such a session delivers a response when it is complete: the system writes bodies to files, follows redirects
    /// itself, and has its own time limits. Only one session of an identifier may exist at a time.
    ///
    /// - Parameters:
    ///   - identifier: The name under which the system keeps the tasks. It is the same in every run.
    ///   - prepare: Called once, with the session, before its first event.
    ///   - eventsDelivered: Called when the system has reported everything that happened while the app was not running.
    ///     Call the completion handler of `application(_:handleEventsForBackgroundURLSession:completionHandler:)` here.
    /// - Throws: `NetworkError` of kind `.unsupported` where the system does not continue transfers.
    public static func background(
        _ identifier: String, configuration: Configuration = Configuration(),
        prepare: (Session) -> Void = { _ in }, eventsDelivered: (@Sendable () -> Void)? = nil
    ) async throws(NetworkError) -> Session {
        #if os(Linux)
        throw NetworkError(.unsupported, reason: "this system does not continue transfers without their process")
        #else
        let mode = URLSessionHub.Mode(identifier: identifier, usesFiles: true, eventsDelivered: eventsDelivered)
        let hub = URLSessionHub(URLSessionSettings(configuration), mode: mode)
        let system = URLSessionTasks(session: hub.openSession())
        return await background(configuration: configuration, hub: hub, restoring: system, prepare: prepare)
        #endif
    }
}

#if TERN_URLSESSION || !os(Linux)
/// The tasks that the system keeps for a background session. A protocol, so that tests need no such system.
protocol RestorableTasks: Sendable {
    /// Returns the tasks of this run and earlier ones that have not ended.
    func all() async -> [any SystemTask]
}

/// The tasks of a `URLSession`.
struct URLSessionTasks: RestorableTasks {
    let session: URLSession

    func all() async -> [any SystemTask] {
        await withCheckedContinuation { continuation in
            session.getAllTasks { continuation.resume(returning: $0) }
        }
    }
}

extension Session {
    /// Creates a background session and restores the tasks that the system keeps. They are in the registry when
    /// `prepare` is called, and report nothing before that.
    static func background(
        configuration: Configuration, hub: URLSessionHub, restoring system: any RestorableTasks,
        files: FileStore = .shared, prepare: (Session) -> Void
    ) async -> Session {
        let transport = BackgroundTransport(hub)
        let session = Session(configuration: configuration, transport: transport, files: files)
        var tasks = await system.all()
        // `getAllTasks` leaves out tasks that have ended; the hub has parked their events.
        let known = Set(tasks.map(\.taskIdentifier))
        tasks += hub.parkedTasks.filter { !known.contains($0.taskIdentifier) }
        // The handles hold the tasks: the registry does so only after they are resumed.
        let handles = tasks.sorted { $0.taskIdentifier < $1.taskIdentifier }.compactMap { task in
            session.tasks.restore(task, over: transport)
        }
        prepare(session)
        for handle in handles { handle.resume() }
        return session
    }
}

extension TaskRegistry {
    /// Adds a task that the system kept, suspended until its events are wanted. Cancels a task whose URL cannot be
    /// read, because nothing could use its result.
    fileprivate nonisolated func restore(_ task: any SystemTask, over transport: BackgroundTransport) -> AnySessionTask?
    {
        guard let target = task.target else {
            task.cancel()
            return nil
        }
        let request = PreparedRequest(restoring: Request(task.method, target), registry: self)
        let execution = RestoredTaskExecution(task: task, request: request, transport: transport)
        let handle =
            task.isDownload
            ? restore { record throws(NetworkError) in try await execution.file(for: record) }
            : restore { record throws(NetworkError) in try await execution.body(for: record) }
        handle?.label = task.taskDescription
        handle?.priority = URLSessionRequest.priority(task.priority)
        return handle
    }

    /// Creates a task without a request of its own: an earlier process sent it.
    private nonisolated func restore<Value: Sendable>(_ operation: @escaping TaskOperation<Value>) -> AnySessionTask? {
        let result = TaskValue<Value>()
        let record = TaskRecord(
            id: nextID(), registry: self, request: nil, valueType: Value.self, startsImmediately: false)
        record.assign(operation: operation, to: result)
        guard live.join(record) else {
            record.fail()
            return nil
        }
        return AnySessionTask(record)
    }
}

/// Executes a task that the system kept from an earlier run: wait for the end → validate the status → ask for the
/// destination → move the file there.
private struct RestoredTaskExecution: Sendable {
    let task: any SystemTask
    let request: PreparedRequest
    let transport: BackgroundTransport

    /// Waits for a download and returns the URL of its file. Without a destination, the file stays in the temporary
    /// folder and belongs to the caller.
    func file(for record: TaskRecord) async throws(NetworkError) -> URL {
        let received = Lock<String?>(nil)
        let outcome = try await outcome(for: record) { path in received.withLock { $0 = path } }
        let path = received.withLock { $0 }
        do throws(NetworkError) {
            let head = try acceptedHead(of: outcome)
            guard let path else {
                throw request.error(FailureCause(.fileSystem, "the system returned no file"), outcome)
            }
            let (temporary, files) = (URL(filePath: path), record.registry.files)
            let download = DownloadExecution(
                request: request, record: record, destination: .ask(nil), options: Download.Options())
            let place = try await download.move(temporary, head: head) { destination in
                try await files.move(path, lock: nil, to: destination, options: download.options)
            }
            return place ?? temporary
        } catch {
            // `try?`: the failure is on its way to the caller, and a missing file is not a second failure.
            if let path { try? await record.registry.files.remove(path) }
            throw error
        }
    }

    /// Waits for an upload and returns the body of its response.
    func body(for record: TaskRecord) async throws(NetworkError) -> Data {
        let outcome = try await outcome(for: record) { _ in }
        _ = try acceptedHead(of: outcome)
        return outcome.body
    }

    private func outcome(
        for record: TaskRecord, onFile: @escaping @Sendable (String) -> Void
    ) async throws(NetworkError) -> AttemptOutcome {
        let wire = request.makeWireRequest(request.makeMessage(), priority: record.priority, timeouts: request.timeouts)
        let attempt = Attempt(wire, meter: record.meter) { head in record.receive(head) }
        transport.bind(attempt, to: BackgroundTransport.Adoption(task: task, onFile: onFile))
        guard record.begin(attempt, sending: nil) else {
            transport.unbind(attempt)
            task.cancel()
            throw NetworkError(FailureCause.cancelled, request: request.request)
        }
        let outcome = await attempt.outcome()
        record.attemptEnded(outcome, isFinal: true)
        return outcome
    }

    private func acceptedHead(of outcome: AttemptOutcome) throws(NetworkError) -> ResponseHead {
        if let failure = outcome.failure { throw request.error(failure, outcome) }
        guard let head = outcome.head else { throw request.error(.noHead, outcome) }
        guard request.accepts(head.status) else {
            throw request.error(FailureCause(.status, "status \(head.status) is not accepted"), outcome)
        }
        return head
    }
}
#endif
