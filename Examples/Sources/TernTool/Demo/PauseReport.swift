import Tern
import TernTesting

/// What was seen of a paused transfer.
struct PauseReport {
    private static let watched = Duration.milliseconds(500)
    private static let instant = Duration.milliseconds(20)

    /// Bytes that the task had when it stood still.
    let position: Int64
    /// Bytes that moved while it was watched: those that the task got, and those that the server sent.
    let movedBytes: Int64
    /// How long the pause was in all.
    let duration: Duration

    /// Watches a task that was told to pause, for half a second from when it stands still: the sockets' buffers fill
    /// after the last byte was taken out of them.
    static func watch(_ task: some TaskHandle, _ stage: DemoStage) async throws -> PauseReport {
        let start = ContinuousClock.now
        var before = await counts(task, stage)
        for _ in 0..<50 {
            try await Task.sleep(for: instant)
            let now = await counts(task, stage)
            if now == before { break }
            before = now
        }
        try await Task.sleep(for: watched)
        let after = await counts(task, stage)
        return PauseReport(
            position: before.received, movedBytes: after.received - before.received + after.sent - before.sent,
            duration: .now - start)
    }

    private struct Counts: Equatable {
        let received: Int64
        let sent: Int64
    }

    private static func counts(_ task: some TaskHandle, _ stage: DemoStage) async -> Counts {
        let snapshot = await stage.session.tasks.snapshot.first { $0.id == task.id }
        return Counts(
            received: snapshot?.progress.completedBytes ?? 0, sent: Int64(stage.server?.counts.bytesOut ?? 0))
    }
}
