#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Maps the system's tasks to the attempts of one transport. Everything runs on one serial queue, that of the delegate,
/// so commands take effect in call order, and never meet a lock of their caller.
final class URLSessionHub: NSObject, Sendable {
    private struct Shared {
        var byAttempt: [UInt64: URLSessionAttempt] = [:]
        var byTask: [Int: URLSessionAttempt] = [:]
        var session: URLSession?
        /// The files to remove when their tasks have ended.
        var uploadFiles: [Int: URL] = [:]
        var isClosing = false
        /// The events of tasks that are not restored yet.
        var parked: [Int: (task: any SystemTask, events: [SystemEvent])] = [:]
        /// The time of the next check of the limits.
        var nextCheck = UInt64.max

        mutating func takeSessionToInvalidate() -> URLSession? {
            guard isClosing, byAttempt.isEmpty else { return nil }
            defer { session = nil }
            return session
        }
    }

    let queue: OperationQueue
    let settings: URLSessionSettings
    let mode: Mode
    private let abilities: URLSessionAbilities
    private let shared = Lock(Shared())

    /// The mode of the system's session.
    struct Mode: Sendable {
        /// The identifier of a background session, which the system continues without the process.
        var identifier: String?
        /// Whether bodies of requests and responses go through files of the system.
        var usesFiles = false
        /// Called when the system has reported everything that it kept for the process.
        var eventsDelivered: (@Sendable () -> Void)?
    }

    init(_ settings: URLSessionSettings, mode: Mode = Mode(), abilities: URLSessionAbilities = .platform) {
        self.settings = settings
        self.mode = mode
        var abilities = abilities
        if mode.identifier != nil { abilities.limitsTime = false }
        self.abilities = abilities
        queue = OperationQueue()
        queue.name = "tern.urlsession"
        queue.maxConcurrentOperationCount = 1
        super.init()
    }

    func post(_ operation: @escaping @Sendable (URLSessionHub) -> Void) {
        queue.addOperation { operation(self) }
    }

    // MARK: Attempts

    func start(_ attempt: Attempt) {
        var body: (any URLSessionBody)?
        if case .pipe(let pipe, let length) = attempt.request.source {
            body = attempt.request.upgrade == nil ? makeBody(pipe, length) : makeSocket(pipe, attempt)
        }
        let running = URLSessionAttempt(attempt, abilities: abilities, body: body)
        shared.withLock { $0.byAttempt[attempt.id] = running }
        watch(running)
        if let body {
            body.begin { [self] upload in post { hub in hub.send(upload, running) } }
        } else if case .bytes(let data) = attempt.request.source {
            send(.whole(data), running)
        } else {
            send(.none, running)
        }
    }

    private func makeBody(_ pipe: UploadPipe, _ length: Int64?) -> any URLSessionBody {
        #if canImport(Darwin)
        if abilities.streamsBodies, !mode.usesFiles { return StreamedUpload(pipe) }
        #endif
        return GatheredUpload(pipe, length: length)
    }

    private func makeSocket(_ pipe: UploadPipe, _ attempt: Attempt) -> SystemSocket {
        let id = attempt.id
        return SystemSocket(pipe, key: attempt.request.headers["Sec-WebSocket-Key"] ?? "") { [queue] work in
            queue.addOperation(work)
        } takesBytes: { [weak self] in
            self?.shared.withLock { $0.byAttempt[id] }?.takesBytes ?? false
        } report: { [weak self] event in
            self?.handle(event, ofSocket: id)
        }
    }

    private func handle(_ event: SystemEvent, ofSocket id: UInt64) {
        guard let attempt = shared.withLock({ $0.byAttempt[id] }) else { return }
        attempt.handle(event)
        settle(attempt)
    }

    private func send(_ upload: URLSessionUpload, _ attempt: URLSessionAttempt) {
        if case .failed(let failure) = upload {
            attempt.fail(failure)
            return settle(attempt)
        }
        let own = attempt.attempt.request
        let assumesHTTP3 = own.http3.map { $0 == .always } ?? settings.assumesHTTP3
        let request = URLSessionRequest.make(own, assumesHTTP3: assumesHTTP3)
        guard !attempt.isEnded, let request else {
            attempt.fail(FailureCause(.invalidRequest, "URLSession cannot read the URL"))
            return settle(attempt)
        }
        let task: URLSessionTask
        do {
            task = try makeTask(request, upload)
        } catch {
            let reason = "the body cannot be put into a file: \(error)"
            attempt.fail(FailureCause(.requestBody, reason, underlying: error))
            return settle(attempt)
        }
        task.priority = URLSessionRequest.priority(attempt.attempt.request.priority)
        shared.withLock { $0.byTask[task.taskIdentifier] = attempt }
        if let socket = attempt.socket, let task = task as? URLSessionWebSocketTask {
            task.maximumMessageSize = attempt.attempt.request.upgrade?.messageLimit ?? .max
            socket.attach(task)
        }
        attempt.start(task)
    }

