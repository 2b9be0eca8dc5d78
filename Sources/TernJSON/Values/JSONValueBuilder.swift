/// Makes values of unknown structure straight from the tape, without recursion.
extension DecodingCore {
    /// The deepest value. Copies of a value are freed by recursion: half a kilobyte of stack a level.
    private static var largestDepth: Int { 512 }

    private struct OpenContainer {
        let end: Int
        let isObject: Bool
        var elements: [JSONValue] = []
        var members: [String: JSONValue] = [:]
        /// The name of the member whose value comes next.
        var name = ""
    }

    /// Decodes a value of any kind.
    func jsonValue(at index: Int) throws -> JSONValue {
        unsafe storage.pointee.plainValue = index..<skip(index)
        defer { unsafe storage.pointee.plainValue = 0..<0 }
        var open: [OpenContainer] = []
        var place = index
        while true {
            try countValue()
            if let last = open.indices.last, open[last].isObject {
                open[last].name = string(token(place))
                place += 1
            }
            let token = token(place)
            var value: JSONValue
            if token.isContainer, token.count > 0 {
                guard open.count < Self.largestDepth else {
                    throw corrupted("a JSONValue nests deeper than \(Self.largestDepth) levels", at: place)
                }
                open.append(opened(token))
                place += 1
                continue
            }
            value = try leaf(token, at: place)
            place = token.isContainer ? token.end : place + 1
            // The value can be the last one of several containers.
            while let last = open.indices.last {
                if open[last].isObject {
                    // The last value of a name counts.
                    open[last].members[open[last].name] = value
                } else {
                    open[last].elements.append(value)
                }
                if place < open[last].end { break }
                let container = open.removeLast()
                value = container.isObject ? .object(container.members) : .array(container.elements)
            }
            if open.isEmpty { return value }
        }
    }

    private func opened(_ token: Token) -> OpenContainer {
        var container = OpenContainer(end: token.end, isObject: token.kind == .object)
        // Each element takes at least one token, so that the memory is in proportion to the text.
        if container.isObject {
            container.members.reserveCapacity(token.count)
        } else {
            container.elements.reserveCapacity(token.count)
        }
        return container
    }

    private func leaf(_ token: Token, at index: Int) throws -> JSONValue {
        switch token.kind {
        case .null: return .null
        case .no: return .bool(false)
        case .yes: return .bool(true)
        case .string: return .string(string(token))
        case .array: return .array([])
        case .object: return .object([:])
        case .integer, .decimal, .longNumber: return try number(token, at: index)
        }
    }

    /// Returns a whole number as an integer, however it is written, if it fits.
    private func number(_ token: Token, at index: Int) throws -> JSONValue {
        if token.kind == .integer {
            if !token.isNegative, let value = Int64(exactly: token.payload) { return .integer(value) }
            if token.isNegative, token.payload <= 1 << 63 {
                return .integer(Int64(truncatingIfNeeded: 0 &- token.payload))
            }
        } else {
            let value = try double(at: index)
            // Only a whole number can be a whole number of 64 bits, and the nearest `Double` of one is whole.
            guard value.rounded() == value, value.magnitude <= 0x1p63 else { return .number(value) }
            let digits = digits(at: index)
            if let magnitude = digits.wholeMagnitude, magnitude <= 1 << 63 {
                let whole = digits.isNegative ? 0 - Int128(magnitude) : Int128(magnitude)
                if let value = Int64(exactly: whole) { return .integer(value) }
            }
            return .number(value)
        }
        return .number(try double(at: index))
    }
}
