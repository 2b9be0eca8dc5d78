/// Arrays and dictionaries of decodable values, which are read without containers.
protocol ArrayDecoding {
    static func elements(at index: Int, of core: DecodingCore) throws -> Self
}

protocol DictionaryDecoding {
    static func members(at index: Int, of core: DecodingCore) throws -> Self
}

extension ArrayDecoding {
    /// Decodes an array whose type the caller knows as `Value`.
    @inline(__always)
    static func value<Value>(at index: Int, of core: DecodingCore) throws -> Value {
        core.cast(try elements(at: index, of: core))
    }
}

extension DictionaryDecoding {
    /// Decodes a dictionary whose type the caller knows as `Value`.
    @inline(__always)
    static func value<Value>(at index: Int, of core: DecodingCore) throws -> Value {
        core.cast(try members(at: index, of: core))
    }
}

extension Array: ArrayDecoding where Element: Decodable {
    /// Memory that is reserved before the elements are known to be right, in bytes.
    private static var largestReserve: Int { 1 << 20 }

    static func elements(at index: Int, of core: DecodingCore) throws -> [Element] {
        let token = core.token(index)
        guard token.kind == .array else { throw core.mismatch([Any].self, at: index) }
        // An empty array that is made in place writes its size to memory that all of them share, which the thread
        // sanitizer reports.
        if token.count == 0 { return [] }
        // Bit casts, because a check of the whole type would look up its metadata each time.
        if Element.self == Double.self {
            return unsafe unsafeBitCast(try core.scalars(in: token, after: index, core.double), to: [Element].self)
        }
        if Element.self == Int.self {
            let values = try core.scalars(in: token, after: index) { try core.integer(at: $0, as: Int.self) }
            return unsafe unsafeBitCast(values, to: [Element].self)
        }
        if Element.self == String.self {
            return unsafe unsafeBitCast(try core.scalars(in: token, after: index, core.string), to: [Element].self)
        }
        var place = index &+ 1
        if token.count > largestReserve / Swift.max(1, MemoryLayout<Element>.stride) {
            var elements: [Element] = []
            while place < token.end {
                elements.append(try core.value(Element.self, at: place))
                place = core.skip(place)
            }
            return elements
        }
        // Each element is made in its place: `append` would move it.
        return try unsafe [Element](unsafeUninitializedCapacity: token.count) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            if case .plain = core.kind(of: Element.self) {
                let owner = core.owner
                let weight = DecodingStorage.weight(of: Element.self)
                while place < token.end {
                    try core.countValues(weight)
                    unsafe (base + count).initialize(to: try Element(from: ValueDecoder(owner: owner, index: place)))
                    count &+= 1
                    place = core.skip(place)
                }
            } else {
                while place < token.end {
                    unsafe (base + count).initialize(to: try core.value(Element.self, at: place))
                    count &+= 1
                    place = core.skip(place)
                }
            }
        }
    }
}

extension Dictionary: DictionaryDecoding where Key == String, Value: Decodable {
    static func members(at index: Int, of core: DecodingCore) throws -> [String: Value] {
        let token = core.token(index)
        guard token.kind == .object else { throw core.mismatch([String: Any].self, at: index) }
        // Its keys are not converted, as by Foundation's decoder.
        unsafe core.storage.pointee.tokens[index].insert(Token.Flags.isDictionary)
        // The compiler makes code for these types, which takes less than half of the time of code for any type
        // (measured).
        typealias Members = [String: Value]
        if Value.self == Int.self {
            let members = try core.members(of: token, after: index) { try core.integer(at: $0, as: Int.self) }
            return unsafe unsafeBitCast(members, to: Members.self)
        }
        if Value.self == String.self {
            return unsafe unsafeBitCast(try core.members(of: token, after: index, core.string), to: Members.self)
        }
        if Value.self == Double.self {
            return unsafe unsafeBitCast(try core.members(of: token, after: index, core.double), to: Members.self)
        }
        if Value.self == Bool.self {
            return unsafe unsafeBitCast(try core.members(of: token, after: index, core.boolean), to: Members.self)
        }
        return try core.members(of: token, after: index) { try core.value(Value.self, at: $0) }
    }
}

extension DecodingCore {
    /// Decodes an array of scalars, which are one token each.
    @inline(__always)
    fileprivate func scalars<Value>(
        in array: Token, after index: Int, _ decode: (Int) throws -> Value
    ) throws -> [Value] {
        // A container among the elements is an error, so that the place of each element before it is known.
        try unsafe [Value](unsafeUninitializedCapacity: array.count) { buffer, count in
            while count < array.count {
                if count & 4_095 == 4_095 { try checkCancellation() }
                unsafe buffer.initializeElement(at: count, to: try decode(index &+ 1 &+ count))
                count &+= 1
            }
        }
    }

    /// Decodes the members of an object.
    @inline(__always)
    fileprivate func members<Value>(
        of object: Token, after index: Int, _ decode: (Int) throws -> Value
    ) throws -> [String: Value] {
        var members = [String: Value](minimumCapacity: min(object.count, (1 << 20) / (16 + MemoryLayout<Value>.stride)))
        var place = index &+ 1
        // Made after the first error.
        var names: KeyIndex?
        while place < object.end {
            let name = string(token(place))
            do {
                // The last value of a key counts.
                members[name] = try decode(place &+ 1)
            } catch let error as DecodingError {
                // An error of a value does not count if another one follows.
                let known = names ?? newKeyIndex(for: index) { $0 }
                names = known
                if known.value(of: name) == place &+ 1 { throw error }
            }
            place = skip(place &+ 1)
            try countValue()
        }
        return members
    }
}
