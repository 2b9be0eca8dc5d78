import Tern
import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Enqueues transfers and runs them, with books of its own: an empty file in `books` for each item that `enqueue` has
/// stored, and for each result that it was told. It ends with an error if the queue has lost an item.
struct QueueChild {
    /// The URL of the server, without a slash at its end.
    let server: String
    let folder: String
    /// The number of transfers. Every fifth one is an upload.
    let count: Int

    struct Lost: Error { let names: [String] }
    struct Failed: Error { let reason: String }

    static func isUpload(_ number: Int) -> Bool { number % 5 == 4 }

    private func write(_ entry: String) throws { try Data().write(to: URL(filePath: "\(folder)/books/\(entry)")) }

    private func transfer(_ number: Int) throws -> TransferQueue.Transfer {
        let file = URL(filePath: "\(folder)/files/\(number)")
        let path = Self.isUpload(number) ? "uploads" : "\(number)"
        guard let url = URL(string: "\(server)/\(path)") else { throw Failed(reason: "no URL") }
        var transfer: TransferQueue.Transfer =
            Self.isUpload(number) ? .upload(file, to: url, by: .tus) : .download(url, to: file)
        transfer.label = "\(number)"
        return transfer
    }

    func run(_ session: Session) async throws {
        var configuration = TransferQueue.Configuration()
        configuration.retry.policy.firstDelay = .milliseconds(1)
        configuration.limits.transfersPerHost = 4
        let queue = try await TransferQueue.open(
            URL(filePath: folder + "/queue"), session: session, configuration: configuration)
        let books = Set(try FileManager.default.contentsOfDirectory(atPath: folder + "/books"))
        let known = Set(try await queue.snapshot.compactMap(\.label))
        var open = Set((0..<count).map { "\($0)" }.filter { !books.contains("told-" + $0) })
        let lost = open.filter { books.contains("stored-" + $0) && !known.contains($0) }
        if !lost.isEmpty { throw Lost(names: lost.sorted()) }
        for number in 0..<count where open.contains("\(number)") && !known.contains("\(number)") {
            try await queue.enqueue(try transfer(number))
            try write("stored-\(number)")
        }
        // A result is told again if the process was killed between the book and the acknowledgement.
        open.formUnion(known)
        if open.isEmpty { return await queue.close() }
        for await item in queue.results {
            if let failure = item.failure { throw Failed(reason: "\(item): \(failure)") }
            guard let name = item.label else { throw Failed(reason: "no label") }
            try write("told-" + name)
            try await queue.acknowledge(.item(item.id))
            open.remove(name)
            if open.isEmpty { break }
        }
        await queue.close()
    }
}
