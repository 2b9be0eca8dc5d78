/// A hash table from types to values without reference counts, such as the way to write a type.
///
/// `Dictionary` hashes with SipHash and looks at reference counts, which takes longer than to write a short value.
@safe
struct TypeTable<Value> {
    private typealias Entry = (type: UInt, value: Value?)

    /// Empty entries have the type 0.
    private var entries: UnsafeMutablePointer<Entry>
    /// A power of two.
    private var capacity = 64
    private var count = 0

    init() {
        unsafe entries = .allocate(capacity: capacity)
        unsafe entries.initialize(repeating: (0, nil), count: capacity)
    }

    subscript(_ type: ObjectIdentifier) -> Value? {
        @inline(__always) get {
            let key = UInt(bitPattern: type)
            var index = slot(of: key)
            while unsafe entries[index].type != key {
                if unsafe entries[index].type == 0 { return nil }
                index = (index &+ 1) & (capacity &- 1)
            }
            return unsafe entries[index].value
        }
    }

    mutating func insert(_ value: Value, for type: ObjectIdentifier) {
        if count * 2 >= capacity { grow() }
        let key = UInt(bitPattern: type)
        var index = slot(of: key)
        while unsafe entries[index].type != 0 && entries[index].type != key {
            index = (index &+ 1) & (capacity &- 1)
        }
        if unsafe entries[index].type == 0 { count += 1 }
        unsafe entries[index] = (key, value)
    }

    private mutating func grow() {
        let old = unsafe entries
        let oldCapacity = capacity
        capacity *= 2
        unsafe entries = .allocate(capacity: capacity)
        unsafe entries.initialize(repeating: (0, nil), count: capacity)
        for place in 0..<oldCapacity where unsafe old[place].type != 0 {
            var index = unsafe slot(of: old[place].type)
            while unsafe entries[index].type != 0 { index = (index &+ 1) & (capacity &- 1) }
            unsafe entries[index] = old[place]
        }
        unsafe old.deinitialize(count: oldCapacity)
        unsafe old.deallocate()
    }

    /// Metadata is aligned to 8 bytes at least.
    @inline(__always)
    private func slot(of type: UInt) -> Int {
        Int(truncatingIfNeeded: ((type &>> 4) &* 0x9E37_79B9) &>> 8) & (capacity &- 1)
    }

    func deallocate() {
        unsafe entries.deinitialize(count: capacity)
        unsafe entries.deallocate()
    }
}
