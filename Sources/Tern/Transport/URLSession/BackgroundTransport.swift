#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation

/// The transport of a background session: what it starts, the system carries on without the process.
///
/// Bodies of responses go through files of the system, and are delivered when they are whole; bodies of requests are put
/// into files before they are sent. Redirects are followed by the system, which asks nobody, and the time limits are its
/// own.
final class BackgroundTransport: Transport {
    /// A kept task that waits for its transfer.
    struct Adoption: Sendable {
        let task: any SystemTask
        let onFile: @Sendable (String) -> Void
    }

    private let hub: URLSessionHub
    private let adoptions = Lock<[UInt64: Adoption]>([:])

    init(_ hub: URLSessionHub) { self.hub = hub }

    deinit {
        hub.post { $0.close() }
    }

    var executor: any SerialExecutor { QueueExecutor.shared }

    func refusal(of order: TransferOrder) -> TransferFailure? { hub.settings.refusal(of: order) }

    /// The transfer, when it is started, is the kept task.
    func bind(_ transfer: Transfer, to adoption: Adoption) {
        adoptions.withLock { $0[transfer.id] = adoption }
    }

    /// The transfer is not started after all.
    func unbind(_ transfer: Transfer) {
        adoptions.withLock { $0[transfer.id] = nil }
    }

    func start(_ transfer: Transfer) {
        let adoption = adoptions.withLock { $0.removeValue(forKey: transfer.id) }
        hub.post { hub in
            if let adoption {
                hub.adopt(adoption.task, transfer, onFile: adoption.onFile)
            } else {
                hub.start(transfer)
            }
        }
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        let id = transfer.id
        hub.post { $0.control(id, command) }
    }
}
#endif
