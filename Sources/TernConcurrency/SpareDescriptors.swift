import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The descriptors of the process that it can do without: those of idle connections. When no descriptor is free
/// (EMFILE, ENFILE), the one that has been unused for the longest time is closed, whichever session it belongs to.
package enum SpareDescriptors {
    /// The holder of spare descriptors, such as the connections of a session.
    package final class Holder: Sendable {
        fileprivate let unusedSince = Atomic<UInt64>(.max)
        /// Asks the holder to close its oldest spare descriptor soon, and to report the next one. Called on any thread.
        fileprivate let closeOldest: @Sendable () -> Void
        private let number: UInt64

        /// Creates a holder, which is asked until it is released.
        package init(closeOldest: @escaping @Sendable () -> Void) {
            self.closeOldest = closeOldest
            number = SpareDescriptors.nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
            SpareDescriptors.holders.withLock { $0[number] = WeakHolder(holder: self) }
        }

        /// Reports the time since when the oldest spare descriptor is unused, in nanoseconds of `MonotonicClock`;
        /// `UInt64.max` without one. A late report costs that the holder is asked once in vain.
        package func oldestIsUnused(since time: UInt64) { unusedSince.store(time, ordering: .relaxed) }

        deinit { _ = SpareDescriptors.holders.withLock { $0.removeValue(forKey: number) } }
    }

    private struct WeakHolder: Sendable {
        weak let holder: Holder?
    }

    private static let nextNumber = Atomic<UInt64>(0)
    private static let holders = Lock<[UInt64: WeakHolder]>([:])

    /// The time after which a call that lacked a descriptor is tried again, in nanoseconds. 5 milliseconds: a holder
    /// closes a descriptor in the next turn of its loop.
    package static let pause: UInt64 = 5_000_000
    /// The number of times that such a call is tried again. Others can take the descriptors that are closed for it.
    package static let tries = 20

    /// Returns whether an error number means that the process or the system has no free descriptor.
    package static func isLack(_ code: Int32) -> Bool { code == EMFILE || code == ENFILE }

    /// Lets the descriptor that has been unused for the longest time be closed soon. Returns false if there is none.
    package static func closeOldest() -> Bool {
        let holders = holders.withLock { holders in holders.values.compactMap(\.holder) }
        let times = holders.map { ($0, $0.unusedSince.load(ordering: .relaxed)) }
        guard let (oldest, time) = times.min(by: { $0.1 < $1.1 }), time < .max else { return false }
        oldest.closeOldest()
        return true
    }
}
