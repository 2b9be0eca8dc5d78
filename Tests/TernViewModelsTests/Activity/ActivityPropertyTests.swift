import Tern
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Random orders of binding, adding, unbinding, and of tasks that run, pause and end: begin and end alternate, and a bound
/// control shows in the end what its tasks do.
@MainActor
@Suite("Activity in any order", .timeLimit(.minutes(1)))
struct ActivityPropertyTests {
    private final class Control: ActivityViewModel {
        let bindings = ViewBindings()
        private(set) var isActivityShown = false
        var faults: [String] = []
        var isBound = false

        func beginActivity() { change(to: true, "begin") }
        func endActivity() { change(to: false, "end") }

        private func change(to isShown: Bool, _ name: String) {
            if isActivityShown == isShown { faults.append("\(name) twice in a row") }
            if !isBound { faults.append("\(name) of what is not bound") }
            isActivityShown = isShown
        }
    }

    private func run(seed: Int) async throws {
        var random = SeededGenerator(seed: seed)
        let clock = ManualClock()
        let session = Session(stub: StubTransport(clock: clock) { _ in .status(204).delayed(by: .seconds(1)) })
        let request = try Request(.get, "https://a.example/")
        let tasks = (0..<4).map { _ in session.task(for: request) }
        let control = Control()
        var bound: [SessionTask<Response<Data>>] = []
        for _ in 0..<60 {
            let task = tasks[Int.random(in: 0..<tasks.count, using: &random)]
            switch Int.random(in: 0..<14, using: &random) {
            case 0, 1, 2: task.resume()
            case 3, 4: task.pause()
            case 5: if Int.random(in: 0..<3, using: &random) == 0 { task.cancel() }
            case 6, 7:
                bound = [task]
                control.isBound = true
                control.bindActivity(to: task)
            case 8, 9:
                // What has ended by itself is not there to be added to.
                if control.activityBinding == nil { bound = [] }
                bound.append(task)
                control.isBound = true
                control.bindActivity(to: [task], adding: true)
            case 10:
                bound = []
                control.bindActivity(to: nil)
                control.isBound = false
            case 11: clock.advance(by: .milliseconds(300))
            default: for _ in 0..<Int.random(in: 1..<10, using: &random) { await Task.yield() }
            }
        }
        let isSettled = { @MainActor in
            control.activityBinding == nil || control.isActivityShown == bound.contains { $0.state == .running }
        }
        await eventually(isSettled)
        for task in tasks { task.cancel() }
        await eventually { control.activityBinding == nil }
        #expect(control.faults.isEmpty, "seed \(seed)")
        #expect(!control.isBound || bound.isEmpty || !control.isActivityShown, "seed \(seed): left begun")
    }

    @Test(arguments: 0..<10)
    func beginAndEndAlternate(block: Int) async throws {
        for seed in block * 20..<(block + 1) * 20 { try await run(seed: seed) }
    }
}
