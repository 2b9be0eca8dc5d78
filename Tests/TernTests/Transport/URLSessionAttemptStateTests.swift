#if TERN_URLSESSION || !os(Linux)
@testable import Tern
import Foundation
import Testing

@Suite("URLSession: the state of an attempt")
struct URLSessionAttemptStateTests {
    private static let apple = URLSessionAbilities(suspends: true, measures: true, streamsBodies: true)
    private static let linux = URLSessionAbilities(suspends: false, measures: false, streamsBodies: false)
    private static let second: UInt64 = 1_000_000_000

    private func state(
        _ delivery: WireRequest.Delivery = .collected(limit: 10), _ abilities: URLSessionAbilities = apple,
        timeouts: Timeouts = Timeouts(), announcesHead: Bool = false
    ) throws -> URLSessionAttemptState {
        var request = try WireRequest.test()
        request.delivery = delivery
        request.timeouts = timeouts
        request.announcesHead = announcesHead
        return URLSessionAttemptState(request, abilities: abilities, now: 0)
    }

    private func response(_ fields: [String: String] = [:]) throws -> URLSessionResponse {
        try URLSessionResponse(
            SystemResponse(status: 200, fields: fields), target: Target(absolute: "http://localhost/"), method: .get)
    }

    /// Returns the names of the actions.
    private func names(_ actions: [URLSessionAttemptState.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .resumeTask: "resume"
            case .suspendTask: "suspend"
            case .cancelTask: "cancel"
            case .announce: "announce"
            case .finish(let outcome): "finish \(outcome.failure?.kind.rawValue ?? "well") \(outcome.body.count)"
            }
        }
    }

    private func next(_ state: inout URLSessionAttemptState) -> String {
        switch state.next(0) {
        case .nothing: "nothing"
        case .chunk(let data): "chunk \(data.count)"
        case .readFile: "read"
        case .actions(let actions): names(actions).joined(separator: ", ")
        }
    }

    private func data(_ count: Int) -> Data { Data(repeating: 1, count: count) }

    // MARK: Bodies

    @Test func collectedBodyIsDeliveredAtTheEnd() throws {
        var state = try state()
        #expect(names(state.start()) == ["resume"])
        #expect(state.receive(try response(["Content-Length": "4"]), 1).isEmpty)
        #expect(state.receive(data(3), 1).isEmpty)
        #expect(next(&state) == "nothing")
        _ = state.receive(data(1), 1)
        #expect(names(state.complete(nil, response: nil, at: 2)).isEmpty)
        #expect(next(&state) == "finish well 4")
        #expect(state.isEnded)
        #expect(next(&state) == "nothing")
    }

    @Test func aStreamedBodyIsDeliveredAsItComes() throws {
        var state = try state(.streamed, announcesHead: true)
        _ = state.start()
        #expect(names(state.receive(try response(), 1)) == ["announce"])
        _ = state.receive(data(3), 1)
        #expect(next(&state) == "chunk 3")
        #expect(next(&state) == "nothing")
        #expect(state.progress.received == 3)
    }

    @Test func aBodyOverItsLimitEndsTheAttempt() throws {
        var state = try state()
        _ = state.start()
        _ = state.receive(try response(), 1)
        _ = state.receive(data(11), 1)
        #expect(next(&state) == "cancel, finish too-large 0")
        #expect(names(state.complete(nil, response: nil, at: 2)).isEmpty)
        #expect(next(&state) == "nothing")
    }

    @Test func onlyACompressedBodyHasTheLimitOfDecompression() throws {
        for (fields, ending) in [(["Content-Encoding": "gzip"], "cancel, finish too-large 0"), ([:], "chunk 501")] {
            var state = try state(.streamed)
            _ = state.start()
            _ = state.receive(try response(fields), 1)
            _ = state.receive(data(501), 1)
            #expect(next(&state) == ending)
        }
    }

    @Test func aBodyThatEndsBeforeItsLengthIsTruncated() throws {
        var state = try state()
        _ = state.start()
        _ = state.receive(try response(["Content-Length": "4"]), 1)
        _ = state.receive(data(3), 1)
        _ = state.complete(nil, response: nil, at: 2)
        #expect(next(&state) == "finish truncated-body 3")
    }

    @Test func headThatArrivesWithTheEndIsDeliveredFirst() throws {
        var state = try state(announcesHead: true)
        _ = state.start()
        #expect(names(state.complete(nil, response: try response(), at: 2)) == ["announce"])
        #expect(next(&state) == "finish well 0")
    }

    @Test func anEndWithoutAHeadIsMalformed() throws {
        var state = try state()
        _ = state.start()
        _ = state.complete(nil, response: nil, at: 2)
        #expect(next(&state) == "finish malformed-response 0")
    }

    @Test func aFileIsReadAfterTheEndAndCountedOnce() throws {
        var state = try state(.streamed)
        _ = state.start()
        state.wrote(5, of: 6, at: 1)
        #expect(state.progress.received == 5)
        #expect(state.progress.expected == 6)
        state.wrote(6, of: 6, at: 1)
        state.bodyIsInFile()
        state.fileIsReady()
        #expect(next(&state) == "nothing")
        _ = state.complete(nil, response: try response(), at: 2)
        #expect(next(&state) == "read")
        state.receiveFromFile(data(6))
        #expect(next(&state) == "chunk 6")
        _ = state.readerIsFull(2)
        #expect(next(&state) == "nothing")
        _ = state.readerTookAll(2)
        #expect(next(&state) == "read")
        state.receiveFromFile(Data())
        #expect(next(&state) == "finish well 0")
        #expect(state.progress.received == 6)
    }

    @Test func fileTakenByAnotherReaderIsNotAMissingBody() throws {
        var state = try state()
        _ = state.start()
        state.bodyIsInFile()
        _ = state.complete(nil, response: try response(["Content-Length": "4"]), at: 2)
        #expect(next(&state) == "finish well 0")
    }

    // MARK: Suspension

    @Test func taskWithSeveralReasonsIsSuspendedOnce() throws {
        var state = try state(.streamed)
        #expect(names(state.start()) == ["resume"])
        #expect(names(state.pause(1)) == ["suspend"])
        #expect(state.readerIsFull(1).isEmpty)
        #expect(state.resume(1).isEmpty)
        #expect(names(state.readerTookAll(1)) == ["resume"])
        #expect(state.readerTookAll(1).isEmpty)
    }

    @Test func aTaskThatIsPausedBeforeItsStartMovesNothing() throws {
        for abilities in [Self.apple, Self.linux] {
            var state = try state(.streamed, abilities)
            #expect(state.pause(1).isEmpty)
            #expect(state.start().isEmpty)
            #expect(names(state.resume(1)) == ["resume"])
        }
    }

    @Test func bytesOfAnUnsuspendableTaskAreBuffered() throws {
        var state = try state(.streamed, Self.linux)
        _ = state.start()
        _ = state.receive(try response(), 1)
        #expect(state.pause(1).isEmpty)
        _ = state.receive(data(3), 1)
        #expect(next(&state) == "nothing")
        #expect(state.progress.received == 0)
        _ = state.complete(nil, response: nil, at: 2)
        #expect(next(&state) == "nothing")
        #expect(state.resume(3).isEmpty)
        #expect(next(&state) == "chunk 3")
        #expect(next(&state) == "finish well 0")
    }

    @Test func unpausableTransferHasALimit() throws {
        var state = try state(.streamed, Self.linux)
        _ = state.start()
        _ = state.readerIsFull(1)
        let piece = data(64 << 20)
        for _ in 0..<4 { #expect(state.receive(piece, 1).isEmpty) }
        #expect(names(state.receive(data(1), 1)) == ["cancel", "finish unsupported 0"])
    }

    @Test func theEndOfAPausedTaskWaits() throws {
        var state = try state()
        _ = state.start()
        _ = state.receive(try response(), 1)
        _ = state.receive(data(2), 1)
        #expect(next(&state) == "nothing")
        _ = state.pause(1)
        _ = state.complete(nil, response: nil, at: 2)
        #expect(next(&state) == "nothing")
        // The task has ended: there is nothing to resume.
        #expect(state.resume(3).isEmpty)
        #expect(next(&state) == "finish well 2")
    }

    // MARK: Ends

    @Test func ownFailureEndsTheAttemptOnce() throws {
        var state = try state()
        _ = state.start()
        #expect(names(state.fail(.cancelled, 1)) == ["cancel", "finish cancelled 0"])
        #expect(state.fail(.cancelled, 1).isEmpty)
        #expect(state.complete(URLError(.cancelled), response: nil, at: 1).isEmpty)
        #expect(state.resume(1).isEmpty)
        #expect(state.start().isEmpty)
        #expect(next(&state) == "nothing")
    }

    @Test func silentServerIsIdleWithoutMeasurements() throws {
        var state = try state(.streamed, Self.linux, timeouts: Timeouts(connect: .seconds(1), idle: .seconds(2)))
        _ = state.start()
        #expect(state.checkLimits(Self.second).isEmpty)
        #expect(names(state.checkLimits(2 * Self.second)) == ["cancel", "finish idle-timed-out 0"])
    }

    @Test(arguments: [(false, "connect-timed-out"), (true, "idle-timed-out")])
    func measurementsShowWhetherAConnectionExisted(_ wasConnected: Bool, _ kind: String) throws {
        #if !canImport(FoundationNetworking)
        var state = try state(timeouts: Timeouts(connect: .seconds(1), idle: .seconds(2)))
        _ = state.start()
        #expect(names(state.checkLimits(2 * Self.second)) == ["cancel"])
        #expect(state.checkLimits(2 * Self.second).isEmpty)
        var metrics = TaskMetrics()
        if wasConnected { metrics.connectEnd = 5 }
        state.receive(metrics)
        _ = state.complete(URLError(.cancelled), response: nil, at: 2 * Self.second)
        #expect(next(&state) == "finish \(kind) 0")
        #endif
    }

    @Test func totalLimitHoldsDespiteProgress() throws {
        var state = try state(timeouts: Timeouts(total: .seconds(3)))
        _ = state.start()
        _ = state.receive(try response(), Self.second)
        _ = state.receive(data(1), 2 * Self.second)
        #expect(names(state.checkLimits(3 * Self.second)) == ["cancel", "finish total-timed-out 0"])
    }

    @Test func noLimitRunsWhileTheTaskIsPaused() throws {
        var state = try state(timeouts: Timeouts(connect: nil, idle: .seconds(1), total: .seconds(3)))
        _ = state.start()
        _ = state.pause(Self.second / 2)
        #expect(state.checkLimits(100 * Self.second).isEmpty)
        _ = state.resume(100 * Self.second)
        #expect(state.checkLimits(100 * Self.second).isEmpty)
        #expect(!state.checkLimits(102 * Self.second).isEmpty)
    }

    @Test func aBackgroundSessionHasLimitsOfItsOwn() throws {
        var abilities = Self.apple
        abilities.limitsTime = false
        let state = try state(.streamed, abilities, timeouts: Timeouts(total: .seconds(3)))
        #expect(state.clock.nextDeadline == .max)
    }

    @Test func outcomeUsesTheTransportClockWithoutSystemMeasurements() throws {
        var state = try state()
        _ = state.start()
        _ = state.receive(try response(), 1_000_000)
        _ = state.receive(data(3), 2_000_000)
        _ = state.next(2_000_000)
        state.recordSent(7, 2_000_000)
        _ = state.complete(nil, response: nil, at: 3_000_000)
        guard case .actions(let actions) = state.next(3_000_000), case .finish(let outcome)? = actions.last else {
            Issue.record("the attempt has not ended")
            return
        }
        #expect(outcome.metrics.firstByte == .milliseconds(1))
        #expect(outcome.metrics.total == .milliseconds(3))
        #expect(outcome.metrics.decodedBodyBytes == 3)
        #expect(outcome.metrics.sentBytes == 7)
        #expect(outcome.metrics.httpVersion == .http11)
    }
}
#endif
