#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation

// The life of a task that the system kept from an earlier run: it is under way → its status is validated → the session's
// destination is asked → the file is moved there. Its own closures ended with the process that gave them.

/// A task of the system's, and what is made of its response.
struct KeptTask: Sendable {
    private let task: any SystemTask
    private let transport: BackgroundTransport
    private let configuration: Session.Configuration
    private let request: Request

    /// nil for a task whose URL cannot be read.
    init?(_ task: any SystemTask, _ transport: BackgroundTransport, _ configuration: Session.Configuration) {
        guard let target = task.target else { return nil }
        self.task = task
        self.transport = transport
        self.configuration = configuration
        request = Request(task.method, target)
    }

    var download: Operation<URL> {
        { record throws(NetworkError) in
            let file = Lock<String?>(nil)
            let outcome = try await outcome(record) { path in file.withLock { $0 = path } }
            let path = file.withLock { $0 }
            do throws(NetworkError) {
                let head = try accepted(outcome)
                guard let path else { throw error(TransferFailure(.fileSystem, "the system gave no file"), outcome) }
                return try await place(path, head, record, outcome)
            } catch {
                // What failed is on its way to the caller; a file that is not there is no second failure.
                if let path { try? await record.context.files.remove(path) }
                throw error
            }
        }
    }

    var upload: Operation<Data> {
        { record throws(NetworkError) in
            let outcome = try await outcome(record) { _ in }
            _ = try accepted(outcome)
            return outcome.body
        }
    }

    private func outcome(
        _ record: TaskRecord, onFile: @escaping @Sendable (String) -> Void
    ) async throws(NetworkError) -> TransferOutcome {
        var order = TransferOrder(
            method: request.method, target: request.target, headers: [:],
            delivery: .collected(limit: configuration.maximumBodySize), timeouts: configuration.timeouts,
            headLimit: configuration.maximumHeadSize, decompressionLimit: configuration.maximumDecompressedSize,
            decompresses: configuration.decompresses)
        order.priority = record.priority
        order.announcesHead = true
        let transfer = Transfer(order, meter: record.meter) { head in record.receive(head) }
        transport.bind(transfer, to: BackgroundTransport.Adoption(task: task, onFile: onFile))
        guard record.begin(transfer) else {
            transport.unbind(transfer)
            task.cancel()
            throw NetworkError(TransferFailure.cancelled, request: request)
        }
        let outcome = await transfer.outcome()
        record.attemptEnded(outcome.metrics, head: outcome.head)
        return outcome
    }

    private func accepted(_ outcome: TransferOutcome) throws(NetworkError) -> ResponseHead {
        if let failure = outcome.failure { throw error(failure, outcome) }
        guard let head = outcome.head else { throw error(RequestPlan.headless, outcome) }
        guard configuration.validation.accepts(head.status) else {
            throw error(TransferFailure(.status, "status \(head.status) is not in 200–299"), outcome)
        }
        return head
    }

    /// Without a destination, or when it has no opinion, the file stays where it is, and is the caller's to delete.
    private func place(
        _ path: String, _ head: ResponseHead, _ record: TaskRecord, _ outcome: TransferOutcome
    ) async throws(NetworkError) -> URL {
        let temporary = URL(filePath: path)
        do {
            guard let chosen = try configuration.destination?(temporary, head) else { return temporary }
            let files = record.context.files
            let place = URL(filePath: try await files.move(path, nil, to: chosen.path, Download.Options()))
            record.context.ledger.publish { .fileMoved(AnySessionTask(record), to: place) }
            return place
        } catch {
            let reason = "the file cannot be put in its place: \(error)"
            let failure = self.error(TransferFailure(.fileSystem, reason, underlying: error), outcome)
            record.context.ledger.publish { .moveFailed(AnySessionTask(record), failure) }
            throw failure
        }
    }

    private func error(_ failure: TransferFailure, _ outcome: TransferOutcome) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome.head,
            body: Data(outcome.body.prefix(max(0, configuration.errorBodyLimit))), metrics: outcome.metrics)
    }
}
#endif
