import TernConcurrency
import TernTesting
import Testing

@testable import Tern

@Suite("Latest", .timeLimit(.minutes(1)))
struct LatestTests {
    @Test func aStreamBeginsWithTheCurrentValue() async {
        let latest = Latest(1)
        latest.update { _ in 2 }
        var iterator = latest.stream().makeAsyncIterator()
        #expect(await iterator.next() == 2)
    }

    @Test func slowReaderReceivesTheNewestValue() async {
        let latest = Latest(0)
        var iterator = latest.stream().makeAsyncIterator()
        #expect(await iterator.next() == 0)
        for value in 1...100 { latest.update { _ in value } }
        #expect(await iterator.next() == 100)
    }

    @Test func theLastValueIsDeliveredAndThenTheEnd() async {
        let latest = Latest(0)
        var iterator = latest.stream().makeAsyncIterator()
        latest.update { _ in 1 }
        latest.finish { $0 + 10 }
        latest.update { _ in 99 }
        latest.finish { _ in 99 }
        #expect(await iterator.next() == 11)
        #expect(await iterator.next() == nil)
        #expect(await iterator.next() == nil)
    }

    @Test func aLateStreamGetsTheLastValueToo() async {
        let latest = Latest(0)
        latest.finish { _ in 7 }
        for _ in 0..<2 {
            var values: [Int] = []
            for await value in latest.stream() { values.append(value) }
            #expect(values == [7])
        }
    }

    @Test func updateToTheSameValueWakesNoReader() async {
        let latest = Latest(0)
        var iterator = latest.stream().makeAsyncIterator()
        #expect(await iterator.next() == 0)
        latest.update { _ in nil }
        latest.update { _ in 1 }
        #expect(await iterator.next() == 1)
        #expect(latest.current == 1)
    }

    @Test func streamsAreIndependent() async {
        let latest = Latest(0)
        var fast = latest.stream().makeAsyncIterator()
        var slow = latest.stream().makeAsyncIterator()
        #expect(await fast.next() == 0)
        latest.update { _ in 1 }
        #expect(await fast.next() == 1)
        latest.update { _ in 2 }
        #expect(await fast.next() == 2)
        #expect(await slow.next() == 2)
        latest.finish { _ in 3 }
        #expect(await (fast.next(), slow.next()) == (3, 3))
        #expect(await (fast.next(), slow.next()) == (nil, nil))
    }

    @Test func readersAreCountedUntilTheyEnd() async {
        let latest = Latest(0)
        #expect(!latest.hasReaders)
        do {
            let stream = latest.stream()
            #expect(latest.hasReaders)
            var iterator = stream.makeAsyncIterator()
            _ = await iterator.next()
        }
        #expect(!latest.hasReaders)
    }

    @Test func cancelledReaderEnds() async {
        let latest = Latest(0)
        let hasFirst = LoopbackServer.Gate()
        let reader = Task {
            var values: [Int] = []
            for await value in latest.stream() {
                values.append(value)
                hasFirst.open()
            }
            return values
        }
        await #expect(throws: Never.self) { try await hasFirst.wait() }
        reader.cancel()
        #expect(await reader.value == [0])
        latest.update { _ in 1 }
        latest.finish { _ in 2 }
    }

    @Test func aReaderCancelledBeforeItReadsEnds() async {
        let latest = Latest(0)
        let reader = Task {
            while !Task.isCancelled { await Task.yield() }
            var count = 0
            for await _ in latest.stream() { count += 1 }
            return count
        }
        reader.cancel()
        #expect(await reader.value == 0)
    }

    @Test func valuesIncreaseAndTheLastArrives() async {
        for round in 0..<200 {
            let latest = Latest(0)
            let readers = (0..<3).map { _ in
                let stream = latest.stream()
                return Task {
                    var values: [Int] = []
                    for await value in stream {
                        values.append(value)
                        if value % 3 == 0 { await Task.yield() }
                    }
                    return values
                }
            }
            for value in 1...20 {
                latest.update { _ in value }
                if (value + round) % 4 == 0 { await Task.yield() }
            }
            latest.finish { _ in 21 }
            for reader in readers {
                let values = await reader.value
                #expect(values == values.sorted())
                #expect(Set(values).count == values.count)
                #expect(values.last == 21)
            }
        }
    }
}
