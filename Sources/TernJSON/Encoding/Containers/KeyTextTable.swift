/// The names of one key type as they are written: with quotes, escapes, a comma before and a colon after them.
///
/// Only for key types of at most one byte, such as the enumerations that the compiler makes: the byte is the index.
@safe
struct KeyTextTable {
    @safe
    struct Entry {
        /// `,"name":`, readable up to 16 bytes beyond the end.
        var text: UnsafeMutablePointer<UInt8>
        var count = 0
        /// The first eight bytes of the name: see ``NameNote/key``.
        var prefix = UInt64(0)
        /// The tag of the first key with the same name.
        var tag = UInt8(0)
    }

    /// The type of the keys.
    let isTagged: Bool
    /// Nil for a key that was not needed yet.
    private var entries: UnsafeMutablePointer<Entry?>
    private(set) var count = 0
    /// The keys of the entries, for coding paths.
    private(set) var keys: [(any CodingKey)?] = []
    /// The containers of this type. An array would be copied when one asks whether a container has a single reference.
    let containers: UnsafeMutablePointer<KeyedContainerRecord>
    /// The objects within these.
    let boxes: UnsafeMutablePointer<ContainerBox>
    /// A ``TypedContainerMaker`` of the containers' type.
    let maker: ContainerMaker
    private(set) var containerCount = 0
    /// The number of containers that are kept for a type within itself.
    private static let maximumContainers = 8

    init<Key: CodingKey>(of type: Key.Type) {
        isTagged = MemoryLayout<Key>.size <= 1
        maker = TypedContainerMaker<KeyedEncodingContainer<Key>>()
        unsafe entries = .allocate(capacity: 0)
        unsafe containers = .allocate(capacity: Self.maximumContainers)
        unsafe boxes = .allocate(capacity: Self.maximumContainers)
    }

    /// Returns the entry of a key, if it was written before.
    @inline(__always)
    func entry(at tag: UInt8) -> Entry? { unsafe Int(tag) < count ? entries[Int(tag)] : nil }

    /// Adds the text of a key.
    ///
    /// - Parameters:
    ///   - name: The name as it is written, with quotes.
    ///   - prefix: The first eight bytes of the name.
    mutating func insert(_ key: some CodingKey, tag: UInt8, name: UnsafeBufferPointer<UInt8>, prefix: UInt64) -> Entry {
        let index = Int(tag)
        if index >= count {
            let capacity = (index / 16 + 1) * 16
            let larger = UnsafeMutablePointer<Entry?>.allocate(capacity: capacity)
            unsafe larger.moveInitialize(from: entries, count: count)
            unsafe (larger + count).initialize(repeating: nil, count: capacity - count)
            unsafe entries.deallocate()
            unsafe entries = larger
            count = capacity
        }
        while keys.count <= index { keys.append(nil) }
        keys[index] = key
        let length = name.count + 2
        let text = UnsafeMutablePointer<UInt8>.allocate(capacity: length + 32)
        unsafe text.initialize(repeating: 0, count: length + 32)
        unsafe text[0] = UInt8(ascii: ",")
        for place in 0..<name.count { unsafe text[place + 1] = name[place] }
        unsafe text[length - 1] = UInt8(ascii: ":")
        let first = unsafe firstTag(of: text, count: length)
        let entry = unsafe Entry(text: text, count: length, prefix: prefix, tag: first ?? tag)
        unsafe entries[index] = entry
        return entry
    }

    private func firstTag(of text: UnsafeMutablePointer<UInt8>, count length: Int) -> UInt8? {
        let name = unsafe UnsafeBufferPointer(start: text, count: length)
        for index in 0..<count {
            guard let entry = unsafe entries[index], entry.count == length else { continue }
            if unsafe UnsafeBufferPointer(start: entry.text, count: length).elementsEqual(name) {
                return UInt8(truncatingIfNeeded: index)
            }
        }
        return nil
    }

