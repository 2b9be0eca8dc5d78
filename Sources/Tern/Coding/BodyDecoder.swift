#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes the body of a response to a value. It runs off every actor, and on an event loop only if the calling task
/// prefers `Session.executor`. ``data`` and ``noContent`` have nothing to decode, and can run on the caller's actor.
public struct BodyDecoder<Value: Sendable>: Sendable {
    let decode: @Sendable (_ body: Data, _ head: ResponseHead, _ registry: TaskRegistry) throws -> Value
    /// The content types that it can decode.
    let acceptedTypes: AcceptedTypes
    /// A Boolean value that indicates whether it takes no time, whatever the body. It then runs wherever the caller does.
    let isImmediate: Bool

    /// Creates a decoder from a closure. An error of the closure becomes the `underlying` error of one of kind
    /// `.decoding`.
    ///
    /// - Parameter contentTypes: The content types that the closure can decode, such as `text/csv` or `image/*`. A
    ///   response of another type is refused before. nil, the default, accepts any type.
    public init(
        contentTypes: [String]? = nil,
        _ decode: @escaping @Sendable (_ body: Data, _ head: ResponseHead) throws -> Value
    ) {
        self.decode = { body, head, _ in try decode(body, head) }
        acceptedTypes = contentTypes.map { .these($0) } ?? .any
        isImmediate = false
    }

    init(
        acceptedTypes: AcceptedTypes, isImmediate: Bool = false,
        configured: @escaping @Sendable (_ body: Data, _ head: ResponseHead, _ registry: TaskRegistry) throws -> Value
    ) {
        decode = configured
        self.acceptedTypes = acceptedTypes
        self.isImmediate = isImmediate
    }
}

extension BodyDecoder where Value == Data {
    /// Returns the body unchanged.
    public static var data: Self { Self(acceptedTypes: .any, isImmediate: true) { body, _, _ in body } }
}

extension BodyDecoder where Value == String {
    /// Decodes text in the charset of the response's Content-Type. Without a charset, decodes UTF-8, or ISO-8859-1 if
    /// that fails.
    public static var string: Self {
        Self { body, head in
            let charset = head.headers["Content-Type"].flatMap { MediaType($0) }?.charset
            return try TextDecoding.string(from: body, charset: charset)
        }
    }
}

extension BodyDecoder where Value == NoContent {
    /// Ignores the body.
    public static var noContent: Self { Self(acceptedTypes: .any, isImmediate: true) { _, _, _ in NoContent() } }
}

extension BodyDecoder where Value: Decodable {
    /// Decodes JSON with the decoder of the session's configuration.
    public static var json: Self {
        Self(acceptedTypes: .json) { body, _, registry in
            if body.isEmpty { throw AutomaticBody.EmptyBody() }
            return try registry.configuration.makeJSONDecoder().decode(Value.self, from: body)
        }
    }

    /// Decodes by type: `Data`, `String` and `NoContent` as a body, an optional of any as nil for an empty body, and
    /// other types as JSON.
    public static var automatic: Self {
        Self(
            acceptedTypes: AutomaticBody.acceptedTypes(for: Value.self),
            isImmediate: AutomaticBody.isImmediate(Value.self)
        ) { body, head, registry in
            try AutomaticBody.decode(Value.self, from: body, head: head, registry: registry)
        }
    }
}

/// The value of a response without a value, and the type to request if the body does not matter.
public struct NoContent: Sendable, Hashable, Codable {
    /// Creates the value.
    public init() {}
}

enum AutomaticBody {
    static func acceptedTypes(for type: any Any.Type) -> AcceptedTypes {
        if let optional = type as? any OptionalBody.Type { return optional.acceptedTypes }
        return type == Data.self || type == String.self || type == NoContent.self ? .any : .json
    }

    /// Returns whether a value of a type is made of a body in no time.
    static func isImmediate(_ type: any Any.Type) -> Bool { type == Data.self || type == NoContent.self }

    static func decode<Value: Decodable>(
        _ type: Value.Type, from body: Data, head: ResponseHead, registry: TaskRegistry
    ) throws -> Value {
        if type == Data.self, let value = body as? Value { return value }
        if type == String.self, let value = try BodyDecoder.string.decode(body, head, registry) as? Value {
            return value
        }
        if type == NoContent.self, let value = NoContent() as? Value { return value }
        if let optional = type as? any OptionalBody.Type,
            let value = try optional.decode(from: body, head: head, registry: registry) as? Value
        {
            return value
        }
        if body.isEmpty { throw EmptyBody() }
        return try registry.configuration.makeJSONDecoder().decode(Value.self, from: body)
    }

