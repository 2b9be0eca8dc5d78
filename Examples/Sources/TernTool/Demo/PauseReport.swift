import Tern
import TernTesting

/// What was seen of a paused transfer.
struct PauseReport {
    private static let watched = Duration.milliseconds(500)
    private static let instant = Duration.milliseconds(20)

    /// Bytes that the task had when it stood still.
    let position: Int64
    /// Bytes that the task got while it was watched.
    let movedBytes: Int64
    /// Bytes that the server could still send: the system's socket buffers fill after the last byte was taken out.
    let bufferedBytes: Int64
    /// How long the pause was in all.
    let duration: Duration

    /// Watches a task that was told to pause, for half a second from when it stands still.
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
