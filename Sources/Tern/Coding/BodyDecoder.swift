#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes the body of a response to a value. It runs off every actor, and on an event loop only if the calling task
/// prefers `Session.executor`. For a caller without an actor, ``json`` and ``automatic`` decode a small body where the
/// call runs (``JSONCoding/inPlaceLimit``). ``data`` and ``noContent`` have nothing to decode, and can run on the
/// caller's actor.
public struct BodyDecoder<Value: Sendable>: Sendable {
    /// Returns the value of a body. `coding` is that of the session.
    let decode: @Sendable (_ body: Data, _ head: ResponseHead, _ coding: JSONCoding) throws -> Value
    /// The content types that it can decode.
    let acceptedTypes: AcceptedTypes
    /// Whether it takes no time, whatever the body. It then runs wherever the caller does.
    let isImmediate: Bool
    /// Whether it decodes JSON with the coding of the session, so that it takes little time for a small body.
    var usesSessionCoding = false

    /// Returns whether a body is decoded where the call runs, if the caller has no actor.
    func isQuick(_ body: Data, as coding: JSONCoding) -> Bool {
        usesSessionCoding && body.count <= coding.inPlaceLimit
    }

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
        configured: @escaping @Sendable (_ body: Data, _ head: ResponseHead, _ coding: JSONCoding) throws -> Value
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
    /// Decodes text in the charset of the response's Content-Type. Without a charset, and for one that is not known or
    /// names several, decodes UTF-8, or windows-1252 if the bytes are not UTF-8. `iso-8859-1` means windows-1252, as in
    /// browsers, and UTF-7 is not decoded. Throws for bytes that are no text in the charset of the response.
    public static var string: Self {
        Self { body, head in
            try TextDecoding.text(from: body, label: head.mediaType?.charset)
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
        var decoder = Self(acceptedTypes: .json) { body, _, coding in
            if body.isEmpty { throw AutomaticBody.EmptyBody() }
            return try coding.decode(Value.self, from: body)
        }
        decoder.usesSessionCoding = true
        return decoder
    }

    /// Decodes by type: `Data`, `String` and `NoContent` as a body, an optional of any as nil for an empty body, and
    /// other types as JSON.
    public static var automatic: Self {
        let kind = AutomaticBody.Kind(Value.self)
        var decoder = Self(acceptedTypes: kind.acceptedTypes, isImmediate: kind.isImmediate) { body, head, coding in
            try AutomaticBody.decode(Value.self, kind, from: body, head: head, coding: coding)
        }
        decoder.usesSessionCoding = !decoder.isImmediate
        return decoder
    }
}

/// The value of a response without a value, and the type to request if the body does not matter.
public struct NoContent: Sendable, Hashable, Codable {
    /// Creates the value.
    public init() {}
}

enum AutomaticBody {
    /// The way in which a type is made of a body. To find it takes a look-up of the type, so that a decoder does it
    /// once.
    enum Kind: Sendable {
        case data, text, nothing, json
        case optional(any OptionalBody.Type)

        init(_ type: any Any.Type) {
            if type == Data.self {
                self = .data
            } else if type == String.self {
                self = .text
            } else if type == NoContent.self {
                self = .nothing
            } else if let optional = type as? any OptionalBody.Type {
                self = .optional(optional)
            } else {
                self = .json
            }
        }

        var acceptedTypes: AcceptedTypes {
            switch self {
            case .data, .text, .nothing: .any
            case .json: .json
            case .optional(let type): type.acceptedTypes
            }
        }

        /// Whether a value is made in no time.
        var isImmediate: Bool {
            switch self {
            case .data, .nothing: true
            case .text, .json, .optional: false
            }
        }
    }

    static func decode<Value: Decodable>(
        _ type: Value.Type, _ kind: Kind, from body: Data, head: ResponseHead, coding: JSONCoding
    ) throws -> Value {
        let value: Any
        switch kind {
        case .json:
            if body.isEmpty { throw EmptyBody() }
            return try coding.decode(type, from: body)
        case .data: value = body
        case .text: value = try BodyDecoder.string.decode(body, head, coding)
        case .nothing: value = NoContent()
        case .optional(let optional): value = try optional.decode(from: body, head: head, coding: coding)
        }
        guard let value = value as? Value else { preconditionFailure("the kind is that of the type") }
        return value
    }

    /// Returns whether a body is JSON null or nothing, apart from white space (RFC 8259 §2) and a byte order mark.
    static func isNullOrBlank(_ body: Data) -> Bool {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        let text = (body.starts(with: [0xEF, 0xBB, 0xBF]) ? body.dropFirst(3) : body).drop(while: isSpace)
        guard let last = text.lastIndex(where: { !isSpace($0) }) else { return true }
        return text[...last].elementsEqual("null".utf8)
    }

