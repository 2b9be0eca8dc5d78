extension JSONTextWriter {
    /// Writes a value without recursion, whose depth would be that of the value.
    func write(_ value: JSONValue) throws {
        var levels: [Level] = []
        if let level = try begin(value) { levels.append(level) }
        while var level = levels.popLast() {
            guard let next = try level.next() else {
                level.place.writer.close(to: level.place.index)
                try checkFailure()
                continue
            }
            levels.append(level)
            if let inner = try begin(next) { levels.append(inner) }
        }
    }

    /// Writes a value that has no others, or the beginning of an array or an object, which is returned.
    private func begin(_ value: JSONValue) throws -> Level? {
        switch value {
        case .null: writeNull()
        case .bool(let value): write(value)
        case .integer(let value): write(value)
        case .number(let value):
            if let integer = JSONValue.largeInteger(value) { write(integer) } else { try write(value) }
        case .string(let value): write(value)
        case .array(let elements):
            return Level(place: try openDirect(.array), values: .elements(elements.makeIterator()))
        case .object(let members):
            return Level(place: try openDirect(.object), values: .members(members.makeIterator()))
        }
        return nil
    }

    /// An array or an object whose values are written.
    private struct Level {
        enum Values {
            case elements(IndexingIterator<[JSONValue]>)
            case members([String: JSONValue].Iterator)
        }

        var place: ContainerPlace
        var values: Values

        /// Writes what comes before the next value, and returns it.
        mutating func next() throws -> JSONValue? {
            switch values {
            case .elements(var iterator):
                guard let element = iterator.next() else { return nil }
                values = .elements(iterator)
                try place.beginElement()
                return element
            case .members(var iterator):
                guard let (name, value) = iterator.next() else { return nil }
                values = .members(iterator)
                try place.beginMember(name, isUnique: true)
                return value
            }
        }
    }
}
