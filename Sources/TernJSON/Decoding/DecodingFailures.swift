/// Makes the errors of a decoding.
extension DecodingCore {
    /// The place of an error in the text, while the text is there.
    struct Mark: Error {
        let token: Int
    }

    /// Returns the error of a value of the wrong kind: of null, that there is no value, as from Foundation's decoder.
    @inline(never)
    func mismatch(_ type: Any.Type, at index: Int, nullIsMismatch: Bool = false) -> DecodingError {
        let text = "expected \(type), found \(token(index).kindName)"
        let context = context(text, at: index)
        return token(index).kind == .null && !nullIsMismatch
            ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    @inline(never)
    func corrupted(_ text: String, at index: Int) -> DecodingError { .dataCorrupted(context(text, at: index)) }

    @inline(never)
    func missing(_ key: some CodingKey, in object: Int) -> DecodingError {
        .keyNotFound(key, context("the object has no key \"\(key.stringValue)\"", at: object))
    }

    private func context(_ text: String, at index: Int) -> DecodingError.Context {
        DecodingError.Context(
            codingPath: codingPath(of: index), debugDescription: text, underlyingError: Mark(token: index))
    }

    func error(_ problem: SyntaxError) -> DecodingError {
        let place = place(at: problem.offset, excerpt: excerptOfEnd())
        return .dataCorrupted(
            DecodingError.Context(
                codingPath: [], debugDescription: "the text is not valid JSON: \(problem.text) \(place.position)",
                underlyingError: place))
    }

    /// Returns an error as it leaves the decoding: with the place in the text, which is too slow to find for each error
    /// that an `init(from:)` catches.
    func located(_ error: any Error) -> any Error {
        guard let error = error as? DecodingError else { return error }
        switch error {
        case .typeMismatch(let type, let context): return DecodingError.typeMismatch(type, located(context))
        case .valueNotFound(let type, let context): return DecodingError.valueNotFound(type, located(context))
        case .keyNotFound(let key, let context): return DecodingError.keyNotFound(key, located(context, isInside: true))
        case .dataCorrupted(let context): return DecodingError.dataCorrupted(located(context))
        @unknown default: return error
        }
    }

    /// - Parameter isInside: Whether the members of the place are shown, and not those around it.
    private func located(_ context: DecodingError.Context, isInside: Bool = false) -> DecodingError.Context {
        // An error of a type's own has no mark: the path leads to its place.
        if context.underlyingError != nil && !(context.underlyingError is Mark) { return context }
        let index = (context.underlyingError as? Mark)?.token ?? index(of: context.codingPath)
        guard let index, unsafe index < storage.pointee.tape.count else { return context }
        let token = token(index)
        let offset = token.kind == .string ? Int(token.start) - 1 : Int(token.start)
        let isMember = token.isContainer && isInside
        let place = place(
            at: offset,
            excerpt: isMember ? "▸\(excerpt(of: index, from: index + 1, marking: nil))◂" : excerpt(around: index))
        return DecodingError.Context(
            codingPath: context.codingPath, debugDescription: "\(context.debugDescription) \(place.position)",
            underlyingError: place)
    }

    /// Returns the value at a path, as far as the path exists; nil if the path is not one of the text.
    private func index(of path: [any CodingKey]) -> Int? {
        var index = 0
        for key in path {
            let token = token(index)
            guard token.isContainer else { return nil }
            var child = index + 1
            var ordinal = 0
            var found: Int?
            let convert = token.kind == .object ? keyConversion(in: index) : { $0 }
            while child < token.end {
                if token.kind == .object {
                    // The last one counts.
                    let name = string(self.token(child))
                    if name == key.stringValue || convert(name) == key.stringValue { found = child + 1 }
                    child = skip(child + 1)
                } else {
                    if ordinal == key.intValue {
                        found = child
                        break
                    }
                    child = skip(child)
                    ordinal += 1
                }
            }
            guard let found else { return nil }
            index = found
        }
        return index
    }

    // MARK: Places

    private func place(at offset: Int, excerpt: String) -> TernJSONErrorPlace {
        var line = 1
        var column = 1
        let limit = unsafe min(offset, storage.pointee.byteCount)
        for index in 0..<max(limit, 0) {
            let byte = unsafe bytes[index]
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xC0 != 0x80 {
                // Bytes that continue a character count with it.
                column += 1
            }
        }
        return TernJSONErrorPlace(offset: offset, line: line, column: column, excerpt: excerpt)
    }

    private static var excerptLength: Int { 4 }

    /// Returns the members or elements around a value, without values.
    private func excerpt(around index: Int) -> String {
        guard let level = levels(to: index).last else { return "▸\(sketch(of: index))◂" }
        return excerpt(of: level.container, from: child(before: level), marking: level.child)
    }

    /// Returns some members or elements of an object or array, without values.
    ///
    /// - Parameters:
    ///   - first: The first one.
    ///   - marked: The one to mark; nil for none.
    private func excerpt(of index: Int, from first: Int, marking marked: Int?) -> String {
        let container = token(index)
        let isObject = container.kind == .object
        var parts: [String] = []
        if first > index + 1 { parts.append("…") }
        var child = first
        while child < container.end, parts.count < Self.excerptLength + 1 {
            let value = isObject ? child + 1 : child
            let text = sketch(of: value)
            parts.append(keyText(isObject ? child : nil) + (child == marked ? "▸\(text)◂" : text))
            child = skip(value)
        }
        if child < container.end { parts.append("…") }
        return (isObject ? "{" : "[") + parts.joined(separator: ", ") + (isObject ? "}" : "]")
    }

    /// Returns the last members or elements before the end of a text that is not valid.
    private func excerptOfEnd() -> String {
        let count = unsafe storage.pointee.tape.count
        let container = unsafe storage.pointee.tape.openContainer
        guard container >= 0, container < count else { return "▸" }
        let isObject = token(container).kind == .object
        var parts: [String] = []
        var isShortened = false
        var child = container + 1
        while child < count {
            let value = isObject ? child + 1 : child
            parts.append(keyText(isObject ? child : nil) + (value < count ? sketch(of: value) : "▸"))
            if parts.count > Self.excerptLength {
                parts.removeFirst()
                isShortened = true
            }
            child = value < count ? skip(value) : count
        }
        let text = (isShortened ? ["…"] + parts : parts).joined(separator: ", ")
        return (isObject ? "{" : "[") + text + (text.hasSuffix("▸") ? "" : " ▸")
    }

    private func keyText(_ key: Int?) -> String {
        guard let key else { return "" }
        let name = string(token(key))
        let text = name.unicodeScalars.prefix(40).map { scalar in
            // Control characters and changes of the writing direction could disturb a log.
            scalar.value < 0x20 || scalar.value == 0x7F || scalar.properties.generalCategory == .format
                || scalar.properties.generalCategory == .control ? "\u{FFFD}" : String(scalar)
        }
        return "\"" + text.joined() + (name.unicodeScalars.count > 40 ? "…" : "") + "\": "
    }

    private func sketch(of index: Int) -> String {
        switch token(index).kind {
        case .null: "null"
        case .no, .yes: "Boolean"
        case .integer, .decimal, .longNumber: "number"
        case .string: "string"
        case .array: "[…]"
        case .object: "{…}"
        }
    }
}
