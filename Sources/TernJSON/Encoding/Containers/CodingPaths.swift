/// A key of a coding path that no type has: an index, or the name of a dictionary's value.
struct PathKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    /// Creates the key of an element of an array.
    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }

    /// Creates the key of a dictionary's value, as the standard library.
    init(name: String) {
        stringValue = name
        intValue = Int(name)
    }

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}

extension JSONTextWriter {
    /// Returns the path to an open value.
    func codingPath(below index: Int) -> [any CodingKey] {
        var path = storage.basePath
        for place in 0..<min(index, depth) {
            let value = unsafe openValue(place).pointee
            guard value.count > 0 else { continue }
            switch value.kind {
            case .undecided: break
            case .array:
                let earlier = unsafe place == 0 ? state.pointee.earlierElements : 0
                path.append(PathKey(index: value.count - 1 + earlier))
            case .object: path.append(lastKey(of: value, at: place))
            }
        }
        return path
    }

    private func lastKey(of value: OpenValue, at index: Int) -> any CodingKey {
        if let table = unsafe value.table {
            let tag = Int(value.tag)
            if unsafe table.pointee.keys.indices.contains(tag), let key = unsafe table.pointee.keys[tag] { return key }
        }
        if value.tag == ContainerPlace.keptKey, let key = unsafe state.pointee.keys[index] { return key }
        // The name follows the comma.
        let text = unsafe WrittenText(text)
        let start = text.afterSpace(value.partStart)
        return PathKey(name: text.name(start..<text.endOfString(at: start)))
    }
}

extension ContainerPlace {
    /// The tag of a value that says that its last key was kept.
    static let keptKey = UInt8(1)

    var codingPath: [any CodingKey] {
        writer.isOpen(index, id: id) ? writer.codingPath(below: index) : writer.storage.path(to: id >> 2)
    }

    /// Returns the name of a key, converted.
    func name(of key: some CodingKey) -> String {
        switch writer.options.keyEncodingStrategy {
        case .useDefaultKeys: key.stringValue
        case .convertToSnakeCase: SnakeCaseText.converted(key.stringValue)
        case .custom(let convert): convert(codingPath + [key]).stringValue
        }
    }

    /// Keeps the key of the member that was begun, for the paths of its parts.
    func keep(_ key: any CodingKey) {
        guard writer.isOpen(index, id: id) else { return }
        unsafe writer.state.pointee.keys[index] = key
        unsafe writer.state.pointee.hasKeys = true
        unsafe writer.openValue(index).pointee.table = nil
        unsafe writer.openValue(index).pointee.tag = Self.keptKey
    }
}
