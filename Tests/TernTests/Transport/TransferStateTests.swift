import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("TransferState")
struct TransferStateTests {
    private static let interests: [TransferState.Interest] = [.response, .chunks, .outcome]

    private func head(_ status: Int = 200) throws -> ResponseHead {
        try ResponseHead(status: status, version: .http11, target: Target(absolute: "http://localhost/"), headers: [:])
    }

    @Test func newStateSatisfiesNoReader() {
        let state = TransferState()
        for interest in Self.interests { #expect(!state.isSatisfied(interest)) }
    }

    @Test func headSatisfiesAReaderOfTheHead() throws {
        var state = TransferState()
        state.receive(try head(), isStreamed: true)
        #expect(Self.interests.filter { state.isSatisfied($0) } == [.response])
        #expect(state.head?.status == 200)
    }

    @Test func headThatIsNotStreamedSatisfiesNoReader() throws {
        var state = TransferState()
        state.receive(try head(), isStreamed: false)
        #expect(!Self.interests.contains { state.isSatisfied($0) })
        #expect(state.head?.status == 200)
    }

    @Test func responseIsTheHeadOfAStreamOrTheEndOfATransfer() throws {
        var stream = TransferState()
        stream.receive(try head(), isStreamed: true)
        let first = stream.takeResponse()
        #expect(first.head?.status == 200 && first.outcome == nil)
        var collected = TransferState()
        collected.complete(TransferOutcome(head: try head(204)))
        let last = collected.takeResponse()
        #expect(last.outcome?.head?.status == 204 && last.head == nil)
        #expect(collected.outcome == nil)
        #expect(collected.takeOutcome().failure?.kind == .cancelled)
    }

    @Test func responseReportsADeadConnection() {
        let failure = TransferFailure(.connectionLost, "gone", isDeadPooledConnection: true)
        var state = TransferState()
        state.complete(TransferOutcome(failure: failure))
        let answer = state.takeResponse()
        #expect(answer.outcome?.failure?.isDeadPooledConnection == true && answer.head == nil)
    }

    @Test func bytesSatisfyAReaderUntilTheyAreTaken() throws {
        var state = TransferState()
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
        var state = TransferState()
        let half = Data(count: TransferState.highWaterMark / 2)
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
        var state = TransferState()
        var count = 0
        repeat { count += 1 } while !state.receive(Data([7]))
        #expect(count == TransferState.highWaterMark / 256)
        #expect(state.take().chunks.count == count)
    }

    @Test func outcomeSatisfiesEveryReader() {
        var state = TransferState()
        state.complete(TransferOutcome(failure: .cancelled))
        for interest in Self.interests { #expect(state.isSatisfied(interest)) }
        #expect(state.head == nil)
    }

    @Test func theFirstOutcomeCounts() {
        var state = TransferState()
        state.complete(TransferOutcome(failure: TransferFailure(.connectionLost, "gone")))
        state.complete(TransferOutcome(failure: .cancelled))
        #expect(state.outcome?.failure?.kind == .connectionLost)
    }

    @Test func outcomeAddsAMissingHeadAndKeepsADeliveredOne() throws {
        var silent = TransferState()
        silent.complete(TransferOutcome(head: try head(204)))
        #expect(silent.head?.status == 204)
        var announced = TransferState()
        announced.receive(try head(200), isStreamed: false)
        announced.complete(TransferOutcome())
        #expect(announced.head?.status == 200)
    }

    @Test func bytesRemainAvailableAfterTheEndWithoutDemand() {
        var state = TransferState()
        #expect(state.receive(Data(count: TransferState.highWaterMark)) == true)
        state.complete(TransferOutcome())
        let taken = state.take()
        #expect(taken.chunks.map(\.count) == [TransferState.highWaterMark])
        #expect(!taken.owesDemand)
        #expect(state.isSatisfied(.chunks))
        #expect(state.take().chunks.isEmpty)
    }

    /// A response of any other value would keep the bytes of its body beside the value.
    @Test func onlyABodyThatIsTheValueIsKept() throws {
        let outcome = TransferOutcome(head: try head(200), body: Data(count: 3))
        #expect(outcome.kept(by: BodyDecoder<Data>.data) === outcome)
        let firstByte = BodyDecoder<Data> { body, _ in body.prefix(1) }
        for released in [
            outcome.kept(by: firstByte), outcome.kept(by: BodyDecoder<JSONValue>.json),
            outcome.kept(by: BodyDecoder<NoContent>.noContent), outcome.withoutBody,
        ] {
            #expect(released.body.isEmpty && released.head?.status == 200)
        }
        let empty = TransferOutcome(head: try head(204))
        #expect(empty.withoutBody === empty)
    }

    // MARK: A lent socket

    @Test func aLentSocketSatisfiesAReaderOnceAndFollowsTheChunks() {
        var state = TransferState(bufferLimit: 1_000)
        #expect(state.receive(Data(count: 1_000)) == true)
        state.lendSocket(missing: 50)
        #expect(state.isSatisfied(.chunks) && !state.isSatisfied(.outcome))
        let taken = state.take()
        // The reader asks for more when it gives the socket back.
        #expect(taken.chunks.count == 1 && taken.missingCount == 50 && !taken.owesDemand)
        #expect(!state.isSatisfied(.chunks) && state.take().isEmpty)
    }

    @Test func aSocketThatIsNotTakenIsNotLentAfterTheEnd() {
        var state = TransferState()
        state.lendSocket(missing: 50)
        state.complete(TransferOutcome())
        #expect(state.take().isEmpty)
    }
}
