/// Values that are written to an array or an object after it was closed go to a text of their own. When the encoding is
/// finished, ``TextArranger`` puts them in.
extension EncodingStorage {
    /// Returns the text for what continues the array or object at a place, or replaces the empty object there.
    ///
    /// - Parameters:
    ///   - start: The place of a value that is closed.
    ///   - kind: The kind of what is written: members, elements, or a value if nothing was written.
    ///   - nesting: The number of arrays and objects of this text around the value.
    /// - Returns: The text; nil if the value at the place is of another kind, or nests too deep.
    func lateText(for start: Int, _ kind: OpenValue.Kind, nesting: Int) -> EncodingStorage? {
        if let known = late[start] { return known.storage }
        let text = unsafe WrittenText(writer.text)
        let isEmptyObject = text[start] == UInt8(ascii: "{") && text[text.afterSpace(start + 1)] == UInt8(ascii: "}")
        let replaces: Bool
        switch kind {
        case .object where text[start] == UInt8(ascii: "{"):
            replaces = false
            writer.noteDuplicates()
        case .array where text[start] == UInt8(ascii: "["): replaces = false
        case .array where isEmptyObject, .undecided where isEmptyObject: replaces = true
        default: return nil
        }
        let storage = EncodingStorage(lateIn: self, at: start, nesting: baseNesting + nesting)
        let index = storage.writer.open()
        switch kind {
        case .object: guard storage.writer.beginObject(index) else { return nil }
        case .array:
            guard storage.writer.beginArray(index) else { return nil }
            if !replaces { unsafe storage.state.pointee.earlierElements = text.elementCount(at: start) }
        case .undecided: break
        }
        unsafe state.pointee.hasLate = true
        late[start] = LateText(storage: storage, replaces: replaces)
        lastPlace = max(lastPlace, start)
        unsafe state.pointee.context.pointee.lateStorages.append(storage)
        return storage
    }

    /// Returns the path to a value that is closed.
    func path(to start: Int) -> [any CodingKey] {
        unsafe start < 0 ? basePath : basePath + WrittenText(writer.text).path(to: start)
    }
}

extension ContainerPlace {
    /// The number of elements of an array.
    var elementCount: Int {
        if writer.isOpen(index, id: id) {
            let earlier = unsafe index == 0 ? writer.state.pointee.earlierElements : 0
            return unsafe writer.openValue(index).pointee.count + earlier
        }
        guard id >= 0 else { return 0 }
        if let late = writer.storage.late[id >> 2]?.storage {
            return ContainerPlace(late.writer, index: 0, id: OpenValue.id(start: 0, .array)).elementCount
        }
        return unsafe WrittenText(writer.text).elementCount(at: id >> 2)
    }

    /// Returns the array or object that the last key had before, if it had one. Only its key was written so far.
    func earlierContainer(_ kind: OpenValue.Kind) -> ContainerPlace? {
        guard unsafe writer.state.pointee.context.pointee.mayHaveDuplicates, writer.isOpen(index, id: id) else {
            return nil
        }
        let value = unsafe writer.openValue(index).pointee
        let text = unsafe WrittenText(writer.text)
        let keyStart = text.afterSpace(value.partStart)
        let name = unsafe Array(text.slice(keyStart..<text.endOfString(at: keyStart)))
        let storage = writer.storage
        unsafe storage.state.pointee.hasLate = true
        storage.lastPlace = max(storage.lastPlace, id >> 2)
        // In place: a copy for each call would take the square of the members.
        storage.indexes[id >> 2, default: MemberIndex(start: (id >> 2) + 1)].extend(to: value.lastStart, in: text)
        guard let start = storage.indexes[id >> 2]?.values[name],
            text[start] == (kind == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
        else { return nil }
        return ContainerPlace(writer, index: index + 1, id: OpenValue.id(start: start, kind))
    }
}

/// The values of an object's members, by their names as they are written.
struct MemberIndex {
    private(set) var values: [[UInt8]: Int] = [:]
    /// The place after the last member that is indexed.
    private var end: Int

    init(start: Int) { end = start }

    /// Adds the members that were written since the last time.
    mutating func extend(to limit: Int, in text: WrittenText) {
        while end < limit {
            if text[end] == UInt8(ascii: ",") { end += 1 }
            let name = text.afterSpace(end)
            let nameEnd = text.endOfString(at: name)
            let value = text.startOfValue(afterName: nameEnd)
            unsafe values[Array(text.slice(name..<nameEnd))] = value
            end = text.endOfValue(at: value)
        }
    }
}
