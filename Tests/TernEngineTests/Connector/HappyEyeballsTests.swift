import Testing

@testable import TernEngine

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

@Suite struct HappyEyeballsTests {
    private static let delay = HappyEyeballs.delay

    private func addresses(_ texts: [String]) -> [SocketAddress] {
        texts.compactMap { SocketAddress(numeric: $0, port: 80) }
    }

    private func many(_ count: Int) -> [SocketAddress] {
        (0..<count).map { .ipv4(UInt32($0 + 1), port: 80) }
    }

    @Test(arguments: [
        ([], []),
        (["1.1.1.1"], ["1.1.1.1"]),
        (["::1", "::2", "1.1.1.1", "::3", "2.2.2.2"], ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]),
        (["1.1.1.1", "::1", "::2", "::3"], ["1.1.1.1", "::1", "::2", "::3"]),
        (["1.1.1.1", "2.2.2.2", "3.3.3.3", "::1"], ["1.1.1.1", "::1", "2.2.2.2", "3.3.3.3"]),
    ])
    func theFamiliesAlternate(given: [String], order: [String]) {
        #expect(HappyEyeballs(addresses(given)).addresses.map(\.text) == order)
    }

    @Test func atMostSixteenAddressesAreTriedOfBothFamilies() {
        let given = (1...40).map { "2001:db8::\($0)" } + ["1.1.1.1", "2.2.2.2"]
        let tried = HappyEyeballs(addresses(given)).addresses
        #expect(tried.count == 16)
        #expect(tried.filter { $0.family == .ipv4 }.count == 2)
    }

    @Test func withoutAddressesItFails() {
        var eyeballs = HappyEyeballs([])
        #expect(eyeballs.next(now: 5) == .failed(SystemError(EADDRNOTAVAIL)))
    }

    @Test func aDeadFirstAddressDelaysTheNextByAQuarterSecond() {
        var eyeballs = HappyEyeballs(many(2))
        #expect(eyeballs.next(now: 100) == .connect(0))
        #expect(eyeballs.next(now: 100) == .wait(until: 100 + Self.delay))
        #expect(eyeballs.next(now: 99 + Self.delay) == .wait(until: 100 + Self.delay))
        #expect(eyeballs.next(now: 100 + Self.delay) == .connect(1))
        #expect(eyeballs.next(now: 100 + Self.delay) == .wait(until: nil))
        eyeballs.connected(1)
        #expect(eyeballs.next(now: 100 + Self.delay) == .abandon(0))
        #expect(eyeballs.next(now: 100 + Self.delay) == .won(1))
        #expect(eyeballs.next(now: 100 + Self.delay) == .won(1))
    }

    @Test func aFailureStartsTheNextAttemptAtOnce() {
        var eyeballs = HappyEyeballs(many(3))
        #expect(eyeballs.next(now: 0) == .connect(0))
        eyeballs.failed(0, error: SystemError(ENETUNREACH))
        #expect(eyeballs.next(now: 1) == .connect(1))
        #expect(eyeballs.next(now: 1) == .wait(until: 1 + Self.delay))
        eyeballs.failed(1, error: SystemError(ECONNREFUSED))
        #expect(eyeballs.next(now: 2) == .connect(2))
        eyeballs.failed(2, error: SystemError(ETIMEDOUT))
        #expect(eyeballs.next(now: 3) == .failed(SystemError(ECONNREFUSED)))
    }

    @Test func onlyOneAttemptWins() {
        var eyeballs = HappyEyeballs(many(2))
        #expect(eyeballs.next(now: 0) == .connect(0))
        #expect(eyeballs.next(now: Self.delay) == .connect(1))
        eyeballs.connected(0)
        eyeballs.connected(1)
        eyeballs.failed(0, error: SystemError(EPIPE))
        #expect(eyeballs.next(now: Self.delay) == .abandon(1))
        #expect(eyeballs.next(now: Self.delay) == .won(0))
    }

    @Test(
        arguments: [
            ([ENETUNREACH, ETIMEDOUT], ETIMEDOUT), ([ETIMEDOUT, ENETUNREACH], ETIMEDOUT),
            ([ECONNREFUSED, ETIMEDOUT], ECONNREFUSED), ([EHOSTUNREACH, ECONNREFUSED], ECONNREFUSED),
            ([ECONNREFUSED, EMFILE], EMFILE), ([ENETUNREACH, EAFNOSUPPORT], ENETUNREACH),
            ([EHOSTUNREACH, ETIMEDOUT], EHOSTUNREACH),
        ] as [([Int32], Int32)])
    func theMostTellingErrorIsReported(codes: [Int32], reported: Int32) {
        var eyeballs = HappyEyeballs(many(codes.count))
        for (index, code) in codes.enumerated() {
            #expect(eyeballs.next(now: 0) == .connect(index))
            eyeballs.failed(index, error: SystemError(code))
        }
        #expect(eyeballs.next(now: 0) == .failed(SystemError(reported)))
    }

    @Test func theOldestOfSixAttemptsMakesRoomAfterThreeSeconds() {
        var eyeballs = HappyEyeballs(many(7))
        for index in 0..<6 { #expect(eyeballs.next(now: UInt64(index) * Self.delay) == .connect(index)) }
        let full = 5 * Self.delay
        #expect(eyeballs.next(now: full) == .wait(until: 6 * Self.delay))
        #expect(eyeballs.next(now: 6 * Self.delay) == .wait(until: HappyEyeballs.replacementAge))
        #expect(eyeballs.next(now: HappyEyeballs.replacementAge) == .abandon(0))
        #expect(eyeballs.next(now: HappyEyeballs.replacementAge) == .connect(6))
        #expect(eyeballs.next(now: HappyEyeballs.replacementAge) == .wait(until: nil))
        for index in 1...6 { eyeballs.failed(index, error: SystemError(ENETUNREACH)) }
        #expect(eyeballs.next(now: HappyEyeballs.replacementAge) == .failed(SystemError(ETIMEDOUT)))
    }

    @Test func eventsOfUnknownAttemptsAreIgnored() {
        var eyeballs = HappyEyeballs(many(2))
        eyeballs.connected(0)
        eyeballs.failed(1, error: SystemError(EPIPE))
        eyeballs.connected(-1)
        eyeballs.connected(99)
        #expect(eyeballs.next(now: 0) == .connect(0))
    }

    @Test func theLatestTimeDoesNotOverflow() {
        var eyeballs = HappyEyeballs(many(2))
        #expect(eyeballs.next(now: .max - 1) == .connect(0))
        #expect(eyeballs.next(now: .max - 1) == .wait(until: .max))
        #expect(eyeballs.next(now: .max) == .connect(1))
    }

    /// Simulates connections of which each connects, fails or gives no answer after a random time.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func randomEventsKeepTheRules(seed: UInt64) {
        var random = ConnectRandom(state: seed)
        var eyeballs = HappyEyeballs(many(Int.random(in: 1...20, using: &random)))
        var now: UInt64 = 0
        var events: [(time: UInt64, index: Int, connects: Bool)] = []
        var open: Set<Int> = []
        var started: Set<Int> = []
        for _ in 0..<1_000 {
            switch eyeballs.next(now: now) {
            case .connect(let index):
                #expect(started.insert(index).inserted)
                open.insert(index)
                #expect(open.count <= HappyEyeballs.openLimit)
                let answer = Int.random(in: 0..<4, using: &random)
                let time = now + UInt64.random(in: 0...2_000_000_000, using: &random)
                if answer < 3 { events.append((time, index, answer == 0)) }
            case .abandon(let index):
                #expect(open.remove(index) != nil)
                events.removeAll { $0.index == index }
            case .wait(let limit):
                let event = events.min { $0.time < $1.time }
                guard let time = [event?.time, limit].compactMap({ $0 }).min() else {
                    // Only addresses that give no answer are left, until the caller's limit.
                    #expect(started.count == eyeballs.addresses.count)
                    return
                }
                #expect(time > now || event?.time == now)
                now = max(now, time)
                guard let event, event.time == time else { continue }
                events.removeAll { $0.index == event.index }
                if event.connects {
                    eyeballs.connected(event.index)
                } else {
                    open.remove(event.index)
                    eyeballs.failed(event.index, error: SystemError(ECONNREFUSED))
                }
            case .won(let index):
                #expect(open == [index])
                return
            case .failed:
                #expect(open.isEmpty)
                #expect(started.count == eyeballs.addresses.count)
                return
            }
        }
        Issue.record("the attempts do not end")
    }
}
