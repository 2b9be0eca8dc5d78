import Tern
import Testing

@testable import TernTransfers

/// The commands on a transfer, in each of its phases.
@Suite("Transfers: lifecycle")
struct TransferLifecycleTests {
    private var running: TransferLifecycle { TransferLifecycle() }
    private var pausing: TransferLifecycle { after { _ = $0.pause() } }
    private var paused: TransferLifecycle {
        after {
            _ = $0.pause()
            _ = $0.runEnded(.cancelled)
        }
    }
    private var cancelled: TransferLifecycle { after { _ = $0.cancel() } }
    private var ended: TransferLifecycle { after { _ = $0.runEnded(.completed) } }

    private func after(_ change: (inout TransferLifecycle) -> Void) -> TransferLifecycle {
        var lifecycle = TransferLifecycle()
        change(&lifecycle)
        return lifecycle
    }

    private func expect(
        _ command: (inout TransferLifecycle) -> TransferLifecycle.Action, on lifecycle: TransferLifecycle,
        gives action: TransferLifecycle.Action, _ state: Session.TaskState,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var lifecycle = lifecycle
        #expect(command(&lifecycle) == action, sourceLocation: sourceLocation)
        #expect(lifecycle.state == state, sourceLocation: sourceLocation)
    }

    @Test func pauseEndsTheRunOnce() {
        expect({ $0.pause() }, on: running, gives: .interrupt, .suspended)
        expect({ $0.pause() }, on: pausing, gives: .none, .suspended)
        expect({ $0.pause() }, on: paused, gives: .none, .suspended)
        expect({ $0.pause() }, on: cancelled, gives: .none, .running)
        expect({ $0.pause() }, on: ended, gives: .none, .completed)
    }

    @Test func resumeStartsOneRun() {
        expect({ $0.resume() }, on: running, gives: .none, .running)
        expect({ $0.resume() }, on: pausing, gives: .none, .running)
        expect({ $0.resume() }, on: paused, gives: .start, .running)
        expect({ $0.resume() }, on: cancelled, gives: .none, .running)
        expect({ $0.resume() }, on: ended, gives: .none, .completed)
    }

    @Test func cancelEndsAPausedTransferAtOnce() {
        expect({ $0.cancel() }, on: running, gives: .interrupt, .running)
        expect({ $0.cancel() }, on: pausing, gives: .interrupt, .suspended)
        expect({ $0.cancel() }, on: paused, gives: .deliver, .cancelled)
        expect({ $0.cancel() }, on: cancelled, gives: .none, .running)
        expect({ $0.cancel() }, on: ended, gives: .none, .completed)
    }

    @Test func theEndOfARunComesBeforeAPause() {
        expect({ $0.runEnded(.completed) }, on: pausing, gives: .deliver, .completed)
        expect({ $0.runEnded(.failed) }, on: pausing, gives: .deliver, .failed)
        expect({ $0.runEnded(.cancelled) }, on: pausing, gives: .none, .suspended)
        expect({ $0.runEnded(.cancelled) }, on: running, gives: .deliver, .cancelled)
        expect({ $0.runEnded(.cancelled) }, on: cancelled, gives: .deliver, .cancelled)
    }

    @Test func aTransferThatIsResumedWhileItPausesRunsAgain() {
        let resumed = after {
            _ = $0.pause()
            _ = $0.resume()
        }
        expect({ $0.runEnded(.cancelled) }, on: resumed, gives: .start, .running)
        expect({ $0.runEnded(.completed) }, on: resumed, gives: .deliver, .completed)
        let pausedAgain = after {
            _ = $0.pause()
            _ = $0.resume()
            _ = $0.pause()
        }
        expect({ $0.runEnded(.cancelled) }, on: pausedAgain, gives: .none, .suspended)
        let cancelledAgain = after {
            _ = $0.pause()
            _ = $0.resume()
            _ = $0.cancel()
        }
        expect({ $0.runEnded(.cancelled) }, on: cancelledAgain, gives: .deliver, .cancelled)
    }

    @Test func timeStopsInEachPause() {
        var time = ActiveTime()
        #expect(time.elapsed(at: .seconds(3)) == .seconds(3))
        time.pause(at: .seconds(3))
        time.pause(at: .seconds(4))
        #expect(time.elapsed(at: .seconds(10)) == .seconds(3))
        time.resume(at: .seconds(10))
        time.resume(at: .seconds(11))
        #expect(time.elapsed(at: .seconds(12)) == .seconds(5))
        time.pause(at: .seconds(12))
        time.resume(at: .seconds(20))
        #expect(time.elapsed(at: .seconds(21)) == .seconds(6))
    }
}
