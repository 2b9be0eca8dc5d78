#if os(Linux)
import Glibc
import Synchronization
import TernConcurrency

/// The event loops of the process. They are created with the first use and never freed.
package enum EventLoops {
    private struct Choice {
        var count = defaultCount
        var isFinal = false
    }

    /// The largest number of loops.
    package static let maximumCount = 64

    /// Whether there are three loops, over which connections are spread at once. For the tests of a debug build (`make
    /// test-loops`): a release build does not read the environment.
    package static let areSpreadForTests: Bool = {
        #if DEBUG
        unsafe getenv("TERN_THREE_LOOPS") != nil
        #else
        false
        #endif
    }()

    /// One loop for four processors, at most 8: a loop keeps about three other processors busy.
    private static let defaultCount =
        areSpreadForTests ? 3 : max(1, min(8, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 4))
    private static let choice = Lock(Choice())
    private static let nextHome = Atomic<Int>(0)

    /// The loops, each with its number as the index.
    package static let all: [EventLoop] = {
        let count = choice.withLock { choice in
            choice.isFinal = true
            return choice.count
        }
        return (0..<count).map { EventLoop($0) }
    }()

    static let taskExecutors = all.map { LoopTaskExecutor($0) }

    /// The number of loops.
    package static var count: Int { choice.withLock { $0.count } }

    /// Sets the number of loops. Returns false if the loops exist already.
    package static func setCount(_ count: Int) -> Bool {
        choice.withLock { choice in
            if choice.isFinal { return false }
            choice.count = max(1, min(count, maximumCount))
            return true
        }
    }

    /// Returns the loops, beginning with the one on which the next session is at home: sessions take turns.
    package static func nextInTurn() -> [EventLoop] {
        let turn = nextHome.wrappingAdd(1, ordering: .relaxed).oldValue
        let first = Int(UInt(bitPattern: turn) % UInt(all.count))
        return Array(all[first...] + all[..<first])
    }
}
#endif
