import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Steps that download responses to files.
enum DownloadSteps {
    static func pausedDownload(_ stage: DemoStage) async throws -> String {
        let size = 200_000_000
        let task = stage.client.download("bytes/\(size)", to: stage.file("200MB.bin"))
        let bar = await TerminalBar("200MB.bin", on: stage.terminal)
        await bar.bind(task)
        var pause: PauseReport?
        for await progress in task.progress where progress.completedBytes >= size / 2 && !progress.isFinished {
            task.pause()
            pause = try await PauseReport.watch(task, stage)
            task.resume()
            break
        }
        await bar.finished()
        let file = try await task.value
        guard let pause else { throw DemoFailure(description: "it was over before it could be paused") }
        try DemoFailure.unless(pause.movedBytes == 0, "\(pause.movedBytes) bytes moved while it was paused")
        try DemoFailure.unless(
            pause.bufferedBytes < 16 << 20, "the server sent \(ByteText.size(pause.bufferedBytes)) into the pause")
        try verify(file, LoopbackServer.Pattern(count: size))
        let time = bar.elapsed - pause.duration
        return "\(ByteText.size(Int64(size))) in \(DurationText.span(time)), \(ByteText.rate(Int64(size), in: time)); "
            + "paused at \(ByteText.size(pause.position)) for \(DurationText.span(pause.duration)), 0 bytes moved; "
            + "every byte verified"
    }

    static func continuedDownload(_ stage: DemoStage) async throws -> String {
        let size = 40_000_000
        let file = stage.file("40MB.bin")
        let options = Download.Options(isResumable: true)
        let first = stage.client.download("bytes/\(size)", to: file, options: options, query: ["rate": 100_000_000])
        for await progress in first.progress where progress.completedBytes >= size / 2 { first.cancel() }
        _ = try? await first.value  // It was cancelled: what counts is the token.
        guard let token = first.resumeData else { throw DemoFailure(description: "no token to continue it with") }
        // The token is Codable and may be stored for another process.
        let kept = try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(token))

        let second = stage.client.download(resuming: kept, to: file)
        await TerminalBar("40MB.bin", on: stage.terminal).follow(second)
        try verify(try await second.value, LoopbackServer.Pattern(count: size))
        let status = await second.response?.status ?? 0
        try DemoFailure.unless(status == 206, "the server sent it all again (status \(status))")
        let rest = second.metrics?.receivedBytes ?? 0
        return "cancelled at \(ByteText.size(token.offset)), continued there from a token (status \(status), "
            + "\(ByteText.size(rest)) more), every byte verified"
    }

    static func cancelledDownload(_ stage: DemoStage) async throws -> String {
        let before = try stage.files()
        let task = stage.client.download(
            "bytes/200000000", to: stage.file("never.bin"), query: ["rate": 50_000_000])
        let bar = await TerminalBar("never.bin", on: stage.terminal)
        await bar.bind(task)
        for await progress in task.progress where progress.completedBytes >= 10_000_000 { task.cancel() }
        await bar.finished()
        do {
            let file = try await task.value
            throw DemoFailure(description: "it was not cancelled, and wrote \(file.lastPathComponent)")
        } catch let error as NetworkError where error.isCancelled {
            let left = try stage.files().filter { !before.contains($0) }
            try DemoFailure.unless(left.isEmpty, "left on disk: \(left.joined(separator: ", "))")
            return "at \(ByteText.size(await bar.status.completed)): state \(task.state), nothing left on disk"
        }
    }

    private static func verify(_ file: URL, _ pattern: LoopbackServer.Pattern) throws {
        let content = try Data(contentsOf: file, options: .alwaysMapped)
        try DemoFailure.unless(
            content.count == pattern.count, "the file has \(content.count) of \(pattern.count) bytes")
        try DemoFailure.unless(pattern.matches(content), "the file's bytes are not those that were sent")
    }
}

/// The observations of a paused transfer.
struct PauseReport {
    private static let watched = Duration.milliseconds(500)
    private static let instant = Duration.milliseconds(20)

    /// The bytes that the task had when it stopped.
    let position: Int64
    /// The bytes that the task received while it was observed.
    let movedBytes: Int64
    /// The bytes that the server could still send: the system's socket buffers fill after the last byte was read.
    let bufferedBytes: Int64
    /// The total duration of the pause.
    let duration: Duration

    /// Observes a task that was asked to pause, for half a second after it stops.
    static func watch(_ task: some TaskHandle, _ stage: DemoStage) async throws -> PauseReport {
        let start = ContinuousClock.now
        let sentBefore = stage.server?.counts.bytesOut ?? 0
        var position = await received(task, stage)
        for _ in 0..<10 {
            try await Task.sleep(for: instant)
            let now = await received(task, stage)
            if now == position { break }
            position = now
        }
        try await Task.sleep(for: watched)
        let sentAfter = stage.server?.counts.bytesOut ?? 0
        return PauseReport(
            position: position, movedBytes: await received(task, stage) - position,
            bufferedBytes: Int64(sentAfter - sentBefore), duration: .now - start)
    }

    private static func received(_ task: some TaskHandle, _ stage: DemoStage) async -> Int64 {
        await stage.session.tasks.snapshot.first { $0.id == task.id }?.progress.completedBytes ?? 0
    }
}