    struct EmptyBody: Error, CustomStringConvertible {
        var description: String { "it is empty; ask for an optional, Data or NoContent where that may be" }
    }
}

/// An optional of a type that a body can be decoded to.
protocol OptionalBody: SendableMetatype {
    static func decode(from body: Data, head: ResponseHead, coding: JSONCoding) throws -> Self
    static var acceptedTypes: AcceptedTypes { get }
}

extension Optional: OptionalBody where Wrapped: Decodable {
    static var acceptedTypes: AcceptedTypes { AutomaticBody.Kind(Wrapped.self).acceptedTypes }

    static func decode(
        from body: Data, head: ResponseHead, coding: JSONCoding
    ) throws -> Self {
        if body.isEmpty { return nil }
        // For a Decodable type, JSON null counts as empty, and so does white space alone, which some servers send. Data
        // and String take both as content.
        let isText = Wrapped.self == Data.self || Wrapped.self == String.self
        if !isText, AutomaticBody.isNullOrBlank(body) { return nil }
        return try AutomaticBody.decode(
            Wrapped.self, AutomaticBody.Kind(Wrapped.self), from: body, head: head, coding: coding)
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
    ///   - coding: The coding; nil, the default, for that of the session.
    public static func json(
        removingPrefix prefix: String, removesNulls: Bool = false, coding: JSONCoding? = nil
    ) -> Self {
        Self(acceptedTypes: .json) { body, _, standard in
            var json = body
            if json.starts(with: prefix.utf8) { json = json.dropFirst(prefix.utf8.count) }
            if json.isEmpty { throw AutomaticBody.EmptyBody() }
            if removesNulls {
                json = try TernJSONEncoder().encode(TernJSONDecoder().decode(JSONValue.self, from: json).removingNulls)
            }
            return try (coding ?? standard).decode(Value.self, from: json)
        }
    }

    /// Decodes JSON without names whose value is null and without nulls in arrays, at every depth.
    public static var jsonWithoutNulls: Self { json(removingPrefix: "", removesNulls: true) }

    /// Decodes a property list in XML or binary form.
    ///
    /// Its arrays and dictionaries nest at most 200 levels deep, and none contains itself. With its shared objects
    /// counted at each use, a binary list has at most 16 MiB, or 32 times its own size if that is more.
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
        Self(acceptedTypes: .any) { body, head, coding in
            var last: any Error = NoDecoder()
            for decoder in decoders {
                if case .these(let types) = decoder.acceptedTypes, !AcceptedTypes.these(types).fits(head) { continue }
                do {
                    return try decoder.decode(body, head, coding)
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
        head.mediaType.map { contain($0) } ?? false
    }
}

extension NetworkError {
    /// Decodes the start of the refused response's body, for example the problem document of an API, with the coding of
    /// the session.
    ///
    /// ```swift
    /// } catch {
    ///     let problem = try error.decode(as: Problem.self)
    /// }
    /// ```
    ///
    /// - Throws: The error of the decoder, also for a body that is longer than the session's `errorBodyLimit`.
    ///
    /// - Parameter coding: The coding; nil, the default, for that of the session.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self, coding: JSONCoding? = nil) throws -> Value {
        try (coding ?? self.coding ?? JSONCoding()).decode(type, from: body)
    }
}

/// Describes a decoder's error in one line that quotes no value of the body.
package enum DecodingProblem {
    package static func text(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        guard let place = TernJSONErrorPlace(of: error) else { return text(error, suffix: "") }
        // The excerpt has keys and punctuation, and no value.
        return "\(text(error, suffix: " \(place.position)")), \(place.position), in \(place.excerpt)"
    }

    /// - Parameter suffix: The end of the description that is left out.
    private static func text(_ error: DecodingError, suffix: String) -> String {
        switch error {
        case .keyNotFound(let key, let context): "no value for '\(path(context, key))'"
        case .valueNotFound(let type, let context): "null in place of \(type) at '\(path(context))'"
        case .typeMismatch(let type, let context): "not a \(type) at '\(path(context))'"
        case .dataCorrupted(let context): "\(clause(without(suffix, context.debugDescription))) at '\(path(context))'"
        @unknown default: "it cannot be decoded"
        }
    }

    private static func without(_ suffix: String, _ text: String) -> String {
        text.hasSuffix(suffix) ? String(text.dropLast(suffix.count)) : text
    }

    /// Returns a sentence without its full stop, to go on. It ends before a value that it quotes: the standard library
    /// writes one after "value", and Foundation writes a number in angle brackets.
    private static func clause(_ text: String) -> Substring {
        let quoted = [" value ", " <"].compactMap { text.firstRange(of: $0)?.lowerBound }
        if let end = quoted.min() { return text[..<end] }
        return text.last == "." ? text.dropLast() : text[...]
    }

    private static func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
        let keys = context.codingPath + (last.map { [$0] } ?? [])
        if keys.isEmpty { return "the top level" }
        return keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}
