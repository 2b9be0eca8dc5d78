#if os(Linux)
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import TernEngine

/// A function that resolves names for tests. It counts its calls, and waits until it is opened.
private final class FakeNames: Sendable {
    let time = Atomic<UInt64>(0)
    let isFailing = Atomic<Bool>(false)
    private let calls = Atomic<Int>(0)
    private let running = Atomic<Int>(0)
    private let highest = Atomic<Int>(0)
    private let gate = DispatchSemaphore(value: 0)

    var callCount: Int { calls.load(ordering: .sequentiallyConsistent) }
    var highestConcurrency: Int { highest.load(ordering: .sequentiallyConsistent) }

    /// Lets so many calls return.
    func open(_ count: Int = 1_000) { for _ in 0..<count { gate.signal() } }

    func resolver(linger: Duration = .seconds(5)) -> Resolver {
        Resolver(linger: linger, now: { self.time.load(ordering: .relaxed) }, resolve: { self.resolve($0) })
    }

    private func resolve(_ name: String) -> Result<[SocketAddress], EngineError> {
        calls.add(1, ordering: .sequentiallyConsistent)
        let now = running.add(1, ordering: .sequentiallyConsistent).newValue
        highest.max(now, ordering: .sequentiallyConsistent)
        gate.wait()
        running.subtract(1, ordering: .sequentiallyConsistent)
        if isFailing.load(ordering: .relaxed) { return .failure(EngineError(.dns, "no \(name)")) }
        return .success([.ipv4(0x0A00_0001, port: 0)])
    }
}

extension Resolver {
    fileprivate func answer(for name: String, port: UInt16 = 80) async -> Result<[SocketAddress], EngineError> {
        await withCheckedContinuation { continuation in
            _ = lookUp(name, port: port) { continuation.resume(returning: $0) }
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct ResolverTests {
    private static let addresses = [SocketAddress.ipv4(0x0A00_0001, port: 80)]

    /// The C library writes to name servers over TCP without a flag against the signal.
    @Test func theThreadsOfTheResolverBlockSIGPIPE() async {
        let resolver = Resolver(
            linger: .zero, now: { 0 },
            resolve: { _ in
                var mask = sigset_t()
                unsafe pthread_sigmask(SIG_BLOCK, nil, &mask)
                let isBlocked = unsafe sigismember(&mask, SIGPIPE) == 1
                return isBlocked ? .success([.ipv4(0x0A00_0001, port: 0)]) : .failure(EngineError(.dns, "not blocked"))
            })
        #expect(await resolver.answer(for: "a.example") == .success(Self.addresses))
    }

    @Test func anAnswerHasThePortAndIsKeptForAMinute() async {
        let names = FakeNames()
        names.open()
        let resolver = names.resolver()
        #expect(resolver.cached("a.example", port: 80) == nil)
        #expect(await resolver.answer(for: "a.example") == .success(Self.addresses))
        #expect(resolver.cached("a.example", port: 81) == [.ipv4(0x0A00_0001, port: 81)])
        #expect(await resolver.answer(for: "a.example") == .success(Self.addresses))
        #expect(names.callCount == 1)
        names.time.store(60_000_000_000, ordering: .relaxed)
        #expect(resolver.cached("a.example", port: 80) == nil)
        #expect(await resolver.answer(for: "a.example") == .success(Self.addresses))
        #expect(names.callCount == 2)
    }

    @Test func aFailureIsNotKept() async {
        let names = FakeNames()
        names.open()
        names.isFailing.store(true, ordering: .relaxed)
        let resolver = names.resolver()
        #expect(await resolver.answer(for: "a") == .failure(EngineError(.dns, "no a")))
        names.isFailing.store(false, ordering: .relaxed)
        #expect(await resolver.answer(for: "a") == .success(Self.addresses))
    }

    @Test func twoHundredNamesShareEightThreads() async {
        let names = FakeNames()
        names.isFailing.store(true, ordering: .relaxed)
        let resolver = names.resolver()
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    guard case .failure(let error) = await resolver.answer(for: "n\(number)") else { return false }
                    return error.kind == .dns
                }
            }
            group.addTask {
                names.open()
                return true
            }
            #expect(await group.allSatisfy { $0 })
        }
        #expect(names.callCount == 200)
        #expect(names.highestConcurrency <= 8)
        #expect(resolver.threads <= 8)
    }

