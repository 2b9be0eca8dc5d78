import Tern
import TernStreaming
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Steps whose bodies are never in memory as a whole.
enum StreamSteps {
    static func lines(_ stage: DemoStage) async throws -> String {
        let expected = 50_000
        let start = ContinuousClock.now
        var count = 0
        for try await line in stage.client.stream("lines/\(expected)").lines {
            try DemoFailure.unless(line == "line \(count)", "line \(count) is '\(line)'")
            count += 1
        }
        try DemoFailure.unless(count == expected, "\(count) of \(expected) lines")
        return "\(count) lines, in order, in \(DurationText.span(.now - start))"
    }

    static func events(_ stage: DemoStage) async throws -> String {
        let expected = 500
        let start = ContinuousClock.now
        let events = stage.client.events("events/\(expected)")
        let connections = Task {
            var count = 0
            for await state in events.states { if case .waiting = state { count += 1 } }
            return count
        }
        var last = 0
        for try await event in events {
            last += 1
            try DemoFailure.unless(event.id == "\(last)", "event \(last) has the ID \(event.id)")
        }
        try DemoFailure.unless(last == expected, "\(last) of \(expected) events")
        return "\(last) events over \(await connections.value) broken connections, none lost or doubled, in "
            + DurationText.span(.now - start)
    }

    static func upload(_ stage: DemoStage) async throws -> String {
        struct Receipt: Decodable, Sendable { let bytes: Int64 }

        let size = 100_000_000
        let chunks = PatternChunks(pattern: LoopbackServer.Pattern(count: size), chunkSize: 256 << 10)
        let task = stage.client.upload(
            "upload", body: .stream(chunks, length: Int64(size)), as: Receipt.self)
        let bar = await TerminalBar("upload", on: stage.terminal)
        await bar.follow(task, .upload)
        let receipt = try await task.value
        let time = task.metrics?.total ?? bar.elapsed
        try DemoFailure.unless(receipt.bytes == size, "the server got \(receipt.bytes) of \(size) bytes")
        let shown = await bar.status.completed
        try DemoFailure.unless(shown == size, "the progress ended at \(shown) of \(size) bytes")
        return "\(ByteText.size(receipt.bytes)) in chunks of an async sequence, all received, in "
            + "\(DurationText.span(time)), \(ByteText.rate(receipt.bytes, in: time))"
    }
}

/// A pattern in pieces, produced as fast as they are consumed.
private struct PatternChunks: AsyncSequence, Sendable {
    typealias Element = Data
    let pattern: LoopbackServer.Pattern
    let chunkSize: Int

    func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

    struct Iterator: AsyncIteratorProtocol {
        let chunks: PatternChunks
        var offset = 0

        mutating func next() async -> Data? {
            let range = offset..<Swift.min(offset + chunks.chunkSize, chunks.pattern.count)
            guard !range.isEmpty else { return nil }
            offset = range.upperBound
            return Data(chunks.pattern.bytes(in: range))
        }
    }
}

/// The number of events of each kind. Pure.
struct EventCount: Sendable, Equatable {
    private(set) var resumed = 0
    private(set) var suspended = 0
    private(set) var filesMoved = 0
    private(set) var completed = 0
    private(set) var failed = 0
    private(set) var cancelled = 0
    private(set) var dropped = 0
    private(set) var isInvalidated = false

    mutating func add(_ event: TaskRegistry.Event) {
        switch event {
        case .resumed: resumed += 1
        case .suspended: suspended += 1
        case .fileMoved: filesMoved += 1
        case .moveFailed: break
        case .completed(let completion):
            switch completion.error {
            case nil: completed += 1
            case let error? where error.isCancelled: cancelled += 1
            case .some: failed += 1
            }
        case .sessionInvalidated: isInvalidated = true
        case .dropped(let count): dropped += count
        }
    }

    /// The number of tasks that have ended in any way.
    var ended: Int { completed + failed + cancelled }
}