    private func makeTask(_ request: URLRequest, _ upload: URLSessionUpload) throws -> URLSessionTask {
        let session = openSession()
        switch upload {
        case .whole(let data) where mode.usesFiles:
            let file = URL(filePath: Self.temporaryPath)
            try OwnerOnlyFile.write(data, to: file.path)
            let task = session.uploadTask(with: request, fromFile: file)
            shared.withLock { $0.uploadFiles[task.taskIdentifier] = file }
            return task
        case .whole(let data): return session.uploadTask(with: request, from: data)
        case .socket: return session.webSocketTask(with: request)
        case .stream: return session.uploadTask(withStreamedRequest: request)
        case .none where mode.usesFiles: return session.downloadTask(with: request)
        case .none, .failed: return session.dataTask(with: request)
        }
    }

    static var temporaryPath: String { FilePath.join(TemporaryFolder.path, "tern-\(UUID().uuidString).tern") }

    /// Returns the system's session. It holds its delegate until it is invalidated, after the last attempt.
    func openSession() -> URLSession {
        if let session = shared.withLock({ $0.session }) { return session }
        var configuration = URLSessionConfiguration.ephemeral
        #if canImport(Darwin)
        if let identifier = mode.identifier { configuration = .background(withIdentifier: identifier) }
        #endif
        settings.apply(to: configuration)
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
        shared.withLock { $0.session = session }
        return session
    }

    /// Called when the system's task has ended. The attempt can outlive it, if it is paused and has bytes to deliver.
    func ended(_ attempt: URLSessionAttempt, _ task: any SystemTask) {
        let file = shared.withLock { shared in
            shared.byTask[task.taskIdentifier] = nil
            return shared.uploadFiles.removeValue(forKey: task.taskIdentifier)
        }
        // `try?`: the system empties the temporary folder, too.
        if let file { try? FileManager.default.removeItem(at: file) }
        settle(attempt)
    }

    /// Removes an attempt once it and the system's task have ended.
    private func settle(_ attempt: URLSessionAttempt) {
        guard attempt.isEnded else { return watch(attempt) }
        let session = shared.withLock { shared -> URLSession? in
            if let task = attempt.taskIdentifier, shared.byTask[task] != nil { return nil }
            shared.byAttempt[attempt.attempt.id] = nil
            return shared.takeSessionToInvalidate()
        }
        session?.finishTasksAndInvalidate()
    }

    /// Called when the transport is released and no more attempts follow.
    func close() {
        let session = shared.withLock { shared -> URLSession? in
            shared.isClosing = true
            return shared.takeSessionToInvalidate()
        }
        session?.finishTasksAndInvalidate()
    }

    func control(_ id: UInt64, _ command: AttemptCommand) {
        guard let attempt = shared.withLock({ $0.byAttempt[id] }) else { return }
        attempt.control(command)
        settle(attempt)
    }

    /// Returns the attempt of a system task; nil if it is not known or has ended.
    func attempt(_ task: any SystemTask) -> URLSessionAttempt? {
        shared.withLock { $0.byTask[task.taskIdentifier] }
    }

    // MARK: Events

    func handle(_ event: SystemEvent, _ task: any SystemTask) {
        guard let attempt = attempt(task) else { return park(event, task) }
        attempt.handle(event)
        if case .completed = event { ended(attempt, task) } else { settle(attempt) }
    }

    /// Stores the events of a background session's tasks until the tasks are restored.
    private func park(_ event: SystemEvent, _ task: any SystemTask) {
        guard mode.usesFiles else { return }
        shared.withLock { $0.parked[task.taskIdentifier, default: (task, [])].events.append(event) }
    }

    /// The tasks that have reported events and are not restored yet.
    var parkedTasks: [any SystemTask] { shared.withLock { $0.parked.values.map(\.task) } }

    /// Restores a task: its stored and further events go to an attempt of its own.
    func adopt(_ task: any SystemTask, for attempt: Attempt, onFile: @escaping @Sendable (String) -> Void) {
        let running = URLSessionAttempt(attempt, abilities: abilities, onFile: onFile)
        let parked = shared.withLock { shared in
            shared.byAttempt[attempt.id] = running
            shared.byTask[task.taskIdentifier] = running
            return shared.parked.removeValue(forKey: task.taskIdentifier)?.events ?? []
        }
        running.start(task)
        if task.countOfBytesReceived > 0 {
            let expected = task.countOfBytesExpectedToReceive
            running.handle(.wrote(task.countOfBytesReceived, of: expected > 0 ? expected : nil))
        }
        for event in parked { handle(event, task) }
    }

    // MARK: Time limits

    /// Schedules a check of the limits. Activity only moves a limit further away, so the next check is scheduled at the
    /// earliest known one.
    private func watch(_ attempt: URLSessionAttempt) {
        let deadline = attempt.deadline
        let isEarlier = shared.withLock { shared in
            guard deadline < shared.nextCheck else { return false }
            shared.nextCheck = deadline
            return true
        }
        guard isEarlier else { return }
        let now = MonotonicClock.nanoseconds()
        let wait = Int(clamping: deadline - min(deadline, now))
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(wait)) { [weak self] in
            self?.post { $0.checkLimits(deadline) }
        }
    }

    private func checkLimits(_ deadline: UInt64) {
        let attempts = shared.withLock { shared -> [URLSessionAttempt] in
            // An earlier check was scheduled meanwhile and has run.
            guard shared.nextCheck == deadline else { return [] }
            shared.nextCheck = .max
            return Array(shared.byAttempt.values)
        }
        for attempt in attempts {
            attempt.checkLimits()
            settle(attempt)
        }
    }
}
#endif
