/// Stands for the class of the object in a `KeyedDecodingContainer`, which has no public name. Only its references are
/// counted.
class ContainerBox {}

/// Makes values of a container's type from the object in it.
///
/// The standard library looks up the metadata of a `KeyedDecodingContainer` of unknown keys in each function that
/// touches one, which is 5% of the time of a page of objects. This object has them as its own type.
class ContainerMaker {}

final class TypedContainerMaker<Container>: ContainerMaker {
    // Inlined, it would need the look-up again.
    @inline(never)
    func container(of box: ContainerBox) -> Container {
        // On every known system, a container is one reference; `DecodingCore.newContainer` checks the size.
        unsafe unsafeBitCast(box, to: Container.self)
    }
}

/// The containers of one type of coding keys.
///
/// A container is used again when nobody else has it: that saves 25–30% of the time (measured with a probe).
@safe
struct KeyTypeSlot {
    @safe
    struct Container {
        /// Takes a class, and not `AnyObject`: `isKnownUniquelyReferenced` would count a copy that the compiler makes.
        var box: ContainerBox
        let state: UnsafeMutablePointer<KeyedState>

        func deallocate() {
            unsafe state.deinitialize(count: 1)
            unsafe state.deallocate()
        }
    }

    let id: ObjectIdentifier
    let table: UnsafeMutablePointer<KeyTable>
    var containers = Row<Container>()
    /// A ``TypedContainerMaker`` of the container's type.
    var maker = ContainerMaker()
    /// The container that was used last.
    var place = 0

    init(id: ObjectIdentifier) {
        self.id = id
        unsafe table = .allocate(capacity: 1)
        unsafe table.initialize(to: KeyTable())
    }

    mutating func deallocate() {
        for index in 0..<containers.count { unsafe containers.elements[index].deallocate() }
        containers.deallocate()
        unsafe table.pointee.deallocate()
        unsafe table.deallocate()
    }

    /// Returns a container that nobody uses. Looks at few: calls nest, so that the next one of the last that was used
    /// is free.
    @inline(__always)
    mutating func freeContainer() -> Container? {
        if place < containers.count, unsafe isKnownUniquelyReferenced(&containers.elements[place].box) {
            return unsafe containers.elements[place]
        }
        return otherContainer()
    }

    @inline(never)
    private mutating func otherContainer() -> Container? {
        for _ in 0..<min(4, containers.count) {
            place += 1
            if place >= containers.count { place = 0 }
            if unsafe isKnownUniquelyReferenced(&containers.elements[place].box) {
                return unsafe containers.elements[place]
            }
        }
        place = containers.count
        return nil
    }

    /// Whether no container is in use.
    func containersAreFree() -> Bool {
        for index in 0..<containers.count {
            if unsafe !isKnownUniquelyReferenced(&containers.elements[index].box) { return false }
        }
        return true
    }

    /// Keeps few containers, and no index.
    mutating func tidy() {
        while containers.count > 16 { containers.removeLast().deallocate() }
        for index in 0..<containers.count {
            let state = unsafe containers.elements[index].state
            if unsafe state.pointee.index != nil { unsafe state.pointee.index = nil }
        }
        place = 0
    }
}

extension DecodingCore {
    /// Returns a container for an object.
    @inline(__always)
    func container<Key: CodingKey>(
        at index: Int, keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        guard token(index).kind == .object else { throw mismatch([String: Any].self, at: index) }
        try countValue()
        if unsafe storage.pointee.isDetached { return DecodingPark.container(self, at: index, keyedBy: type) }
        return unsafe sharedContainer(at: index, keyedBy: type)
    }

    /// Returns a container that is used again, or a new one.
    @unsafe @inline(__always)
    func sharedContainer<Key: CodingKey>(at index: Int, keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        let slot = slot(for: type)
        unsafe storage.pointee.usedKeyTypes |= 1 &<< UInt64(truncatingIfNeeded: min(slot, 63))
        if let found = unsafe storage.pointee.keyTypes.elements[slot].freeContainer() {
            unsafe open(found.state, at: index)
            // `newContainer` has set it with the first container.
            typealias Maker = TypedContainerMaker<KeyedDecodingContainer<Key>>
            let maker = unsafe unsafeDowncast(storage.pointee.keyTypes.elements[slot].maker, to: Maker.self)
            return maker.container(of: found.box)
        }
        return newContainer(at: index, keyedBy: type, slot: slot)
    }

    @inline(__always)
    private func slot<Key: CodingKey>(for type: Key.Type) -> Int {
        let id = ObjectIdentifier(type)
        let hash = Int(bitPattern: id) &>> 4 & (DecodingStorage.keyTypePlaceCount &- 1)
        let place = unsafe Int(storage.pointee.keyTypePlaces[hash])
        if unsafe place < storage.pointee.keyTypes.count && storage.pointee.keyTypes.elements[place].id == id {
            return place
        }
        return addSlot(id, hash: hash)
    }

