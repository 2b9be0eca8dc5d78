import Tern
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite("Binding progress", .timeLimit(.minutes(1)))
struct ProgressViewModelTests {
    private let slow = Slow()
    private let bar = Bar()

    @Test func aDownloadIsShownAsItComesAndUnbindsAtItsEnd() async throws {
        let task = try slow.task()
        let binding = bar.bindDownloadProgress(of: task, animated: true)
        #expect(bar.fractions == [nil], "what is known is shown within the call")
        task.resume()
        for count in 1...3 {
            try await slow.clock.waitForSleepers(1)
            await bar.log.wait { $0.last?.fraction == Double(count) / 4 }
            slow.clock.advance(by: .seconds(1))
        }
        await bar.log.wait { $0.last?.isFinished == true }
        await eventually { binding?.isActive == false }
        #expect(binding?.outcome == .finished && bar.progressBinding() == nil)
        #expect(bar.log.events.allSatisfy { $0.isAnimated && $0.direction == .download })
        #expect(bar.log.events.last?.fraction == 1 && bar.log.events.filter(\.isFinished).count == 1)
    }

    @Test func anUnknownLengthIsIndeterminateToTheEnd() async throws {
        let slow = Slow(hasLength: false)
        let task = try slow.task()
        bar.bindDownloadProgress(of: task)
        task.resume()
        try await slow.steps(3)
        await bar.log.wait { $0.last?.isFinished == true }
        #expect(bar.fractions.allSatisfy { $0 == nil })
        #expect(bar.log.events.last?.progress.completedBytes == 100)
    }

    @Test func uploadAndDownloadAreTwoBindingsEachWithItsOwnAnimation() async throws {
        let body = Data(repeating: 2, count: 1_000)
        let task = slow.session.task(for: try Request(.post, "https://a.example/", body: .data(body)))
        bar.bindUploadProgress(of: task, animated: true)
        bar.bindDownloadProgress(of: task)
        #expect(bar.progressBinding(.upload) !== bar.progressBinding(.download))
        task.resume()
        try await slow.steps(3)
        await bar.log.wait { $0.filter(\.isFinished).count == 2 }
        for shown in bar.log.events { #expect(shown.isAnimated == (shown.direction == .upload)) }
        let upload = bar.log.events.last { $0.direction == .upload }
        #expect(upload?.fraction == 1 && upload?.progress.totalBytes == 1_000)
    }

    @Test func rebindingReplacesAndChangesTheAnimation() async throws {
        let (first, second) = (try slow.task(), try Slow().task())
        let old = bar.bindDownloadProgress(of: first, animated: true)
        let new = bar.bindDownloadProgress(of: second, animated: false)
        #expect(old?.outcome == .replaced && new?.isActive == true)
        bar.log.removeAll()
        first.resume()
        try await slow.steps(3)
        _ = try await first.value
        await settle()
        #expect(bar.log.events.isEmpty, "the replaced task was shown")
        second.cancel()
        await bar.log.wait { $0.last?.isFinished == true }
        #expect(bar.log.events.allSatisfy { !$0.isAnimated })
    }

    @Test func nilUnbindsAndLeavesTheBarAsItIs() async throws {
        let task = try slow.task()
        let binding = bar.bindDownloadProgress(of: task)
        let upload = bar.bindUploadProgress(of: task)
        bar.log.removeAll()
        #expect(bar.bindDownloadProgress(of: nil) == nil)
        #expect(binding?.outcome == .unbound && upload?.isActive == true && bar.log.events.isEmpty)
        bar.unbindProgress()
        #expect(upload?.outcome == .unbound)
        task.resume()
        try await slow.steps(3)
        _ = try await task.value
        await settle()
        #expect(bar.log.events.isEmpty && task.state == .completed, "unbinding is no affair of the task's")
    }

    @Test func anEndedTaskIsShownAsFinishedWithinTheCall() async throws {
        let task = try slow.task()
        task.resume()
        try await slow.steps(3)
        _ = try await task.value
        let binding = bar.bindDownloadProgress(of: task)
        #expect(binding?.outcome == .finished && bar.fractions == [1] && bar.progressBinding() == nil)
    }

    @Test func theBindingOffersWhatItsTaskCanDo() async throws {
        let task = try slow.task()
        let binding = try #require(bar.bindDownloadProgress(of: task))
        #expect(binding.canResume && binding.canCancel && !binding.canPause)
        binding.resume()
        #expect(task.state == .running && binding.canPause && !binding.canResume)
        binding.pause()
        #expect(task.state == .suspended && binding.canResume && binding.isActive)
        binding.cancel()
        await bar.log.wait { $0.last?.isFinished == true }
        await eventually { !binding.isActive }
        #expect(task.state == .cancelled && !binding.canCancel && !binding.canPause && !binding.canResume)
        let (stream, _) = AsyncStream<Session.Progress>.makeStream()
        let plain = bar.bindProgress(stream)
        #expect(plain.task == nil && !plain.canCancel && !plain.canPause && !plain.canResume)
    }

    @Test func anyStreamMayBeShown() async {
        let (stream, continuation) = AsyncStream<Session.Progress>.makeStream()
        let binding = bar.bindProgress(stream, as: .upload)
        for completed in [1, 3, 2, 4] as [Int64] {
            continuation.yield(Session.Progress(completedBytes: completed, totalBytes: 4))
        }
        continuation.finish()
        await eventually { !binding.isActive }
        // All bytes have moved, but the transfer has not ended.
        let whole = Session.Progress(completedBytes: 4, totalBytes: 4).fractionCompleted ?? 1
        #expect(bar.fractions == [0.25, 0.75, 0.75, whole, 1] && bar.log.events.last?.isFinished == true)
        #expect(bar.log.events.allSatisfy { $0.direction == .upload })
    }

    @Test func aViewThatRebindsWhileItShowsProgressIsNotShownTheOldBinding() async {
        final class Restless: ProgressViewModel {
            let bindings = ViewBindings()
            var next: AsyncStream<Session.Progress>?
            var shown: [Int64] = []

            func showProgress(_ progress: ProgressUpdate) {
                shown.append(progress.progress.completedBytes)
                guard let next else { return }
                self.next = nil
                bindProgress(next)
            }
        }
        let view = Restless()
        let (first, one) = AsyncStream<Session.Progress>.makeStream()
        let (second, two) = AsyncStream<Session.Progress>.makeStream()
        view.next = second
        let old = view.bindProgress(first)
        for completed in [1, 2, 3] as [Int64] { one.yield(Session.Progress(completedBytes: completed, totalBytes: 9)) }
        await eventually { old.outcome == .replaced }
        two.yield(Session.Progress(completedBytes: 8, totalBytes: 9))
        await eventually { view.shown.count == 2 }
        await settle()
        #expect(view.shown == [1, 8])
    }
}