    struct EmptyBody: Error, CustomStringConvertible {
        var description: String { "it is empty; ask for an optional, Data or NoContent where that may be" }
    }
}

/// An optional of a type that a body can be decoded to.
private protocol OptionalBody {
    static func decode(from body: Data, head: ResponseHead, registry: TaskRegistry) throws -> Self
    static var acceptedTypes: AcceptedTypes { get }
}

extension Optional: OptionalBody where Wrapped: Decodable {
    fileprivate static var acceptedTypes: AcceptedTypes { AutomaticBody.acceptedTypes(for: Wrapped.self) }

    fileprivate static func decode(
        from body: Data, head: ResponseHead, registry: TaskRegistry
    ) throws -> Self {
        if body.isEmpty { return nil }
        // For a Decodable type, a body of JSON null, or of the single space that some servers send, counts as empty.
        // Data and String take it as content.
        let isText = Wrapped.self == Data.self || Wrapped.self == String.self
        if !isText, body.elementsEqual("null".utf8) || body.elementsEqual(" ".utf8) { return nil }
        return try AutomaticBody.decode(Wrapped.self, from: body, head: head, registry: registry)
    }
}

extension BodyDecoder where Value: Decodable {
    /// Decodes JSON that needs changes before its type can be decoded.
    ///
    /// - Parameters:
    ///   - prefix: Bytes before the JSON that keep it from running as a script, such as `)]}',`. They are removed if
    ///     present, with a following line break.
    ///   - removesNulls: A Boolean value that indicates whether names with the value null, and nulls in arrays, are
    ///     removed at every depth first.
    ///   - makeDecoder: Returns the decoder; nil for that of the session.
    public static func json(
        removingPrefix prefix: String, removesNulls: Bool = false,
        makeDecoder: (@Sendable () -> JSONDecoder)? = nil
    ) -> Self {
        Self(acceptedTypes: .json) { body, _, registry in
            var json = body
            if json.starts(with: prefix.utf8) { json = json.dropFirst(prefix.utf8.count) }
            if json.isEmpty { throw AutomaticBody.EmptyBody() }
            if removesNulls {
                json = try JSONEncoder().encode(JSONDecoder().decode(JSONValue.self, from: json).removingNulls)
            }
            let decoder = makeDecoder?() ?? registry.configuration.makeJSONDecoder()
            return try decoder.decode(Value.self, from: json)
        }
    }

    /// Decodes JSON without names whose value is null and without nulls in arrays, at every depth.
    public static var jsonWithoutNulls: Self { json(removingPrefix: "", removesNulls: true) }

    /// Decodes a property list in XML or binary form.
    ///
    /// Its arrays and dictionaries nest at most 200 levels deep, and none contains itself. With its shared objects counted at each
    /// use, a binary list has at most 16 MiB, or 32 times its own size if that is more.
    public static var propertyList: Self {
        let types = ["application/x-plist", "application/xml", "text/xml", "application/x-apple-binary-plist"]
        return Self(acceptedTypes: .these(types)) { body, _, _ in
            try PropertyListDecoder().decode(Value.self, from: PropertyListCheck.checked(body))
        }
    }
}

extension BodyDecoder {
    /// Returns the value of the first decoder that succeeds. Each decoder checks its own content types. If all fail,
    /// throws the error of the last one.
    public static func first(of decoders: [BodyDecoder]) -> Self {
        Self(acceptedTypes: .any) { body, head, registry in
            var last: any Error = NoDecoder()
            for decoder in decoders {
                if case .these(let types) = decoder.acceptedTypes, !AcceptedTypes.these(types).fits(head) { continue }
                do {
                    return try decoder.decode(body, head, registry)
                } catch {
                    last = error
                }
            }
            throw last
        }
    }
}

private struct NoDecoder: Error, CustomStringConvertible {
    var description: String { "none of the decoders reads this content type" }
}

extension AcceptedTypes {
    fileprivate func fits(_ head: ResponseHead) -> Bool {
        head.headers["Content-Type"].flatMap { MediaType($0) }.map { contain($0) } ?? false
    }
}

extension NetworkError {
    /// Decodes the start of the refused response's body, for example the problem document of an API.
    ///
    /// ```swift
    /// } catch {
    ///     let problem = try error.decode(as: Problem.self)
    /// }
    /// ```
    ///
    /// - Throws: The error of the decoder, also for a body that is longer than the session's `errorBodyLimit`.
    public func decode<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: body)
    }
}

