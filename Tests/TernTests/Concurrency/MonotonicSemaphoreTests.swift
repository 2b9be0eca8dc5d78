#if os(Linux)
import Glibc
import Synchronization
import Testing

@testable import TernConcurrency

@Suite("Monotonic semaphore", .timeLimit(.minutes(1)))
struct MonotonicSemaphoreTests {
    /// A thread that waits once, and its number.
    private final class WaitingThread: Sendable {
        let semaphore = MonotonicSemaphore()
        private let number = Atomic<Int>(0)
        private let results: AsyncStream<Bool>
        private let continuation: AsyncStream<Bool>.Continuation

        init() { (results, continuation) = AsyncStream.makeStream(of: Bool.self) }

        func start(_ duration: Duration) {
            let code = SystemThread.start { [self] in
                number.store(Self.currentThread, ordering: .sequentiallyConsistent)
                continuation.yield(semaphore.wait(for: duration))
            }
            #expect(code == 0)
        }

        var result: Bool? {
            get async {
                for await result in results { return result }
                return nil
            }
        }

        /// The arguments of the futex call in which the thread waits, once it waits.
        func futexCall() async -> [Int] {
            while true {
                let words = Self.systemCall(of: number.load(ordering: .sequentiallyConsistent))
                if words.first == Self.futexNumber { return words }
                await Task.yield()
            }
        }

        /// The number of the calling thread: the last part of where /proc/thread-self leads.
        private static var currentThread: Int {
            var bytes = [CChar](repeating: 0, count: 64)
            let count = unsafe readlink("/proc/thread-self", &bytes, bytes.count)
            let digits = bytes.prefix(max(0, count)).reversed().prefix { $0 != 0x2F }.reversed()
            return digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
        }

        #if arch(arm64)
        private static let futexNumber = 98
        #else
        private static let futexNumber = 202
        #endif

        /// The number and the arguments of the call in which a thread waits; empty while it runs.
        private static func systemCall(of thread: Int) -> [Int] {
            let file = unsafe open("/proc/self/task/\(thread)/syscall", O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { return [] }
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = unsafe read(file, &bytes, bytes.count)
            let words = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
            return words.compactMap { word in
                word.hasPrefix("0x") ? Int(word.dropFirst(2), radix: 16) : Int(word)
            }
        }
    }

    /// The flag of a futex call whose deadline is one of the wall clock.
    private static let realTimeFlag = 256

    /// A clock that is set does not lengthen or shorten the wait: its deadline is one of the monotonic clock.
    @Test(.enabled(if: unsafe access("/proc/self/syscall", R_OK) == 0))
    func aWaitDoesNotFollowTheWallClock() async throws {
        let thread = WaitingThread()
        thread.start(.seconds(3_600))
        let call = await thread.futexCall()
        try #require(call.count > 4)
        #expect(call[2] & Self.realTimeFlag == 0, "futex with the operation \(call[2])")
        // With a time limit, which a wait without one would lack.
        #expect(call[4] != 0)
        thread.semaphore.signal()
        #expect(await thread.result == true)
    }

    @Test func aSignalBeforeTheWaitIsKept() {
        let semaphore = MonotonicSemaphore()
        semaphore.signal()
        semaphore.signal()
        #expect(semaphore.wait(for: .zero))
        #expect(semaphore.wait(for: .seconds(3_600)))
        #expect(!semaphore.wait(for: .zero))
    }

    @Test func aWaitEndsAtItsLimit() {
        let semaphore = MonotonicSemaphore()
        let start = MonotonicClock.nanoseconds()
        #expect(!semaphore.wait(for: .milliseconds(20)))
        #expect(MonotonicClock.nanoseconds() - start >= 20_000_000)
    }

    @Test(arguments: [Duration.seconds(Int64.max / 2), .nanoseconds(Int64.max), .seconds(-1)])
    func aLimitOfAnyLengthIsAllowed(duration: Duration) async {
        let thread = WaitingThread()
        thread.semaphore.signal()
        thread.start(duration)
        #expect(await thread.result == true)
    }
}
#endif
