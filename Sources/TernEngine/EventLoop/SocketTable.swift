#if os(Linux)
import CTernLoop
import Glibc

/// The place of a watched socket in its loop.
package struct SocketPlace: Sendable, Equatable {
    let index: Int32
    let generation: UInt32
    let descriptor: Int32
}

/// The sockets that a loop watches. Confined to the loop's thread.
///
/// Events carry the place and its generation, so that an event of a socket that was closed in the same turn never
/// reaches the socket that took its place or its descriptor.
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

    func add(_ descriptor: Int32, for events: SocketEvents, handler: any SocketHandler) -> SocketPlace? {
        let index = free.popLast() ?? Int32(clamping: slots.count)
        if Int(index) == slots.count { slots.append(Slot()) }
        let place = SocketPlace(index: index, generation: slots[Int(index)].generation, descriptor: descriptor)
        let code = control(EPOLL_CTL_ADD, place, for: events)
        guard code == 0 else {
            free.append(index)
            errno = code
            return nil
        }
        slots[Int(index)].handler = handler
        return place
    }

    func change(_ place: SocketPlace, _ events: SocketEvents) {
        guard isCurrent(place) else { return }
        // Changing the events of a registered descriptor needs no memory and cannot fail.
        _ = control(EPOLL_CTL_MOD, place, for: events)
    }

    func change(_ place: SocketPlace, handler: any SocketHandler) {
        guard isCurrent(place) else { return }
        slots[Int(place.index)].handler = handler
    }

    func remove(_ place: SocketPlace) {
        guard isCurrent(place) else { return }
        _ = control(EPOLL_CTL_DEL, place, for: [])
        slots[Int(place.index)].handler = nil
        slots[Int(place.index)].generation &+= 1
        free.append(place.index)
    }

    /// Returns the handler of an event; nil if the socket is no longer watched.
    func handler(for data: UInt64) -> (any SocketHandler)? {
        let index = Int(truncatingIfNeeded: data & 0xFFFF_FFFF)
        guard index < slots.count, slots[index].generation == UInt32(truncatingIfNeeded: data >> 32) else { return nil }
        return slots[index].handler
    }

    private func isCurrent(_ place: SocketPlace) -> Bool {
        slots[Int(place.index)].generation == place.generation && slots[Int(place.index)].handler != nil
    }

    private func control(_ operation: Int32, _ place: SocketPlace, for events: SocketEvents) -> Int32 {
        let data = UInt64(place.generation) << 32 | UInt64(UInt32(bitPattern: place.index))
        return tern_loop_control(epoll, operation, place.descriptor, events.rawValue, data)
    }
}
#endif
