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

/// The places of the path that was asked for last.
///
/// A search in a container continues there, so that all paths of a text together take linear time when they are asked
/// for in order.
struct PathMemory {
    struct Level {
        var container: Int
        /// The key or element that contains the place.
        var child: Int
        var ordinal: Int
        /// The child before it; the child itself for the first one.
        var previous: Int
    }

    var levels: [Level] = []

    mutating func clear() {
        if !levels.isEmpty { levels.removeAll(keepingCapacity: true) }
    }
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
    func levels(to target: Int) -> [PathMemory.Level] {
        var levels: [PathMemory.Level] = []
        let known = unsafe storage.pointee.path.levels
        var container = 0
        while container != target, token(container).isContainer, target < token(container).end {
            let isObject = token(container).kind == .object
            var level = PathMemory.Level(
                container: container, child: container + 1, ordinal: 0, previous: container + 1)
            if levels.count < known.count {
                let candidate = known[levels.count]
                if candidate.container == container && candidate.child <= target { level = candidate }
            }
            var next = skip(isObject ? level.child + 1 : level.child)
            while next <= target {
                level.previous = level.child
                level.child = next
                level.ordinal += 1
                next = skip(isObject ? next + 1 : next)
            }
            levels.append(level)
            container = isObject ? level.child + 1 : level.child
            // A key itself is as deep as its value.
            if target < container { break }
        }
        // The path of a container is asked for between those of its values, and does not end the search in it.
        if levels.count < known.count, known[levels.count].container == container {
            unsafe storage.pointee.path.levels = levels + known[levels.count...]
        } else {
            unsafe storage.pointee.path.levels = levels
        }
        return levels
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
        guard unsafe storage.pointee.convertsKeys, !isDictionary else { return JSONKey(stringValue: name) }
        switch unsafe storage.pointee.settings.values.keys {
        case .useDefaultKeys: return JSONKey(stringValue: name)
        case .convertFromSnakeCase: return JSONKey(stringValue: SnakeCase.camelCase(of: name))
        case .custom(let convert): return convert(path + [JSONKey(stringValue: name)])
        }
    }
}
