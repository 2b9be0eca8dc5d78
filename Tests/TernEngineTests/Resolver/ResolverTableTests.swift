import Testing

@testable import TernEngine

@Suite struct ResolverTableTests {
    private static let address = SocketAddress.ipv4(0x0A00_0001, port: 0)
    private typealias Table = ResolverTable<String>

    private func table(threads: Int = 2, answers: Int = 4) -> Table {
        Table(threadLimit: threads, lifetime: 60, answerLimit: answers)
    }

    @Test func eachNameStartsAThreadUpToTheLimit() {
        var table = table()
        #expect(table.add("w1", number: 1, name: "a", now: 0) == .startThread)
        #expect(table.add("w2", number: 2, name: "b", now: 0) == .startThread)
        #expect(table.add("w3", number: 3, name: "c", now: 0) == .wait)
        #expect(table.next() == .resolve("a"))
        #expect(table.next() == .resolve("b"))
        #expect(table.finish("b", addresses: [Self.address], now: 1) == ["w2"])
        #expect(table.next() == .resolve("c"))
        #expect(table.threads == 2)
    }

    @Test func aNameIsResolvedOnceForAllWaiters() {
        var table = table()
        #expect(table.add("w1", number: 1, name: "a", now: 0) == .startThread)
        #expect(table.add("w2", number: 2, name: "a", now: 0) == .wait)
        #expect(table.next() == .resolve("a"))
        #expect(table.add("w3", number: 3, name: "a", now: 0) == .wait)
        table.remove(number: 2, name: "a")
        #expect(table.finish("a", addresses: [], now: 1) == ["w1", "w3"])
        #expect(table.namesInProgress == 0)
    }

