#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation

/// Connects one attempt's system task with its attempt. Its functions are called only on the delegate queue, one at a
/// time; the locks are for the compiler.
final class URLSessionAttempt: Sendable {
    let attempt: Attempt
    private let state: Lock<URLSessionAttemptState>
    private let task = Lock<(any SystemTask)?>(nil)
    /// Feeds or collects a body that arrives through a pipe.
    let body: (any URLSessionBody)?

    /// Called with the file of the body. Without it, the file is read and delivered in pieces.
    private let onFile: (@Sendable (String) -> Void)?
    private let file = Lock<FileHandle?>(nil)
    private static let fileReadSize = 256 << 10

    init(
        _ attempt: Attempt, abilities: URLSessionAbilities, body: (any URLSessionBody)? = nil,
        onFile: (@Sendable (String) -> Void)? = nil
    ) {
        self.attempt = attempt
        self.body = body
        self.onFile = onFile
        state = Lock(
            URLSessionAttemptState(attempt.request, abilities: abilities, now: MonotonicClock.nanoseconds()))
    }

    /// The identifier of the system's task; nil until the task is created.
    var taskIdentifier: Int? { task.withLock { $0?.taskIdentifier } }
    /// The socket of a request that asks for another protocol; nil for others.
    var socket: SystemSocket? { body as? SystemSocket }
    /// Whether the reader takes bytes.
    var takesBytes: Bool { state.withLock { $0.takesBytes } }
    var isEnded: Bool { state.withLock { $0.isEnded } }
    /// The time at which the next limit runs out if nothing moves until then; `.max` for never.
    var deadline: UInt64 { state.withLock { $0.isEnded ? .max : $0.clock.nextDeadline } }

    /// Sets the system's task, and resumes it unless the attempt is paused.
    func start(_ task: any SystemTask) {
        self.task.withLock { $0 = task }
        act { state, _ in state.start() }
    }

    func control(_ command: AttemptCommand) {
        switch command {
        case .pause: act { $0.pause($1) }
        case .resume:
            act { $0.resume($1) }
            socket?.receive()
        case .cancel: fail(.cancelled)
        case .demand:
            act { $0.readerTookAll($1) }
            socket?.receive()
        case .bodyReady: body?.pipeIsReady()
        case .usePipe: break
        case .prioritize(let priority): task.withLock { $0 }?.priority = URLSessionRequest.priority(priority)
        }
    }

    func fail(_ failure: FailureCause) { act { $0.fail(failure, $1) } }
    func reportPins(_ text: String) { state.withLock { $0.pinReport = text } }
    func checkLimits() { act { $0.checkLimits($1) } }

    // MARK: Events of the system's task

    func handle(_ event: SystemEvent) {
        let request = attempt.request
        switch event {
        case .response(let response):
            let received = URLSessionResponse(response, to: request)
            attempt.expectBody(of: received.head)
            act { $0.receive(received, $1) }
        case .data(let data):
            act { $0.receive(data, $1) }
        case .sent(let total):
            act { state, now in
                state.recordSent(total, now)
                return []
            }
        case .wrote(let total, let whole):
            act { state, now in
                state.wrote(total, of: whole, at: now)
                return []
            }
        case .file(let path):
            state.withLock { $0.bodyIsInFile() }
            if let onFile { onFile(path) } else { open(path) }
        case .measured(let metrics):
            state.withLock { $0.receive(metrics) }
        case .failed(let failure):
            fail(failure)
        case .completed(let error, let response):
            act { $0.complete(error, response: response.map { URLSessionResponse($0, to: request) }, at: $1) }
        }
    }

    /// Opens the file and removes its name, so that nothing can be left behind.
    private func open(_ path: String) {
        do {
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            try FileManager.default.removeItem(atPath: path)
            file.withLock { $0 = handle }
            state.withLock { $0.fileIsReady() }
        } catch {
            let reason = "the downloaded file \(path) cannot be read: \(error)"
            fail(FailureCause(.fileSystem, reason, underlying: error))
        }
    }

    private func readFile() {
        do {
            let data = try file.withLock { try $0?.read(upToCount: Self.fileReadSize) } ?? Data()
            state.withLock { $0.receiveFromFile(data) }
        } catch {
            fail(FailureCause(.fileSystem, "the downloaded file cannot be read: \(error)", underlying: error))
        }
    }

    // MARK: Actions

    private func act(_ event: (inout URLSessionAttemptState, UInt64) -> [URLSessionAttemptState.Action]) {
        let now = MonotonicClock.nanoseconds()
        perform(state.withLock { event(&$0, now) })
        while true {
            switch state.withLock({ $0.next(now) }) {
            case .nothing:
                if !isEnded { storeProgress() }
                return
            case .actions(let actions):
                perform(actions)
            case .readFile:
                readFile()
            case .chunk(let chunk):
                storeProgress()
                let (wake, isFull) = unsafe attempt.receive(chunk)
                unsafe wake?.resume()
                if isFull { perform(state.withLock { $0.readerIsFull(now) }) }
            }
        }
    }

    private func perform(_ actions: [URLSessionAttemptState.Action]) {
        for action in actions {
            switch action {
            case .resumeTask: task.withLock { $0 }?.resume()
            case .suspendTask: task.withLock { $0 }?.suspend()
            case .cancelTask: task.withLock { $0 }?.cancel()
            case .announce(let head):
                let wake = unsafe attempt.receive(head)
                unsafe wake?.resume()
            case .finish(let outcome):
                storeProgress()
                body?.close()
                file.withLock { $0 = nil }
                let wake = unsafe attempt.complete(outcome)
                unsafe wake?.resume()
            }
        }
    }

    private func storeProgress() {
        let (sent, sentTotal, received, expected) = state.withLock { $0.progress }
        attempt.publishProgress(sent: sent, of: sentTotal, received: received, of: expected)
    }
}
#endif
