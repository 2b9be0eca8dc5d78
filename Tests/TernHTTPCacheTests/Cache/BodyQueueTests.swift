import Foundation
import Tern
import TernConcurrency
import Testing

@testable import TernHTTPCache

/// The decisions of the queue between a reader and the disk.
@Suite("HTTP cache: body queue") struct BodyQueueTests {
    private func count(_ step: BodyQueueState.Step) -> Int? {
        if case .write(let bytes) = step { bytes.count } else { nil }
    }

    @Test func bytesInFlightCountUntilTheyAreWritten() {
        var state = BodyQueueState()
        let chunk = Data(count: BodyQueueState.limit / 2)
        #expect(state.fits(BodyQueueState.limit))
        #expect(!state.fits(BodyQueueState.limit + 1))
        _ = state.add([chunk], count: chunk.count)
        _ = state.add([chunk], count: chunk.count)
        let first = state.next()
        #expect(count(first) == chunk.count)
        #expect(state.waitingBytes == BodyQueueState.limit)
        #expect(!state.fits(1))
        state.wrote()
        #expect(state.fits(chunk.count))
        #expect(!state.fits(chunk.count + 1))
    }

    @Test func smallChunksAreWrittenTogether() {
        var state = BodyQueueState()
        let chunks = (0..<40).map { Data(repeating: $0, count: 10_000) }
        _ = state.add(chunks, count: 400_000)
        var written = Data()
        for _ in 0..<2 {
            if case .write(let bytes) = state.next() { written += bytes }
            state.wrote()
        }
        #expect(written == chunks.reduce(Data(), +))
        #expect(state.waitingBytes == 0)
    }

    @Test func theWriterWaitsAndIsWoken() {
        var state = BodyQueueState()
        guard case .wait(let waiter) = state.next() else {
            Issue.record("nothing is to be written")
            return
        }
        let action = state.add([Data(count: 1)], count: 1)
        #expect(action.waiter === waiter)
        #expect(!action.isEnd)
        let second = state.add([Data(count: 1)], count: 1)
        #expect(second.waiter == nil)
    }

    @Test func onlyTheFirstEndCountsAndAnAbandonedQueueIsEmptied() {
        var state = BodyQueueState()
        _ = state.add([Data(count: 300_000), Data(count: 5)], count: 300_005)
        _ = state.next()
        let end = state.end(.abandon)
        #expect(end.isEnd)
        #expect(end.released == 5)
        #expect(state.waitingBytes == 300_000)
        let again = state.end(.abandon)
        #expect(!again.isEnd)
        #expect(again.released == 0)
        state.wrote()
        guard case .end(.abandon) = state.next() else {
            Issue.record("the queue has ended")
            return
        }
        #expect(state.hasEnded)
    }
}