    @inline(never)
    private func addSlot(_ id: ObjectIdentifier, hash: Int) -> Int {
        let count = unsafe storage.pointee.keyTypes.count
        let known = (0..<count).first { unsafe storage.pointee.keyTypes.elements[$0].id == id }
        let place = known ?? count
        if known == nil { unsafe storage.pointee.keyTypes.append(KeyTypeSlot(id: id)) }
        if place < 255 { unsafe storage.pointee.keyTypePlaces[hash] = UInt8(place) }
        return place
    }

    @inline(never)
    private func newContainer<Key: CodingKey>(
        at index: Int, keyedBy type: Key.Type, slot: Int
    ) -> KeyedDecodingContainer<Key> {
        let state = unsafe newKeyedState(at: index, keyedBy: type)
        let container = unsafe KeyedDecodingContainer(KeyedContainer<Key>(state))
        if MemoryLayout<KeyedDecodingContainer<Key>>.size == MemoryLayout<AnyObject>.size {
            if unsafe storage.pointee.keyTypes.elements[slot].containers.count == 0 {
                let maker = TypedContainerMaker<KeyedDecodingContainer<Key>>()
                unsafe storage.pointee.keyTypes.elements[slot].maker = maker
            }
            let box = unsafe unsafeBitCast(container, to: ContainerBox.self)
            unsafe storage.pointee.keyTypes.elements[slot].containers.append(.init(box: box, state: state))
        } else {
            // Nothing would tell when such a container has gone: its state is never freed.
            _ = unsafe Unmanaged.passRetained(owner)
        }
        return container
    }

    /// Makes the state of a container, which the slot of its key type frees.
    @unsafe
    private func newKeyedState<Key: CodingKey>(
        at index: Int, keyedBy type: Key.Type
    ) -> UnsafeMutablePointer<KeyedState> {
        let state = UnsafeMutablePointer<KeyedState>.allocate(capacity: 1)
        let isByte = MemoryLayout<Key>.size <= 1 && _isPOD(Key.self)
        let table = unsafe storage.pointee.keyTypes.elements[slot(for: type)].table
        unsafe state.initialize(to: KeyedState(core: self, table: table, keysAreBytes: isByte, mode: .name))
        unsafe open(state, at: index)
        return unsafe state
    }

    /// Sets a container to the beginning of an object.
    @unsafe @inline(__always)
    private func open(_ state: UnsafeMutablePointer<KeyedState>, at index: Int) {
        let token = token(index)
        unsafe state.pointee.object = index
        unsafe state.pointee.end = token.end
        unsafe state.pointee.cursor = index &+ 1
        unsafe state.pointee.comparisonsLeft = token.count &* 4 &+ 256
        unsafe state.pointee.mode = state.pointee.keysAreBytes ? .table : .name
        let isUsual = unsafe state.pointee.index == nil && !storage.pointee.convertsKeys
        if token.flags & Token.Flags.isPlain == 0 || !isUsual { unsafe openUnusual(state, at: index) }
    }

    @unsafe @inline(never)
    private func openUnusual(_ state: UnsafeMutablePointer<KeyedState>, at index: Int) {
        unsafe state.pointee.index = nil
        let converts = unsafe storage.pointee.convertsKeys
        if converts {
            guard case .convertFromSnakeCase = unsafe storage.pointee.settings.values.keys,
                unsafe state.pointee.keysAreBytes
            else {
                unsafe useIndex(state, at: index)
                return
            }
            unsafe state.pointee.mode = .snake
        }
        if token(index).flags & (Token.Flags.isPlain | Token.Flags.needsIndex) == 0 {
            let isPlain = keysAreDifferent(in: index, converted: converts)
            unsafe storage.pointee.tokens[index].insert(isPlain ? Token.Flags.isPlain : Token.Flags.needsIndex)
        }
        if token(index).flags & Token.Flags.needsIndex != 0 { unsafe useIndex(state, at: index) }
    }

    /// Makes a container look up all keys in an index.
    @unsafe
    func useIndex(_ state: UnsafeMutablePointer<KeyedState>, at index: Int) {
        unsafe state.pointee.index = keyIndex(for: index)
        unsafe state.pointee.mode = .name
        // No key is found at the cursor.
        unsafe state.pointee.cursor = state.pointee.end
    }

    /// Whether no container is in use.
    var containersAreFree: Bool {
        var areFree = true
        visitUsedKeyTypes { if !$0.containersAreFree() { areFree = false } }
        return areFree
    }

    func tidyContainers() {
        visitUsedKeyTypes { $0.tidy() }
        unsafe storage.pointee.usedKeyTypes = 0
    }

    @inline(__always)
    private func visitUsedKeyTypes(_ body: (inout KeyTypeSlot) -> Void) {
        let count = unsafe storage.pointee.keyTypes.count
        var used = unsafe storage.pointee.usedKeyTypes
        while used != 0 {
            let slot = used.trailingZeroBitCount
            used &= used &- 1
            // The last bit stands for all that follow.
            for slot in slot..<(slot == 63 ? count : slot + 1) {
                unsafe body(&storage.pointee.keyTypes.elements[slot])
            }
        }
    }
}
