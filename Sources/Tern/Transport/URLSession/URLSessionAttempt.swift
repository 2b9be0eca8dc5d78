#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation

/// One attempt, between the system's task and the transfer that it fills. Its methods are called on the delegate queue
/// alone, one at a time; the lock is for the compiler.
final class URLSessionAttempt: Sendable {
    let transfer: Transfer
    private let state: Lock<URLSessionAttemptState>
    private let task = Lock<(any SystemTask)?>(nil)
    /// Feeds, or collects, the body that comes through a pipe.
    let body: (any URLSessionBody)?

    /// Takes the file with the body; without it the file is read, and delivered in pieces.
    private let onFile: (@Sendable (String) -> Void)?
    private let file = Lock<FileHandle?>(nil)
    private static let fileReadSize = 256 << 10

    init(
        _ transfer: Transfer, abilities: URLSessionAbilities, body: (any URLSessionBody)? = nil,
        onFile: (@Sendable (String) -> Void)? = nil
    ) {
        self.transfer = transfer
        self.body = body
        self.onFile = onFile
        state = Lock(
            URLSessionAttemptState(transfer.order, abilities: abilities, now: MonotonicClock.nanoseconds()))
    }

    /// nil until the system's task is made.
    var taskIdentifier: Int? { task.withLock { $0?.taskIdentifier } }
    var isEnded: Bool { state.withLock { $0.isEnded } }
    /// When the next time limit runs out, if nothing moves until then; `.max` for never.
    var deadline: UInt64 { state.withLock { $0.isEnded ? .max : $0.clock.nextDeadline } }

    /// The system's task is made, and is resumed unless the attempt is paused.
    func start(_ task: any SystemTask) {
        self.task.withLock { $0 = task }
        act { state, _ in state.start() }
    }

    func control(_ command: TransferCommand) {
        switch command {
        case .pause: act { $0.pause($1) }
        case .resume: act { $0.resume($1) }
        case .cancel: fail(.cancelled)
        case .demand: act { $0.readerTookAll($1) }
        case .bodyReady: body?.pipeIsReady()
        case .prioritize(let priority): task.withLock { $0 }?.priority = URLSessionRequest.priority(priority)
        }
    }

    func fail(_ failure: TransferFailure) { act { $0.fail(failure, $1) } }
    func reportPins(_ text: String) { state.withLock { $0.pinReport = text } }
    func checkLimits() { act { $0.checkLimits($1) } }

    // MARK: What the system's task tells

    func handle(_ event: SystemEvent) {
        let order = transfer.order
        switch event {
        case .response(let response):
            act { $0.receive(URLSessionResponse(response, order.target, order.method), $1) }
        case .data(let data):
            act { $0.receive(data, $1) }
        case .sent(let total):
            act { state, now in
                state.sent(total, now)
                return []
            }
        case .wrote(let total, let whole):
            act { state, now in
                state.wrote(total, of: whole, now)
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
            act { $0.complete(error, response.map { URLSessionResponse($0, order.target, order.method) }, $1) }
        }
    }

    /// The file has no name from here on, so that nothing can be left behind.
    private func open(_ path: String) {
        do {
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            try FileManager.default.removeItem(atPath: path)
            file.withLock { $0 = handle }
            state.withLock { $0.fileIsReady() }
        } catch {
            fail(TransferFailure(.fileSystem, "the downloaded file cannot be read: \(error)", underlying: error))
        }
    }

    private func readFile() {
        do {
            let data = try file.withLock { try $0?.read(upToCount: Self.fileReadSize) } ?? Data()
            state.withLock { $0.receiveFromFile(data) }
        } catch {
            fail(TransferFailure(.fileSystem, "the downloaded file cannot be read: \(error)", underlying: error))
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
                let (wake, isFull) = unsafe transfer.receive(chunk)
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
                let wake = unsafe transfer.receive(head)
                unsafe wake?.resume()
            case .finish(let outcome):
                storeProgress()
                body?.close()
                file.withLock { $0 = nil }
                let wake = unsafe transfer.complete(outcome)
                unsafe wake?.resume()
            }
        }
    }

    private func storeProgress() {
        let (sent, sentTotal, received, expected) = state.withLock { $0.progress }
        transfer.meter.store(sent: sent, of: sentTotal, received: received, of: expected)
    }
}
#endif
