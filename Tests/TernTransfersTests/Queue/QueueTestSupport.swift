import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A server, a folder and a queue for one test.
struct QueueTest: Sendable {
    let server: LoopbackServer
    let folder: TestFolder
    let session: Session
    let queue: TransferQueue

    func download(_ path: String, _ change: (inout TransferQueue.Transfer) -> Void = { _ in }) -> TransferQueue.Transfer
    {
        var transfer = TransferQueue.Transfer.download(server.url("/" + path), to: folder.url(path))
        change(&transfer)
        return transfer
    }

    /// Returns the state of an item; nil if there is none.
    func state(_ id: TransferQueue.ItemID) async throws -> TransferQueue.State? { try await queue.item(id)?.state }

    /// Opens the queue of the folder again.
    func reopened(
        _ change: (inout TransferQueue.Configuration) -> Void = { _ in }
    ) async throws -> TransferQueue {
        try await TransferQueue.open(folder.url("queue"), session: session, configuration: .test(change))
    }
}

extension TransferQueue.Configuration {
    /// A configuration whose attempts follow each other without a delay.
    static func test(_ change: (inout Self) -> Void = { _ in }) -> Self {
        var configuration = Self()
        configuration.retry.policy.firstDelay = .zero
        configuration.retry.policy.limit = 2
        change(&configuration)
        return configuration
    }
}

func withQueue(
    network: ScriptedNetwork? = nil, configuration: TransferQueue.Configuration = .test(),
    _ handler: @escaping LoopbackServer.Handler, test: (QueueTest) async throws -> Void
) async throws {
    let change = { (configuration: inout Session.Configuration) in
        if let network { configuration.reachability = Reachability(network) }
    }
    try await withServer(configuration: change, handler) { server, client, folder in
        let queue = try await TransferQueue.open(
            folder.url("queue"), session: client.session, configuration: configuration)
        do {
            try await test(QueueTest(server: server, folder: folder, session: client.session, queue: queue))
        } catch {
            await queue.close()
            throw error
        }
        await queue.close()
    }
}

/// Waits for an event of an item, in a stream that was made before its cause.
func wait(
    for state: TransferQueue.State, of id: TransferQueue.ItemID,
    in events: inout AsyncStream<TransferQueue.Event>.AsyncIterator, isolation: isolated (any Actor)? = #isolation
) async {
    while let event = await events.next(isolation: isolation) {
        if event == .changed(id, state) { return }
    }
    Issue.record("the stream ended before item \(id) was \(state)")
}
