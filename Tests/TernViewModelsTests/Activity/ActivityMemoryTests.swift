import TernTesting
import TernViewModels
import Testing

@testable import Tern

@MainActor
@Suite("What activity keeps", .timeLimit(.minutes(1)))
struct ActivityMemoryTests {
    private final class Weak {
        weak var record: TaskRecord?
        init(_ record: TaskRecord) { self.record = record }
    }

    @Test func aControlThatIsAddedToForeverKeepsNothingOfTheEnded() async throws {
        let slow = Slow()
        let spinner = Spinner()
        let running = try slow.task()
        running.resume()
        spinner.bindActivity(to: running)
        var records: [Weak] = []
        for _ in 0..<20 {
            let task = try slow.task()
            records.append(Weak(task.erased.record))
            spinner.bindActivity(to: [task], adding: true)
            task.cancel()
        }
        await eventually { records.allSatisfy { $0.record == nil } }
        #expect(spinner.log.events == [.begin] && spinner.activityBinding?.isActive == true)
        running.cancel()
        await spinner.log.wait(for: 2)
    }
}
