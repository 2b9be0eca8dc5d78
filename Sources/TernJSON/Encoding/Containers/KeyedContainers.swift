extension JSONTextWriter {
    /// Opens an array or an object as the next value.
    ///
    /// The encoding fails if it nests too deep.
    func openContainer(_ kind: OpenValue.Kind) -> ContainerPlace {
        let index = open()
        guard kind == .object ? beginObject(index) : beginArray(index) else {
            fail(Self.tooDeep)
            return .nowhere(self)
        }
        return ContainerPlace(self, index: index, id: unsafe openValue(index).pointee.id)
    }

    /// Returns a container for an object, one that was used before if there is one that nobody else has.
    ///
    /// To make one takes two allocations and two look-ups of generic types, as long as to write five members.
    @inline(__always)
    func keyedContainer<Key: CodingKey>(keyedBy type: Key.Type, at place: ContainerPlace) -> KeyedEncodingContainer<Key>
    {
        let table = unsafe state.pointee.context.pointee.keyTables.table(of: type)
        // One that writes nothing can be made after the end of the encoding, when nothing gives it an owner.
        if place.id < 0 { return unsafe newKeyedContainer(table, at: place, isKept: false) }
        for index in 0..<(unsafe table.pointee.containerCount) {
            guard unsafe table.pointee.isUnused(index) else { continue }
            let record = unsafe table.pointee.containers + index
            if unsafe !record.pointee.isInUse {
                unsafe record.pointee.isInUse = true
                unsafe state.pointee.context.pointee.keyTables.markUsed(table)
            }
            let keyed = unsafe record.pointee.state
            unsafe keyed.pointee.container = place
            unsafe keyed.pointee.keys = keyForm(for: table)
            typealias Maker = TypedContainerMaker<KeyedEncodingContainer<Key>>
            return unsafe unsafeDowncast(table.pointee.maker, to: Maker.self).container(of: table.pointee.boxes[index])
        }
        return unsafe newKeyedContainer(table, at: place, isKept: true)
    }

    @inline(__always)
    private func keyForm(for table: UnsafeMutablePointer<KeyTextTable>) -> KeyedPlace.KeyForm {
        guard unsafe state.pointee.context.pointee.usesKeyTables && table.pointee.isTagged else { return .names }
        return unsafe state.pointee.hasLines ? .tableWithLines : .table
    }

    @inline(never)
    private func newKeyedContainer<Key: CodingKey>(
        _ table: UnsafeMutablePointer<KeyTextTable>, at place: ContainerPlace, isKept: Bool
    ) -> KeyedEncodingContainer<Key> {
        let keyed = unsafe KeyedPlace(place, table: table)
        unsafe keyed.state.pointee.keys = keyForm(for: table)
        let container = KeyedEncodingContainer(KeyedWriter<Key>(keyed))
        if isKept, KeyedContainerLayout.isReference,
            unsafe table.pointee.keep(unsafeBitCast(container, to: ContainerBox.self), keyed)
        {
            unsafe state.pointee.context.pointee.keyTables.markUsed(table)
        } else {
            unsafe keyed.state.pointee.owner = place.writer.storage
        }
        return container
    }
}

/// Whether a `KeyedEncodingContainer` is one reference to an object, which the standard library does not promise. If it
/// once is not, containers are not used again.
private enum KeyedContainerLayout {
    static let isReference: Bool = {
        let storage = EncodingStorage()
        let table = UnsafeMutablePointer<KeyTextTable>.allocate(capacity: 1)
        unsafe table.initialize(to: KeyTextTable(of: PathKey.self))
        defer {
            unsafe table.pointee.deallocate()
            unsafe table.deinitialize(count: 1)
            unsafe table.deallocate()
        }
        let container = KeyedEncodingContainer(
            KeyedWriter<PathKey>(unsafe KeyedPlace(.nowhere(storage.writer), table: table)))
        let parts = Mirror(reflecting: container).children
        guard let part = parts.first?.value, parts.count == 1, type(of: part) is AnyClass else { return false }
        return MemoryLayout.size(ofValue: container) == MemoryLayout<AnyObject>.size
    }()
}