/// Describes a decoder's error in one line that quotes no value of the body.
package enum DecodingProblem {
    package static func text(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        return switch error {
        case .keyNotFound(let key, let context): "no value for '\(path(context, key))'"
        case .valueNotFound(let type, let context): "null in place of \(type) at '\(path(context))'"
        case .typeMismatch(let type, let context): "not a \(type) at '\(path(context))'"
        case .dataCorrupted(let context): "\(clause(context.debugDescription)) at '\(path(context))'"
        @unknown default: "it cannot be decoded"
        }
    }

    /// Returns a sentence without its full stop, to go on.
    private static func clause(_ text: String) -> Substring { text.last == "." ? text.dropLast() : text[...] }

    private static func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
        let keys = context.codingPath + (last.map { [$0] } ?? [])
        if keys.isEmpty { return "the top level" }
        return keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}

/// Checks the nesting of property lists before they are decoded: Foundation parses those in XML recursively, and recursive types
/// decode recursively, so that a deep list overflows the stack.
enum PropertyListCheck {
    /// The reason why a body is not decoded.
    struct Problem: Error, CustomStringConvertible {
        let description: String
        static let malformed = Problem(description: "the body is not a property list in XML or binary form")
        static let tooDeep = Problem(description: "the property list nests deeper than \(maximumDepth) levels")
        static func tooLarge(_ limit: Int) -> Problem {
            Problem(description: "the property list would expand to more than \(limit) bytes")
        }
    }

    static let maximumDepth = 200

    /// Returns a property list for the decoder.
    static func checked(_ body: Data) throws -> Data {
        if body.starts(with: "bplist".utf8) {
            var list = try BinaryPropertyList(Array(body))
            try list.check()
            return body
        }
        let document = try XMLEncoding.utf8(body)
        guard document.first(where: { !XMLEncoding.isSpace($0) }) == UInt8(ascii: "<") else { throw Problem.malformed }
        var list = XMLPropertyList(Array(document))
        try list.check()
        return document
    }
}

/// Follows the tags of a property list in XML. Refuses documents that parsers could read differently.
private struct XMLPropertyList {
    private let bytes: [UInt8]
    private var index = 0
    private var depth = 0
    /// A Boolean value that indicates whether the last tag began a text, which can have marked sections.
    private var isInText = false

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func check() throws(PropertyListCheck.Problem) {
        while let open = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            index = open + 1
            if begins("!--") {
                if begins("!-->") || begins("!--->") { throw .malformed }
                try skip("!--", to: "-->")
            } else if begins("![CDATA[") {
                guard isInText else { throw .malformed }
                try skip("![CDATA[", to: "]]>")
            } else if begins("!") {
                // The type of the document, without declarations of its own.
                let type = try tag()
                if !begins("!DOCTYPE") || type.contains(UInt8(ascii: "[")) { throw .malformed }
                index = type.endIndex + 1
            } else if begins("?") {
                // The declaration is removed by now.
                if begins("?>") || XMLEncoding.beginsWithDeclaration(bytes[open...]) { throw .malformed }
                try skip("?", to: "?>")
            } else {
                try element()
            }
        }
    }

    private mutating func element() throws(PropertyListCheck.Problem) {
        let tag = try tag()
        index = tag.endIndex + 1
        isInText = false
        // With one quotation mark, the tag may not end here.
        if !tag.count(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }).isMultiple(of: 2) {
            throw .malformed
        }
        if tag.first == UInt8(ascii: "/") {
            depth = max(0, depth - 1)
        } else if tag.last != UInt8(ascii: "/") {
            depth += 1
            isInText = tag.starts(with: "string".utf8) || tag.starts(with: "key".utf8)
            // The outermost tag, and that of a text in the innermost array, are no levels.
            if depth > PropertyListCheck.maximumDepth + 2 { throw .tooDeep }
        }
    }

    /// Returns the bytes up to the end of a tag, which contains no other.
    private func tag() throws(PropertyListCheck.Problem) -> ArraySlice<UInt8> {
        let tag = bytes[index...].prefix { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") }
        guard tag.endIndex < bytes.endIndex, bytes[tag.endIndex] == UInt8(ascii: ">") else { throw .malformed }
        return tag
    }

    private func begins(_ mark: String) -> Bool { bytes[index...].starts(with: mark.utf8) }

    private mutating func skip(_ start: String, to end: String) throws(PropertyListCheck.Problem) {
        let (rest, mark) = (bytes[(index + start.utf8.count)...], Array(end.utf8))
        var place = rest.startIndex
        // Byte by byte: the general search is quadratic for many beginnings of the mark.
        while place + mark.count <= rest.endIndex {
            if rest[place..<place + mark.count].elementsEqual(mark) {
                index = place + mark.count
                return
            }
            place += 1
        }
        throw .malformed
    }
}

