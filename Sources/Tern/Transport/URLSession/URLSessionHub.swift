#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The attempts of one transport, by the system's tasks. All of it happens on one serial queue, the delegate's: commands
/// take effect in call order, and a command never runs into a lock of the one who gave it.
final class URLSessionHub: NSObject, Sendable {
    private struct Shared {
        var byTransfer: [UInt64: URLSessionAttempt] = [:]
        var byTask: [Int: URLSessionAttempt] = [:]
        var session: URLSession?
        /// What is to be removed when a task has ended.
        var uploadFiles: [Int: URL] = [:]
        var isClosing = false
        /// What was told of tasks that nobody has taken over yet.
        var parked: [Int: (task: any SystemTask, events: [SystemEvent])] = [:]
        /// When the limits are looked at next.
        var nextCheck = UInt64.max

        mutating func takeSessionToInvalidate() -> URLSession? {
            guard isClosing, byTransfer.isEmpty else { return nil }
            defer { session = nil }
            return session
        }
    }

    let queue: OperationQueue
    let settings: URLSessionSettings
    let mode: Mode
    private let abilities: URLSessionAbilities
    private let shared = Lock(Shared())

    /// How the system is to work.
    struct Mode: Sendable {
        /// Of a background session, which the system carries on without the process.
        var identifier: String?
        /// Bodies of responses go through files of the system, and those of requests too.
        var usesFiles = false
        /// Called when all that the system kept for the process has been told.
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

    func start(_ transfer: Transfer) {
        var body: (any URLSessionBody)?
        if case .pipe(let pipe, let length) = transfer.order.source { body = makeBody(pipe, length) }
        let attempt = URLSessionAttempt(transfer, abilities: abilities, body: body)
        shared.withLock { $0.byTransfer[transfer.id] = attempt }
        watch(attempt)
        if let body {
            body.begin { [self] upload in post { hub in hub.send(upload, attempt) } }
        } else if case .bytes(let data) = transfer.order.source {
            send(.whole(data), attempt)
        } else {
            send(.none, attempt)
        }
    }

    private func makeBody(_ pipe: UploadPipe, _ length: Int64?) -> any URLSessionBody {
        #if canImport(Darwin)
        if abilities.streamsBodies, !mode.usesFiles { return StreamedUpload(pipe) }
        #endif
        return GatheredUpload(pipe, length: length)
    }

    private func send(_ upload: URLSessionUpload, _ attempt: URLSessionAttempt) {
        if case .failed(let failure) = upload {
            attempt.fail(failure)
            return settle(attempt)
        }
        guard !attempt.isEnded, let request = URLSessionRequest.make(attempt.transfer.order) else {
            attempt.fail(TransferFailure(.invalidRequest, "URLSession cannot read the URL"))
            return settle(attempt)
        }
        let task: URLSessionTask
        do {
            task = try makeTask(request, upload)
        } catch {
            let reason = "the body cannot be put into a file: \(error)"
            attempt.fail(TransferFailure(.requestBody, reason, underlying: error))
            return settle(attempt)
        }
        task.priority = URLSessionRequest.priority(attempt.transfer.order.priority)
        shared.withLock { $0.byTask[task.taskIdentifier] = attempt }
        attempt.start(task)
    }

    private func makeTask(_ request: URLRequest, _ upload: URLSessionUpload) throws -> URLSessionTask {
        let session = openSession()
        switch upload {
        case .whole(let data) where mode.usesFiles:
            let file = URL(filePath: Self.temporaryPath)
            try PrivateFile.write(data, to: file.path)
            let task = session.uploadTask(with: request, fromFile: file)
            shared.withLock { $0.uploadFiles[task.taskIdentifier] = file }
            return task
        case .whole(let data): return session.uploadTask(with: request, from: data)
        case .stream: return session.uploadTask(withStreamedRequest: request)
        case .none where mode.usesFiles: return session.downloadTask(with: request)
        case .none, .failed: return session.dataTask(with: request)
        }
    }

