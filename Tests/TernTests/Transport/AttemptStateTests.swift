import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("AttemptState")
struct AttemptStateTests {
    private static let interests: [AttemptState.Interest] = [.response, .chunks, .outcome]

    private func head(_ status: Int = 200) throws -> ResponseHead {
        try ResponseHead(status: status, version: .http11, target: Target(absolute: "http://localhost/"), headers: [:])
    }

    @Test func newStateSatisfiesNoReader() {
        let state = AttemptState()
        for interest in Self.interests { #expect(!state.isSatisfied(interest)) }
    }

    @Test func headSatisfiesAReaderOfTheHead() throws {
        var state = AttemptState()
        state.receive(try head(), isStreamed: true)
        #expect(Self.interests.filter { state.isSatisfied($0) } == [.response])
        #expect(state.head?.status == 200)
    }

    @Test func headThatIsNotStreamedSatisfiesNoReader() throws {
        var state = AttemptState()
        state.receive(try head(), isStreamed: false)
        #expect(!Self.interests.contains { state.isSatisfied($0) })
        #expect(state.head?.status == 200)
    }

    @Test func responseIsTheHeadOfAStreamOrTheEndOfATransfer() throws {
        var stream = AttemptState()
        stream.receive(try head(), isStreamed: true)
        let first = stream.takeResponse()
        #expect(first.head?.status == 200 && first.outcome == nil)
        var collected = AttemptState()
        collected.complete(AttemptOutcome(head: try head(204)))
        let last = collected.takeResponse()
        #expect(last.outcome?.head?.status == 204 && last.head == nil)
        #expect(collected.outcome == nil)
        #expect(collected.takeOutcome().failure?.kind == .cancelled)
    }

    @Test func responseReportsADeadConnection() {
        let failure = FailureCause(.connectionLost, "gone", isDeadPooledConnection: true)
        var state = AttemptState()
        state.complete(AttemptOutcome(failure: failure))
        let answer = state.takeResponse()
        #expect(answer.outcome?.failure?.isDeadPooledConnection == true && answer.head == nil)
    }

    @Test func bytesSatisfyAReaderUntilTheyAreTaken() throws {
        var state = AttemptState()
        state.receive(try head(), isStreamed: true)
        #expect(state.receive(Data([1, 2])) == false)
        #expect(state.receive(Data([3])) == false)
        #expect(state.isSatisfied(.chunks))
        #expect(!state.isSatisfied(.outcome))
        let taken = state.take()
        #expect(taken.chunks == [Data([1, 2]), Data([3])])
        #expect(!taken.owesDemand)
        #expect(!state.isSatisfied(.chunks))
        #expect(state.take().chunks.isEmpty)
    }

    @Test func theHighWaterMarkStopsTheTransportUntilTheReaderHasTakenAll() {
        var state = AttemptState()
        let half = Data(count: AttemptState.highWaterMark / 2)
        #expect(state.receive(half) == false)
        #expect(state.receive(half) == true)
        #expect(state.receive(Data([1])) == true)
        let taken = state.take()
        #expect(taken.chunks.count == 3)
        #expect(taken.owesDemand)
        #expect(state.receive(Data([1])) == false)
        #expect(state.take().owesDemand == false)
    }

    @Test func aSmallChunkCountsAsTheMemoryThatItNeeds() {
        var state = AttemptState()
        var count = 0
        repeat { count += 1 } while !state.receive(Data([7]))
        #expect(count == AttemptState.highWaterMark / 256)
        #expect(state.take().chunks.count == count)
    }

    @Test func outcomeSatisfiesEveryReader() {
        var state = AttemptState()
        state.complete(AttemptOutcome(failure: .cancelled))
        for interest in Self.interests { #expect(state.isSatisfied(interest)) }
        #expect(state.head == nil)
    }

    @Test func theFirstOutcomeCounts() {
        var state = AttemptState()
        state.complete(AttemptOutcome(failure: FailureCause(.connectionLost, "gone")))
        state.complete(AttemptOutcome(failure: .cancelled))
        #expect(state.outcome?.failure?.kind == .connectionLost)
    }

    @Test func outcomeAddsAMissingHeadAndKeepsADeliveredOne() throws {
        var silent = AttemptState()
        silent.complete(AttemptOutcome(head: try head(204)))
        #expect(silent.head?.status == 204)
        var announced = AttemptState()
        announced.receive(try head(200), isStreamed: false)
        announced.complete(AttemptOutcome())
        #expect(announced.head?.status == 200)
    }

    @Test func bytesRemainAvailableAfterTheEndWithoutDemand() {
        var state = AttemptState()
        #expect(state.receive(Data(count: AttemptState.highWaterMark)) == true)
        state.complete(AttemptOutcome())
        let taken = state.take()
        #expect(taken.chunks.map(\.count) == [AttemptState.highWaterMark])
        #expect(!taken.owesDemand)
        #expect(state.isSatisfied(.chunks))
        #expect(state.take().chunks.isEmpty)
    }

    /// A response of any other value would keep the bytes of its body beside the value.
    @Test func onlyABodyThatIsTheValueIsKept() throws {
        let outcome = AttemptOutcome(head: try head(200), body: Data(count: 3))
        #expect(outcome.kept(by: BodyDecoder<Data>.data) === outcome)
        let firstByte = BodyDecoder<Data> { body, _ in body.prefix(1) }
        for released in [
            outcome.kept(by: firstByte), outcome.kept(by: BodyDecoder<JSONValue>.json),
            outcome.kept(by: BodyDecoder<NoContent>.noContent), outcome.withoutBody,
        ] {
            #expect(released.body.isEmpty && released.head?.status == 200)
        }
        let empty = AttemptOutcome(head: try head(204))
        #expect(empty.withoutBody === empty)
    }

    // MARK: A lent socket

    @Test func aLentSocketSatisfiesAReaderOnceAndFollowsTheChunks() {
        var state = AttemptState(bufferLimit: 1_000)
        #expect(state.receive(Data(count: 1_000)) == true)
        state.lendSocket(missing: 50)
        #expect(state.isSatisfied(.chunks) && !state.isSatisfied(.outcome))
        let taken = state.take()
        // The reader asks for more when it gives the socket back.
        #expect(taken.chunks.count == 1 && taken.missingCount == 50 && !taken.owesDemand)
        #expect(!state.isSatisfied(.chunks) && state.take().isEmpty)
    }

    @Test func aSocketThatIsNotTakenIsNotLentAfterTheEnd() {
        var state = AttemptState()
        state.lendSocket(missing: 50)
        state.complete(AttemptOutcome())
        #expect(state.take().isEmpty)
    }
}