/// Follows the references of a property list in binary form.
private struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let top: Int
    private let table: Int
    /// The number of levels from each object down; 0 if it is not known.
    private var depths: [Int32]
    /// The size of each object in bytes, with shared objects counted at each use.
    private var expandedSizes: [Int]
    /// The greatest expanded size of a list. The values that are decoded take several times as much.
    private let sizeLimit: Int
    /// The number of bytes of the objects whose references have been followed.
    private var followed = 0

    /// An object whose references are being followed.
    private struct OpenObject {
        let object: Int
        /// The place of the next reference, and that behind the last.
        var next: Int
        let end: Int
        var depth: Int32 = 1
        var expandedSize: Int
    }

    init(_ bytes: [UInt8]) throws(PropertyListCheck.Problem) {
        // Behind the objects: six unused bytes, two sizes, and three numbers of eight bytes.
        guard bytes.count >= 8 + 32 else { throw .malformed }
        let trailer = bytes.count - 32
        self.bytes = bytes
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        func number(_ place: Int) -> Int { Self.number(bytes[place..<place + 8]) }
        (count, top, table) = (number(trailer + 8), number(trailer + 16), number(trailer + 24))
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), top < count, table >= 8, table <= trailer,
            count <= (trailer - table) / offsetSize
        else { throw .malformed }
        depths = Array(repeating: 0, count: count)
        expandedSizes = Array(repeating: 0, count: count)
        sizeLimit = max(16 << 20, 32 * bytes.count)
    }

    mutating func check() throws(PropertyListCheck.Problem) {
        var open = [try openObject(top)]
        var isOpen: Set<Int> = [top]
        while var last = open.popLast() {
            guard last.next < last.end else {
                depths[last.object] = last.depth
                expandedSizes[last.object] = last.expandedSize
                isOpen.remove(last.object)
                if let parent = open.indices.last { try add(last.object, to: &open[parent]) }
                continue
            }
            let child = Self.number(bytes[last.next..<last.next + referenceSize])
            last.next += referenceSize
            guard child < count else { throw .malformed }
            if isOpen.contains(child) {
                throw PropertyListCheck.Problem(description: "an object of the property list contains itself")
            }
            let depth = depths[child]
            if depth > 0 { try add(child, to: &last) }
            open.append(last)
            if open.count + Int(max(depth, 1)) > PropertyListCheck.maximumDepth + 1 { throw .tooDeep }
            if depth == 0 {
                open.append(try openObject(child))
                isOpen.insert(child)
            }
        }
    }

    private func add(_ child: Int, to object: inout OpenObject) throws(PropertyListCheck.Problem) {
        object.depth = max(object.depth, depths[child] + 1)
        // Objects that are used many times can stand for more than memory holds. Both sizes are below the limit.
        object.expandedSize += expandedSizes[child]
        if object.expandedSize > sizeLimit { throw .tooLarge(sizeLimit) }
    }

    /// Begins to follow the references of an object.
    private mutating func openObject(_ object: Int) throws(PropertyListCheck.Problem) -> OpenObject {
        let entry = table + object * offsetSize
        var place = Self.number(bytes[entry..<entry + offsetSize])
        guard place >= 8, place < table else { throw .malformed }
        let marker = bytes[place]
        place += 1
        let (kind, low) = (marker >> 4, Int(marker & 0xF))
        // Data, text in two forms, array, ordered set, set and dictionary have a number of elements, the others a size.
        guard [0x4, 0x5, 0x6, 0x7, 0xA, 0xB, 0xC, 0xD].contains(kind) else {
            return OpenObject(object: object, next: place, end: place, expandedSize: 16)
        }
        var elements = low
        if low == 0xF {
            guard place < table, bytes[place] >> 4 == 0x1, bytes[place] & 0xF <= 3 else { throw .malformed }
            let length = 1 << Int(bytes[place] & 0xF)
            place += 1
            guard length <= table - place else { throw .malformed }
            elements = Self.number(bytes[place..<place + length])
            place += length
        }
        let elementSize: Int
        switch kind {
        case 0x4, 0x5, 0x7: elementSize = 1
        case 0x6: elementSize = 2
        case 0xD: elementSize = 2 * referenceSize
        default: elementSize = referenceSize
        }
        guard elements <= (table - place) / elementSize else { throw .malformed }
        let end = place + elements * elementSize
        // Objects whose bytes overlap would cost time for each of them.
        followed += end - place
        guard followed <= bytes.count else { throw .malformed }
        return OpenObject(object: object, next: kind < 0xA ? end : place, end: end, expandedSize: 16 + end - place)
    }

    /// Returns the number that at most eight bytes are, the most significant first.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        Int(clamping: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