    static var temporaryPath: String { FilePath.join(TemporaryFolder.path, "tern-\(UUID().uuidString).tern") }

    /// The system holds its delegate until the session is invalidated, which happens after the last attempt.
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

    /// The system's task has said its last word. The attempt may live on without it: paused, with bytes to be delivered.
    func ended(_ attempt: URLSessionAttempt, _ task: any SystemTask) {
        let file = shared.withLock { shared in
            shared.byTask[task.taskIdentifier] = nil
            return shared.uploadFiles.removeValue(forKey: task.taskIdentifier)
        }
        // A file in the temporary folder, which the system empties too.
        if let file { try? FileManager.default.removeItem(at: file) }
        settle(attempt)
    }

    /// Forgets an attempt once it has ended, and the system's task too.
    private func settle(_ attempt: URLSessionAttempt) {
        guard attempt.isEnded else { return watch(attempt) }
        let session = shared.withLock { shared -> URLSession? in
            if let task = attempt.taskIdentifier, shared.byTask[task] != nil { return nil }
            shared.byTransfer[attempt.transfer.id] = nil
            return shared.takeSessionToInvalidate()
        }
        session?.finishTasksAndInvalidate()
    }

    /// The transport is gone: no more attempts come.
    func close() {
        let session = shared.withLock { shared -> URLSession? in
            shared.isClosing = true
            return shared.takeSessionToInvalidate()
        }
        session?.finishTasksAndInvalidate()
    }

    func control(_ transfer: UInt64, _ command: TransferCommand) {
        guard let attempt = shared.withLock({ $0.byTransfer[transfer] }) else { return }
        attempt.control(command)
        settle(attempt)
    }

    /// The attempt that a task is of; nil when it is not known, or has ended.
    func attempt(_ task: any SystemTask) -> URLSessionAttempt? {
        shared.withLock { $0.byTask[task.taskIdentifier] }
    }

    // MARK: Events

    func handle(_ event: SystemEvent, _ task: any SystemTask) {
        guard let attempt = attempt(task) else { return park(event, task) }
        attempt.handle(event)
        if case .completed = event { ended(attempt, task) } else { settle(attempt) }
    }

    /// A background session tells of tasks that it kept before anybody can have asked for them.
    private func park(_ event: SystemEvent, _ task: any SystemTask) {
        guard mode.usesFiles else { return }
        shared.withLock { $0.parked[task.taskIdentifier, default: (task, [])].events.append(event) }
    }

    /// The tasks that were heard of and that nobody has taken over.
    var parkedTasks: [any SystemTask] { shared.withLock { $0.parked.values.map(\.task) } }

    /// Takes a kept task over: what was told of it, and what comes, goes to an attempt of its own.
    func adopt(_ task: any SystemTask, _ transfer: Transfer, onFile: @escaping @Sendable (String) -> Void) {
        let attempt = URLSessionAttempt(transfer, abilities: abilities, onFile: onFile)
        let parked = shared.withLock { shared in
            shared.byTransfer[transfer.id] = attempt
            shared.byTask[task.taskIdentifier] = attempt
            return shared.parked.removeValue(forKey: task.taskIdentifier)?.events ?? []
        }
        attempt.start(task)
        if task.countOfBytesReceived > 0 {
            let expected = task.countOfBytesExpectedToReceive
            attempt.handle(.wrote(task.countOfBytesReceived, of: expected > 0 ? expected : nil))
        }
        for event in parked { handle(event, task) }
    }

    // MARK: Time limits

    /// Activity only moves a limit away: nothing is scheduled anew until the earliest one known has come.
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
            // An earlier one was scheduled meanwhile, and has looked.
            guard shared.nextCheck == deadline else { return [] }
            shared.nextCheck = .max
            return Array(shared.byTransfer.values)
        }
        for attempt in attempts {
            attempt.checkLimits()
            settle(attempt)
        }
    }
}
#endif
