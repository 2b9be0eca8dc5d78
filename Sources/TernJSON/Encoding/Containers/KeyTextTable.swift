/// The names of one key type as they are written: with quotes, escapes, a comma before and a colon after them.
///
/// Only for key types of at most one byte, such as the enumerations that the compiler makes: the byte is the index.
@safe
struct KeyTextTable {
    @safe
    struct Entry {
        /// `,"name":`, readable up to 16 bytes beyond the end. Nil if the name was not needed yet.
        var text: UnsafeMutablePointer<UInt8>?
        var count = 0
        /// The tag of the first key with the same name.
        var tag = UInt8(0)
    }

    /// The type of the keys.
    let isTagged: Bool
    private(set) var entries: UnsafeMutablePointer<Entry>
    private(set) var count = 0
    /// The keys of the entries, for coding paths.
    private(set) var keys: [(any CodingKey)?] = []
    /// The containers of this type. An array would be copied when one asks whether a container has a single reference.
    let containers: UnsafeMutablePointer<KeyedContainerRecord>
    /// The objects within these.
    let boxes: UnsafeMutablePointer<AnyObject>
    private(set) var containerCount = 0
    /// The number of containers that are kept for a type within itself.
    private static let maximumContainers = 8

    init(isTagged: Bool) {
        self.isTagged = isTagged
        unsafe entries = .allocate(capacity: 0)
        unsafe containers = .allocate(capacity: Self.maximumContainers)
        unsafe boxes = .allocate(capacity: Self.maximumContainers)
    }

    /// Adds the text of a key.
    mutating func insert(_ key: some CodingKey, tag: UInt8, name: String) {
        let index = Int(tag)
        if index >= count {
            let capacity = (index / 16 + 1) * 16
            let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
            unsafe larger.moveInitialize(from: entries, count: count)
            unsafe (larger + count).initialize(repeating: Entry(), count: capacity - count)
            unsafe entries.deallocate()
            unsafe entries = larger
            count = capacity
        }
        while keys.count <= index { keys.append(nil) }
        keys[index] = key
        let storage = EncodingStorage()
        storage.writer.append(UInt8(ascii: ","))
        storage.writer.write(name)
        storage.writer.append(UInt8(ascii: ":"))
        let length = storage.writer.count
        let text = UnsafeMutablePointer<UInt8>.allocate(capacity: length + 32)
        unsafe text.initialize(repeating: 0, count: length + 32)
        unsafe text.update(from: storage.state.pointee.bytes, count: length)
        unsafe entries[index] = Entry(text: text, count: length, tag: firstTag(of: text, count: length) ?? tag)
    }

    private func firstTag(of text: UnsafeMutablePointer<UInt8>, count length: Int) -> UInt8? {
        let name = unsafe UnsafeBufferPointer(start: text, count: length)
        for index in 0..<count {
            let entry = unsafe entries[index]
            guard let other = unsafe entry.text, entry.count == length else { continue }
            if unsafe UnsafeBufferPointer(start: other, count: length).elementsEqual(name) {
                return UInt8(truncatingIfNeeded: index)
            }
        }
        return nil
    }

    /// Keeps a container for the next object. Returns false if there are enough.
    mutating func keep(_ box: AnyObject, _ place: KeyedPlace) -> Bool {
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
        let hasEscaped = kept < containerCount
        unsafe (containers + kept).deinitialize(count: containerCount - kept)
        unsafe (boxes + kept).deinitialize(count: containerCount - kept)
        containerCount = kept
        return !hasEscaped
    }

    /// Returns whether nobody else has a container.
    @inline(__always)
    func isUnused(_ index: Int) -> Bool { unsafe Self.hasOneReference(boxes + index) }

    /// With `AnyObject` itself, `isKnownUniquelyReferenced` would get a copy of the reference in Swift 6, which opens the
    /// existential, and always return false.
    @inline(__always)
    private static func hasOneReference<Object: AnyObject>(_ object: UnsafeMutablePointer<Object>) -> Bool {
        unsafe isKnownUniquelyReferenced(&object.pointee)
    }

    mutating func deallocate() {
        unsafe containers.deinitialize(count: containerCount)
        unsafe containers.deallocate()
        unsafe boxes.deinitialize(count: containerCount)
        unsafe boxes.deallocate()
        for index in 0..<count { unsafe entries[index].text?.deallocate() }
        unsafe entries.deallocate()
    }
}

/// A `KeyedEncodingContainer` that is used again for the next object of the same type.
@safe
struct KeyedContainerRecord {
    let place: KeyedPlace
    let state: UnsafeMutablePointer<KeyedPlace.State>
    /// A Boolean value that indicates whether it is in the list of containers that this encoding uses.
    var isInUse = false
}

/// The key tables of all types that an encoding storage has met.
@safe
struct KeyTableCache {
    private var tables = unsafe TypeTable<UnsafeMutablePointer<KeyTextTable>>()
    private var all: [UnsafeMutablePointer<KeyTextTable>] = unsafe []
    /// The tables whose containers were used in this encoding.
    private var used: [UnsafeMutablePointer<KeyTextTable>] = unsafe []

    @inline(__always)
    mutating func table<Key: CodingKey>(of type: Key.Type) -> UnsafeMutablePointer<KeyTextTable> {
        if let table = unsafe tables[ObjectIdentifier(type)] { return unsafe table }
        return unsafe newTable(of: type)
    }

    @inline(never)
    private mutating func newTable<Key: CodingKey>(of type: Key.Type) -> UnsafeMutablePointer<KeyTextTable> {
        let table = UnsafeMutablePointer<KeyTextTable>.allocate(capacity: 1)
        unsafe table.initialize(to: KeyTextTable(isTagged: MemoryLayout<Key>.size <= 1))
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
        while let table = unsafe used.popLast() {
            if unsafe !table.pointee.releaseContainers() { isUnused = false }
        }
        return isUnused
    }

    mutating func deallocate() {
        unsafe tables.deallocate()
        while let table = unsafe all.popLast() {
            unsafe table.pointee.deallocate()
            unsafe table.deinitialize(count: 1)
            unsafe table.deallocate()
        }
    }
}