    @Test func anIdleThreadIsWokenBeforeAnotherStarts() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        #expect(table.next() == .resolve("a"))
        _ = table.finish("a", addresses: [], now: 0)
        #expect(table.next() == .wait)
        #expect(table.idleThreads == 1)
        #expect(table.add("w2", number: 2, name: "b", now: 0) == .wakeThread)
        #expect(table.add("w3", number: 3, name: "c", now: 0) == .startThread)
        // A thread that was woken waits for its signal, even if its timeout passes first.
        #expect(table.nextAfterTimeout() == .wait)
        #expect(table.next() == .resolve("b"))
    }

    @Test func anIdleThreadEndsAfterItsTimeout() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        _ = table.next()
        _ = table.finish("a", addresses: [], now: 0)
        #expect(table.next() == .wait)
        #expect(table.nextAfterTimeout() == .end)
        #expect(table.threads == 0)
        #expect(table.idleThreads == 0)
        #expect(table.add("w2", number: 2, name: "b", now: 0) == .startThread)
    }

    @Test func anAnswerIsKeptForItsLifetime() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        _ = table.next()
        _ = table.finish("a", addresses: [Self.address], now: 10)
        #expect(table.answer(for: "a", now: 69) == [Self.address])
        #expect(table.add("w2", number: 2, name: "a", now: 69) == .answer([Self.address]))
        #expect(table.answer(for: "a", now: 70) == nil)
        #expect(table.add("w2", number: 2, name: "a", now: 70) != .answer([Self.address]))
    }

    @Test func aFailureIsNotKept() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        _ = table.next()
        _ = table.finish("a", addresses: [], now: 10)
        #expect(table.answer(for: "a", now: 10) == nil)
        #expect(table.answerCount == 0)
    }

    @Test func theOldestAnswerMakesRoomForANewOne() {
        var table = table()
        for (time, name) in ["a", "b", "c", "d", "e"].enumerated() {
            _ = table.finish(name, addresses: [Self.address], now: UInt64(time))
        }
        #expect(table.answerCount == 4)
        #expect(table.answer(for: "a", now: 5) == nil)
        #expect(table.answer(for: "b", now: 5) != nil)
        _ = table.finish("f", addresses: [Self.address], now: 1_000)
        #expect(table.answerCount == 1)
    }

    /// Half of the threads are for one domain, and domains take turns.
    @Test func aDomainThatDoesNotAnswerHoldsNoOtherUp() {
        var table = table(threads: 4)
        let names = (1...6).map { "n\($0).evil.example" }
        for (number, name) in names.enumerated() { _ = table.add(name, number: UInt64(number), name: name, now: 0) }
        #expect(table.threads == 4)
        #expect(table.next() == .resolve(names[0]) && table.next() == .resolve(names[1]))
        #expect(table.next() == .wait && table.next() == .wait)
        #expect(table.add("late", number: 7, name: "n7.evil.example", now: 0) == .wait)
        #expect(table.add("other", number: 8, name: "other.example", now: 0) == .wakeThread)
        #expect(table.add("third", number: 9, name: "a.b.third.example", now: 0) == .wakeThread)
        #expect(table.next() == .resolve("other.example") && table.next() == .resolve("a.b.third.example"))
        // A cancelled name keeps its thread, and so its place.
        table.remove(number: 0, name: names[0])
        #expect(table.finish("other.example", addresses: [Self.address], now: 1) == ["other"])
        #expect(table.next() == .wait)
        #expect(table.finish(names[0], addresses: [], now: 1).isEmpty)
        #expect(table.next() == .resolve(names[2]))
        table.remove(number: 3, name: names[3])
        _ = table.add("fourth", number: 10, name: "fourth.example", now: 2)
        #expect(table.finish(names[1], addresses: [], now: 2) == [names[1]])
        #expect(table.next() == .resolve("fourth.example") && table.next() == .resolve(names[4]))
    }

    @Test func cancelledNamesDoNotFillTheQueueOfADomain() {
        var table = table(threads: 2)
        _ = table.add("first", number: 0, name: "a.evil.example", now: 0)
        #expect(table.next() == .resolve("a.evil.example"))
        for number in 1...10_000 as ClosedRange<UInt64> {
            _ = table.add("w", number: number, name: "\(number).evil.example", now: 0)
            if number < 10_000 { table.remove(number: number, name: "\(number).evil.example") }
        }
        #expect(table.namesInProgress == 2)
        _ = table.finish("a.evil.example", addresses: [], now: 0)
        #expect(table.next() == .resolve("10000.evil.example"))
        #expect(table.next() == .wait)
    }

    @Test func aNameThatNoOneWaitsForIsNotResolved() {
        var table = table(threads: 1)
        _ = table.add("w1", number: 1, name: "a", now: 0)
        _ = table.add("w2", number: 2, name: "b", now: 0)
        _ = table.add("w3", number: 3, name: "c", now: 0)
        table.remove(number: 2, name: "b")
        #expect(table.next() == .resolve("a"))
        #expect(table.next() == .resolve("c"))
    }

    @Test func aCancelledNameThatComesAgainIsResolvedOnce() {
        var table = table(threads: 1)
        _ = table.add("w1", number: 1, name: "a", now: 0)
        table.remove(number: 1, name: "a")
        _ = table.add("w2", number: 2, name: "a", now: 0)
        #expect(table.next() == .resolve("a"))
        #expect(table.next() == .wait)
        #expect(table.finish("a", addresses: [], now: 0) == ["w2"])
    }

    @Test func aResolutionThatHasBegunKeepsItsAnswerWithoutWaiters() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        #expect(table.next() == .resolve("a"))
        table.remove(number: 1, name: "a")
        #expect(table.finish("a", addresses: [Self.address], now: 0).isEmpty)
        #expect(table.answer(for: "a", now: 1) == [Self.address])
    }

    @Test func withoutAnyThreadAllWaitersFail() {
        var table = table()
        _ = table.add("w1", number: 1, name: "a", now: 0)
        _ = table.add("w2", number: 2, name: "b", now: 0)
        #expect(table.threadFailed().isEmpty)
        #expect(table.threadFailed() == ["w1", "w2"])
        #expect(table.namesInProgress == 0)
        #expect(table.add("w3", number: 3, name: "a", now: 0) == .startThread)
    }

    @Test func manyCancellationsAreQuickAndLeaveNothing() {
        var table = table(threads: 1)
        _ = table.add("first", number: 0, name: "busy", now: 0)
        #expect(table.next() == .resolve("busy"))
        for round in 0..<3 {
            let numbers = UInt64(1)...10_000
            for number in numbers { _ = table.add("w", number: number, name: "n\(number)", now: 0) }
            for number in numbers { _ = table.add("w", number: 20_000 + number, name: "shared\(round)", now: 0) }
            for number in numbers {
                table.remove(number: number, name: "n\(number)")
                table.remove(number: 20_000 + number, name: "shared\(round)")
            }
        }
        #expect(table.namesInProgress == 1)
        #expect(table.next() == .wait)
    }

    /// Calls the table in a random order and compares it with the rules.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func randomCallsKeepTheRules(seed: UInt64) {
        var random = ConnectRandom(state: seed)
        var table = table(threads: 3)
        var waiting: [UInt64: String] = [:]
        var running: [String] = []
        var delivered: Set<UInt64> = []
        var starting = 0
        for step in 1...2_000 as ClosedRange<UInt64> {
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let name = "n\(Int.random(in: 0..<8, using: &random))"
                let numbered = ResolverTableTests.text(step)
                switch table.add(numbered, number: step, name: name, now: step) {
                case .answer: break
                case .wait: waiting[step] = name
                case .wakeThread, .startThread:
                    waiting[step] = name
                    starting += 1
                }
            case 1:
                guard let (number, name) = waiting.randomElement(using: &random) else { continue }
                table.remove(number: number, name: name)
                waiting[number] = nil
            case 2 where starting > 0:
                starting -= 1
                if case .resolve(let name) = table.next() {
                    #expect(!running.contains(name))
                    running.append(name)
                }
            default:
                guard let name = running.popLast() else { continue }
                let addresses = Bool.random(using: &random) ? [Self.address] : []
                for text in table.finish(name, addresses: addresses, now: step) {
                    let number = UInt64(text.dropFirst()) ?? 0
                    #expect(waiting.removeValue(forKey: number) == name)
                    #expect(delivered.insert(number).inserted)
                }
                if case .resolve(let name) = table.next() { running.append(name) }
            }
            #expect(running.count <= 3)
            #expect(table.threads <= 3)
        }
        while starting > 0 || !running.isEmpty {
            if starting > 0 {
                starting -= 1
                if case .resolve(let name) = table.next() { running.append(name) }
            }
            while let name = running.popLast() {
                for text in table.finish(name, addresses: [], now: 0) { waiting[UInt64(text.dropFirst()) ?? 0] = nil }
                if case .resolve(let name) = table.next() { running.append(name) }
            }
        }
        #expect(waiting.isEmpty)
    }

    private static func text(_ number: UInt64) -> String { "w\(number)" }
}
