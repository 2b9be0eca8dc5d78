import Tern
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Bodies that are never in memory as a whole.
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
        let shown = await bar.figures.completed
        try DemoFailure.unless(shown == size, "the progress ended at \(shown) of \(size) bytes")
        return "\(ByteText.size(receipt.bytes)) in chunks of an async sequence, all received, in "
            + "\(DurationText.span(time)), \(ByteText.rate(receipt.bytes, in: time))"
    }
}

/// A pattern, piece by piece, made as fast as it is taken.
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
