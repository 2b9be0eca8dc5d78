#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The tasks that the system kept for a background session: a seam, for tests without a system that does.
protocol KeptTasks: Sendable {
    /// Those that have not ended, of this run and earlier ones.
    func all() async -> [any SystemTask]
}

/// The system's own.
struct SystemKeptTasks: KeptTasks {
    let session: URLSession

    func all() async -> [any SystemTask] {
        await withCheckedContinuation { continuation in
            session.getAllTasks { continuation.resume(returning: $0) }
        }
    }
}

extension Session {
    /// A background session over what the system keeps. The kept tasks stand in the registry when `prepare` is called,
    /// and nothing is told of them before that.
    static func background(
        _ configuration: Configuration, _ hub: URLSessionHub, keeping kept: any KeptTasks, files: FileStore = .shared,
        prepare: (Session) -> Void
    ) async -> Session {
        let transport = BackgroundTransport(hub)
        let session = Session(configuration: configuration, transport: transport, files: files)
        var tasks = await kept.all()
        // Some may have ended before they could be asked for: they were told of, and nothing else knows them.
        let known = Set(tasks.map(\.taskIdentifier))
        tasks += hub.parkedTasks.filter { !known.contains($0.taskIdentifier) }
        // Until they are resumed the registry does not hold them: the handles do.
        let handles = tasks.sorted { $0.taskIdentifier < $1.taskIdentifier }.compactMap { task in
            session.context.adopt(task, transport)
        }
        prepare(session)
        for handle in handles { handle.resume() }
        return session
    }
}

extension SessionContext {
    /// A task that the system kept, as one of this session: suspended, until its events are wanted.
    fileprivate func adopt(_ task: any SystemTask, _ transport: BackgroundTransport) -> AnySessionTask? {
        guard let kept = KeptTask(task, transport, configuration) else {
            // Nobody could ever say what it is for.
            task.cancel()
            return nil
        }
        guard let handle = task.isDownload ? adopt(kept.download) : adopt(kept.upload) else { return nil }
        handle.label = task.taskDescription
        handle.priority = URLSessionRequest.priority(task.priority)
        return handle
    }

    /// Like `makeTask`, of a task that has no plan: its request was sent by an earlier process.
    private func adopt<Value: Sendable>(_ operation: @escaping Operation<Value>) -> AnySessionTask? {
        let record = TaskRecord(id: ledger.nextID(), context: self, plan: nil, valueType: Value.self)
        let result = TaskValue<Value>()
        record.assign(result) { record in
            let outcome = await record.run(operation)
            record.end(outcome.error, file: outcome.file) { result.deliver(outcome.result) }
        }
        guard ledger.addFresh(record) else { return nil }
        return AnySessionTask(record)
    }
}
#endif
