#if os(Linux)
import CTernLoop
import Glibc

/// A watched socket of a loop, as the loop knows it.
package struct SocketRegistration: Sendable, Equatable {
    let index: Int32
    let generation: UInt32
    let descriptor: Int32
}

/// The sockets that a loop watches. Confined to the loop's thread.
///
/// Events carry the index and its generation, so that an event of a socket that was closed in the same turn never
/// reaches the socket that took its index or its descriptor.
final class SocketTable {
    /// The number that events of the wake-up descriptor carry.
    static let wakeup = UInt64.max

    private struct Slot {
        var handler: (any SocketHandler)?
        var generation: UInt32 = 0
    }

    private let epoll: Int32
    private var slots: [Slot] = []
    private var free: [Int32] = []

    init(epoll: Int32) { self.epoll = epoll }

    func add(_ descriptor: Int32, for events: SocketEvents, handler: any SocketHandler) -> SocketRegistration? {
        let index = free.popLast() ?? Int32(clamping: slots.count)
        if Int(index) == slots.count { slots.append(Slot()) }
        let registration = SocketRegistration(
            index: index, generation: slots[Int(index)].generation, descriptor: descriptor)
        let code = control(EPOLL_CTL_ADD, registration, for: events)
        guard code == 0 else {
            free.append(index)
            errno = code
            return nil
        }
        slots[Int(index)].handler = handler
        return registration
    }

    func change(_ registration: SocketRegistration, _ events: SocketEvents) {
        guard isCurrent(registration) else { return }
        // Changing the events of a registered descriptor needs no memory and cannot fail.
        _ = control(EPOLL_CTL_MOD, registration, for: events)
    }

    func change(_ registration: SocketRegistration, handler: any SocketHandler) {
        guard isCurrent(registration) else { return }
        slots[Int(registration.index)].handler = handler
    }

    func remove(_ registration: SocketRegistration) {
        guard isCurrent(registration) else { return }
        _ = control(EPOLL_CTL_DEL, registration, for: [])
        slots[Int(registration.index)].handler = nil
        slots[Int(registration.index)].generation &+= 1
        free.append(registration.index)
    }

    /// Returns the handler of an event; nil if the socket is no longer watched.
    func handler(for data: UInt64) -> (any SocketHandler)? {
        let index = Int(truncatingIfNeeded: data & 0xFFFF_FFFF)
        guard index < slots.count, slots[index].generation == UInt32(truncatingIfNeeded: data >> 32) else { return nil }
        return slots[index].handler
    }

    private func isCurrent(_ registration: SocketRegistration) -> Bool {
        slots[Int(registration.index)].generation == registration.generation
            && slots[Int(registration.index)].handler != nil
    }

    private func control(_ operation: Int32, _ registration: SocketRegistration, for events: SocketEvents) -> Int32 {
        let data = UInt64(registration.generation) << 32 | UInt64(UInt32(bitPattern: registration.index))
        return tern_loop_control(epoll, operation, registration.descriptor, events.rawValue, data)
    }
}
#endif
