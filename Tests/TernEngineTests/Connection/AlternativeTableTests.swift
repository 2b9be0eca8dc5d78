import Testing

@testable import TernEngine

@Suite struct AlternativeTableTests {
    /// A table, of one of whose origins a test asks.
    private struct Origin {
        let key = AlternativeTable.Key(origin: "https://a.example:443", policy: 1)
        var table = AlternativeTable()

        mutating func take(
            _ services: AlternativeService..., lifetime: Int64 = 86_400, age: Int64 = 0, at now: UInt64 = 0
        ) {
            let offers = services.map { AlternativeServiceField.Offer($0, lifetime: lifetime) }
            table.take(.offered(offers), of: key, host: "a.example", age: age, now: now)
        }

        mutating func best(at now: UInt64 = 0, allowsOtherHosts: Bool = true) -> AlternativeService? {
            table.best(of: key, allowsOtherHosts: allowsOtherHosts, now: now)
        }

        mutating func failed(_ service: AlternativeService, at now: UInt64) {
            table.failed(service, of: key, now: now)
        }
    }

    private static let oneSecond: UInt64 = 1_000_000_000
    private static let minute = 60 * oneSecond
    private let first = AlternativeService(port: 1)
    private let second = AlternativeService(port: 2)
    private let elsewhere = AlternativeService(host: "b.example", port: 3)

    @Test func aLaterFieldReplacesTheEarlier() {
        var origin = Origin()
        #expect(origin.best() == nil)
        origin.take(first)
        #expect(origin.best() == first)
        origin.take(second, first)
        #expect(origin.best() == second)
        origin.take()
        #expect(origin.best() == nil && origin.table.count == 0)
        origin.take(first)
        origin.table.take(.clear, of: origin.key, host: "a.example", age: 0, now: 0)
        #expect(origin.best() == nil && origin.table.count == 0)
    }

    private static let expiries: [(lifetime: Int64, age: Int64, seconds: UInt64, isThere: Bool)] = [
        (60, 0, 59, true), (60, 0, 60, false), (60, 20, 39, true), (60, 20, 40, false), (60, 60, 0, false),
        (60, .max, 0, false), (60, .min, 59, true), (0, 0, 0, false),
    ]

    @Test(arguments: expiries)
    func anAlternativeExpires(lifetime: Int64, age: Int64, at seconds: UInt64, isThere: Bool) {
        var origin = Origin()
        origin.take(first, lifetime: lifetime, age: age)
        #expect((origin.best(at: seconds * Self.oneSecond) != nil) == isThere)
        if !isThere { #expect(origin.table.count == 0) }
    }

    @Test func originsAndPoliciesAreApart() {
        var origin = Origin()
        origin.take(first)
        for (name, policy) in [("https://a.example:443", UInt64(2)), ("https://a.example:444", 1)] {
            let other = AlternativeTable.Key(origin: name, policy: policy)
            #expect(origin.table.best(of: other, allowsOtherHosts: true, now: 0) == nil)
        }
    }

    @Test func anotherHostCanBeForbidden() {
        var origin = Origin()
        origin.take(elsewhere, second)
        #expect(origin.best() == elsewhere)
        #expect(origin.best(allowsOtherHosts: false) == second)
        // The host of the origin by its name.
        origin.take(AlternativeService(host: "a.example", port: 1))
        #expect(origin.best(allowsOtherHosts: false) == first)
    }

    @Test func aFailureIsRememberedForLongerEachTime() {
        var origin = Origin()
        origin.take(first)
        var now: UInt64 = 0
        for minutes: UInt64 in [5, 10, 20, 40, 80, 120, 120] {
            origin.failed(first, at: now)
            // Those that had started before are no further failures.
            origin.failed(first, at: now + Self.minute)
            #expect(origin.best(at: now + minutes * Self.minute - 1) == nil)
            now += minutes * Self.minute
            #expect(origin.best(at: now) == first)
        }
        origin.table.succeeded(first, of: origin.key)
        origin.failed(first, at: now)
        #expect(origin.best(at: now + 5 * Self.minute) == first)
    }

    @Test func aFailureOutlivesTheField() {
        var origin = Origin()
        origin.take(first)
        origin.failed(first, at: 0)
        origin.take(first, at: Self.oneSecond)
        #expect(origin.best(at: Self.oneSecond) == nil)
        // Another alternative is tried.
        origin.take(first, second, at: Self.oneSecond)
        #expect(origin.best(at: Self.oneSecond) == second)
        origin.table.succeeded(first, of: origin.key)
        #expect(origin.best(at: Self.oneSecond) == first)
    }

    @Test func anotherNetworkEndsFailuresAndWhatIsNotPersistent() {
        var origin = Origin()
        let kept = AlternativeServiceField.Offer(second, isPersistent: true)
        origin.table.take(
            .offered([AlternativeServiceField.Offer(first), kept]), of: origin.key, host: "a.example", age: 0, now: 0)
        origin.failed(second, at: 0)
        #expect(origin.best() == first)
        origin.table.networkChanged()
        #expect(origin.best() == second)
        origin.table.take(.clear, of: origin.key, host: "a.example", age: 0, now: 0)
        origin.take(first)
        origin.table.networkChanged()
        #expect(origin.best() == nil && origin.table.count == 0)
    }

    @Test func theNumberOfOriginsIsBounded() {
        var origin = Origin()
        func other(_ number: Int) -> AlternativeTable.Key {
            AlternativeTable.Key(origin: "https://\(number).example:443", policy: 1)
        }
        origin.take(first)
        for number in 0..<2 * AlternativeTable.limit {
            origin.table.take(
                .offered([AlternativeServiceField.Offer(second)]), of: other(number), host: "", age: 0, now: 0)
            origin.table.failed(second, of: other(number), now: 0)
            // The origin that is used stays.
            #expect(origin.best() == first)
        }
        #expect(origin.table.count == AlternativeTable.limit)
        #expect(origin.table.best(of: other(0), allowsOtherHosts: true, now: 0) == nil)
    }
}