    @Test func lookUpsOfOneNameShareAResolution() async {
        let names = FakeNames()
        let resolver = names.resolver()
        await withCheckedContinuation { continuation in
            let missing = Atomic<Int>(50)
            let counter = Countdown(missing.load(ordering: .relaxed)) { continuation.resume() }
            for _ in 0..<50 { _ = resolver.lookUp("a", port: 80) { _ in counter.decrease() } }
            names.open()
        }
        #expect(names.callCount == 1)
    }

    @Test func aCancelledLookUpIsNotCompleted() async {
        let names = FakeNames()
        let resolver = names.resolver()
        let cancelled = resolver.lookUp("a", port: 80) { _ in Issue.record("completed after cancel") }
        cancelled.cancel()
        cancelled.cancel()
        let other = resolver.lookUp("a", port: 80) { _ in Issue.record("completed after cancel") }
        async let answer = resolver.answer(for: "a")
        other.cancel()
        names.open()
        #expect(await answer == .success(Self.addresses))
    }

    @Test func cancellingDoesNotWaitForTheResolution() {
        let names = FakeNames()
        let resolver = names.resolver()
        // All threads are busy, and none returns before the end of this test.
        let lookUps = (0..<10_000).map { resolver.lookUp("n\($0)", port: 80) { _ in } }
        for lookUp in lookUps { lookUp.cancel() }
        #expect(names.callCount <= 8)
        names.open()
    }

    @Test func threadsEndWhenNoNameComes() async {
        let names = FakeNames()
        names.open()
        let resolver = names.resolver(linger: .zero)
        _ = await resolver.answer(for: "a")
        while resolver.threads > 0 { await Task.yield() }
        #expect(await resolver.answer(for: "b") == .success(Self.addresses))
    }

    @Test(arguments: ["localhost", "LocalHost", "localhost.", "a.localhost", "x.y.localhost."])
    func loopbackNamesNeedNoLookUp(name: String) async {
        let names = FakeNames()
        let resolver = names.resolver()
        let loopback = ["::1", "127.0.0.1"].compactMap { SocketAddress(numeric: $0, port: 8_080) }
        #expect(resolver.cached(name, port: 8_080) == loopback)
        #expect(await resolver.answer(for: name, port: 8_080) == .success(loopback))
        #expect(names.callCount == 0)
    }

    @Test(arguments: ["notlocalhost", "localhost.example", "ocalhost", ""])
    func otherNamesAreLookedUp(name: String) {
        #expect(FakeNames().resolver().cached(name, port: 1) == nil)
    }

    @Test(arguments: ["192.0.2.1", "2001:db8::1", "fe80::1%1"])
    func addressesNeedNoLookUp(text: String) async throws {
        let names = FakeNames()
        let address = try #require(SocketAddress(numeric: text, port: 80))
        #expect(await names.resolver().answer(for: text) == .success([address]))
        #expect(names.callCount == 0)
    }

    @Test(arguments: ["", "no-such-name.invalid", "a b", "a\0b", String(repeating: "a.", count: 400)])
    func theSystemReportsAFailureAsOneOfTheName(name: String) {
        guard case .failure(let error) = SystemResolver.addresses(of: name) else {
            Issue.record("\(name) was resolved")
            return
        }
        #expect(error.kind == .dns)
        #expect(error.reason.hasPrefix("the name '\(name)' could not be resolved"))
    }

    @Test func theSystemReadsItsHostsFile() throws {
        let addresses = try SystemResolver.addresses(of: "localhost").get()
        #expect(addresses.contains(.ipv4(0x7F00_0001, port: 0)) || addresses.contains { $0.text == "::1" })
        #expect(Set(addresses).count == addresses.count)
    }
}

/// Calls a closure when it has been decreased a number of times.
private final class Countdown: Sendable {
    private let missing: Atomic<Int>
    private let action: @Sendable () -> Void

    init(_ count: Int, action: @escaping @Sendable () -> Void) {
        missing = Atomic(count)
        self.action = action
    }

    func decrease() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { action() }
    }
}
#endif