    /// Keeps a container for the next object. Returns false if there are enough.
    mutating func keep(_ box: ContainerBox, _ place: KeyedPlace) -> Bool {
        guard containerCount < Self.maximumContainers else { return false }
        let record = unsafe KeyedContainerRecord(place: place, state: place.state, isInUse: true)
        unsafe (boxes + containerCount).initialize(to: box)
        unsafe (containers + containerCount).initialize(to: record)
        containerCount += 1
        return true
    }

    /// Gives those containers that have escaped a reference to the storage of their text, and forgets them.
    ///
    /// Returns whether none has escaped.
    mutating func releaseContainers() -> Bool {
        var kept = 0
        for index in 0..<containerCount {
            let record = unsafe containers + index
            if isUnused(index) {
                unsafe record.pointee.isInUse = false
                unsafe record.pointee.state.pointee.owner = nil
                if kept != index {
                    unsafe swap(&containers[kept], &containers[index])
                    unsafe swap(&boxes[kept], &boxes[index])
                }
                kept += 1
            } else if unsafe record.pointee.state.pointee.owner == nil {
                // It can be that of a late text, which nobody else keeps.
                unsafe record.pointee.state.pointee.owner = record.pointee.state.pointee.container.writer.storage
            }
        }
        if kept == containerCount { return true }
        unsafe (containers + kept).deinitialize(count: containerCount - kept)
        unsafe (boxes + kept).deinitialize(count: containerCount - kept)
        containerCount = kept
        return false
    }

    /// Returns whether nobody else has a container.
    @inline(__always)
    func isUnused(_ index: Int) -> Bool { unsafe isKnownUniquelyReferenced(&boxes[index]) }

    mutating func deallocate() {
        unsafe containers.deinitialize(count: containerCount)
        unsafe containers.deallocate()
        unsafe boxes.deinitialize(count: containerCount)
        unsafe boxes.deallocate()
        for index in 0..<count { unsafe entries[index]?.text.deallocate() }
        unsafe entries.deallocate()
    }
}

/// A `KeyedEncodingContainer` that is used again for the next object of the same type.
@safe
struct KeyedContainerRecord {
    let place: KeyedPlace
    let state: UnsafeMutablePointer<KeyedPlace.State>
    /// Whether it is in the list of containers that this encoding uses.
    var isInUse = false
}

/// The key tables of all types that an encoding storage has met.
@safe
struct KeyTableCache {
    private var tables = unsafe TypeTable<UnsafeMutablePointer<KeyTextTable>>()
    private var all: [UnsafeMutablePointer<KeyTextTable>] = unsafe []
    /// The tables whose containers were used in this encoding.
    private var used = unsafe PooledRow<UnsafeMutablePointer<KeyTextTable>>()

    @inline(__always)
    mutating func table<Key: CodingKey>(of type: Key.Type) -> UnsafeMutablePointer<KeyTextTable> {
        if let table = unsafe tables[ObjectIdentifier(type)] { return unsafe table }
        return unsafe newTable(of: type)
    }

    @inline(never)
    private mutating func newTable<Key: CodingKey>(of type: Key.Type) -> UnsafeMutablePointer<KeyTextTable> {
        let table = UnsafeMutablePointer<KeyTextTable>.allocate(capacity: 1)
        unsafe table.initialize(to: KeyTextTable(of: type))
        unsafe tables.insert(table, for: ObjectIdentifier(type))
        unsafe all.append(table)
        return unsafe table
    }

    mutating func markUsed(_ table: UnsafeMutablePointer<KeyTextTable>) { unsafe used.append(table) }

    /// Gives those containers that have escaped a reference to the storage of their text, and forgets them.
    ///
    /// Returns whether none has escaped.
    mutating func releaseContainers() -> Bool {
        var isUnused = true
        for index in 0..<(unsafe used.count) {
            if unsafe !used.elements[index].pointee.releaseContainers() { isUnused = false }
        }
        unsafe used.cut(to: 0)
        return isUnused
    }

    mutating func deallocate() {
        unsafe tables.deallocate()
        unsafe used.deallocate()
        while let table = unsafe all.popLast() {
            unsafe table.pointee.deallocate()
            unsafe table.deinitialize(count: 1)
            unsafe table.deallocate()
        }
    }
}
