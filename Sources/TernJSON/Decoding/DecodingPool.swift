import Synchronization

/// Keeps the states of finished decodings for the next ones, with their memory, containers, and tables of keys and
/// types.
///
/// Each slot holds an address or zero, which threads exchange atomically: no thread waits.
@safe
struct DecodingPool: Sendable {
    private static let shared = DecodingPool()
    private static var slotCount: Int { 8 }
    /// The largest tape that is kept, in tokens of 16 bytes.
    static var largestTape: Int { 65_536 }
    /// The largest number of types of keys whose tables are kept.
    static var largestKeyTypes: Int { 128 }

    // Never freed: the pool lives as long as the process. A number, because nothing but the atomics behind it changes.
    private let address: UInt

    private init() {
        let slots = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: Self.slotCount)
        for index in 0..<Self.slotCount { unsafe (slots + index).initialize(to: Atomic(0)) }
        address = UInt(bitPattern: slots)
    }

    private static var slots: UnsafeMutablePointer<Atomic<UInt>> {
        // Made of a pointer, so never nil.
        unsafe UnsafeMutablePointer(bitPattern: shared.address).unsafelyUnwrapped
    }

    static func take() -> DecodingOwner {
        if DecodingPark.isUsed { DecodingPark.sweep() }
        let slots = unsafe slots
        for index in 0..<slotCount {
            if unsafe slots[index].load(ordering: .relaxed) == 0 { continue }
            let bits = unsafe slots[index].exchange(0, ordering: .acquiring)
            if let address = unsafe UnsafeRawPointer(bitPattern: bits) {
                return unsafe Unmanaged<DecodingOwner>.fromOpaque(address).takeRetainedValue()
            }
        }
        return DecodingOwner()
    }

    static func put(_ owner: DecodingOwner) {
        let reference = unsafe Unmanaged.passRetained(owner)
        let bits = unsafe UInt(bitPattern: reference.toOpaque())
        let slots = unsafe slots
        for index in 0..<slotCount {
            if unsafe slots[index].load(ordering: .relaxed) != 0 { continue }
            let isStored = unsafe slots[index]
                .compareExchange(expected: 0, desired: bits, ordering: .releasing).exchanged
            if isStored { return }
        }
        unsafe reference.release()
    }
}

/// Keeps the states of decodings whose keyed containers outlived them, as long as one of these containers lives.
///
/// A keyed container holds no reference to its state. Each use of the pool looks at a few of these states, and frees
/// those whose containers have gone.
enum DecodingPark {
    private struct States {
        /// The addresses of the owners, each of which is retained.
        var parked: [UInt] = []
        var next = 0
    }

    private static let states = Mutex(States())
    private static let count = Atomic(0)

    static var isUsed: Bool { count.load(ordering: .relaxed) > 0 }

    /// The number of states that are kept, for tests.
    static var size: Int { count.load(ordering: .relaxed) }

    static func keep(_ owner: DecodingOwner) {
        let address = unsafe UInt(bitPattern: Unmanaged.passUnretained(owner).toOpaque())
        states.withLock { keep(address, in: &$0) }
        // Alive until it is retained.
        withExtendedLifetime(owner) {}
    }

    private static func keep(_ address: UInt, in states: inout States) {
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: address) else { return }
        let reference = unsafe Unmanaged<DecodingOwner>.fromOpaque(pointer)
        let storage = unsafe reference.takeUnretainedValue().core.storage
        if unsafe storage.pointee.isParked { return }
        unsafe storage.pointee.isParked = true
        _ = unsafe reference.retain()
        states.parked.append(address)
        count.store(states.parked.count, ordering: .relaxed)
    }

    /// Makes a keyed container of a state whose decoding is over. With the lock held, because ``sweep()`` looks at the
    /// containers.
    static func container<Key: CodingKey>(
        _ core: DecodingCore, at index: Int, keyedBy type: Key.Type
    ) -> KeyedDecodingContainer<Key> {
        let owner = core.owner
        let address = unsafe UInt(bitPattern: Unmanaged.passUnretained(owner).toOpaque())
        var made: KeyedDecodingContainer<Key>?
        states.withLock { states in
            keep(address, in: &states)
            made = unsafe core.sharedContainer(at: index, keyedBy: type)
        }
        withExtendedLifetime(owner) {}
        // Set above.
        return unsafe made.unsafelyUnwrapped
    }

    @inline(never)
    static func sweep() {
        // Freed after the lock.
        var free: [UInt] = []
        states.withLock { states in
            for _ in 0..<min(4, states.parked.count) {
                if states.next >= states.parked.count { states.next = 0 }
                if isFree(states.parked[states.next]) {
                    states.parked.swapAt(states.next, states.parked.count - 1)
                    if let last = states.parked.popLast() { free.append(last) }
                } else {
                    states.next += 1
                }
            }
            count.store(states.parked.count, ordering: .relaxed)
        }
        for address in free {
            if let pointer = unsafe UnsafeRawPointer(bitPattern: address) {
                unsafe Unmanaged<DecodingOwner>.fromOpaque(pointer).release()
            }
        }
    }

    /// Returns whether nobody else holds an owner, and its containers are gone.
    private static func isFree(_ address: UInt) -> Bool {
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: address) else { return false }
        // Takes the reference of the list out, and gives it back.
        var owner = unsafe Unmanaged<DecodingOwner>.fromOpaque(pointer).takeRetainedValue()
        defer { _ = unsafe Unmanaged.passRetained(owner) }
        return isKnownUniquelyReferenced(&owner) && owner.core.containersAreFree
    }
}
