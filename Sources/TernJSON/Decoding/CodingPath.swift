/// A key of a coding path that the text, and not a type, gives.
struct JSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init?(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }

    /// Creates the key of an element of an array, as Foundation's decoder names it.
    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }
}

/// Some of the keys and elements of the large containers that were searched for a path.
///
/// A search begins at the last one before its target, so that it takes few steps in whatever order a type asks for
/// paths.
struct PathMemory {
    /// The number of keys or elements from one mark to the next. A container with fewer has no marks.
    static var interval: Int { 64 }

    /// The tokens of each 64th key or element of a container.
    var marks: [Int: [UInt32]] = [:]

    mutating func clear() {
        if !marks.isEmpty { marks = [:] }
    }
}

/// A step of a coding path.
struct PathLevel {
    let container: Int
    /// The key or element that contains the target of the path.
    var child: Int
    var ordinal: Int
}

extension DecodingCore {
    /// Returns the path of a value, from the root of the text.
    @inline(never)
    func codingPath(of target: Int) -> [any CodingKey] {
        var path: [any CodingKey] = []
        for level in levels(to: target) {
            if token(level.container).kind == .object {
                let name = string(token(level.child))
                path.append(convertedKey(name, in: level.container, path: path))
            } else {
                path.append(JSONKey(index: level.ordinal))
            }
        }
        return path
    }

    /// Returns the containers that contain a value, and the places in them.
    func levels(to target: Int) -> [PathLevel] {
        var levels: [PathLevel] = []
        var container = 0
        while container != target, token(container).isContainer, target < token(container).end {
            let level = level(to: target, in: container)
            levels.append(level)
            container = token(container).kind == .object ? level.child + 1 : level.child
            // A key itself is as deep as its value.
            if target < container { break }
        }
        return levels
    }

    /// Returns the key or element before that of a level; the same one if it is the first.
    func child(before level: PathLevel) -> Int {
        if level.ordinal == 0 { return level.child }
        // The token before is the last one of that child.
        return self.level(to: level.child - 1, in: level.container).child
    }

    /// Returns the place of a value in a container that contains it.
    private func level(to target: Int, in container: Int) -> PathLevel {
        var level = PathLevel(container: container, child: container + 1, ordinal: 0)
        if token(container).count > PathMemory.interval {
            let marks = marks(in: container)
            let mark = marks.lastIndex(notAfter: target)
            level.child = Int(marks[mark])
            level.ordinal = mark * PathMemory.interval
        }
        while true {
            let next = child(after: level.child, in: container)
            if next > target { return level }
            level.child = next
            level.ordinal += 1
        }
    }

    private func child(after child: Int, in container: Int) -> Int {
        skip(token(container).kind == .object ? child + 1 : child)
    }

    /// Returns the marks of a container, which are made once.
    private func marks(in container: Int) -> [UInt32] {
        if let marks = unsafe storage.pointee.path.marks[container] { return marks }
        var marks: [UInt32] = []
        var child = container + 1
        for ordinal in 0..<token(container).count {
            if ordinal.isMultiple(of: PathMemory.interval) { marks.append(UInt32(truncatingIfNeeded: child)) }
            child = self.child(after: child, in: container)
        }
        unsafe storage.pointee.path.marks[container] = marks
        return marks
    }

    // MARK: Conversion of keys

    /// Returns the function that converts the keys of an object.
    func keyConversion(in object: Int) -> (String) -> String {
        guard unsafe storage.pointee.convertsKeys else { return { $0 } }
        switch unsafe storage.pointee.settings.values.keys {
        case .useDefaultKeys: return { $0 }
        case .convertFromSnakeCase: return SnakeCase.camelCase
        case .custom(let convert):
            let path = codingPath(of: object)
            return { convert(path + [JSONKey(stringValue: $0)]).stringValue }
        }
    }

    private func convertedKey(_ name: String, in object: Int, path: [any CodingKey]) -> any CodingKey {
        let isDictionary = token(object).flags & Token.Flags.isDictionary != 0
        let isPlain = unsafe isDictionary || storage.pointee.plainValue.contains(object)
        guard unsafe storage.pointee.convertsKeys, !isPlain else { return JSONKey(stringValue: name) }
        switch unsafe storage.pointee.settings.values.keys {
        case .useDefaultKeys: return JSONKey(stringValue: name)
        case .convertFromSnakeCase: return JSONKey(stringValue: SnakeCase.camelCase(of: name))
        case .custom(let convert): return convert(path + [JSONKey(stringValue: name)])
        }
    }
}

extension [UInt32] {
    /// Returns the index of the last number that is not above `limit`. The first one must not be, and they ascend.
    fileprivate func lastIndex(notAfter limit: Int) -> Int {
        var (low, high) = (0, count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if Int(self[middle]) <= limit { low = middle } else { high = middle }
        }
        return low
    }
}
