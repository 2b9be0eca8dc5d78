#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes a value of a response's body. Runs off every actor, the engine's loop included.
public struct BodyDecoder<Value: Sendable>: Sendable {
    let decode: @Sendable (_ body: Data, _ head: ResponseHead, _ context: SessionContext) throws -> Value
    /// The content types that it can make a value of.
    let fitting: AcceptedTypes

    /// A decoder by hand. What it throws becomes the `underlying` of an error of kind `.decoding`.
    ///
    /// - Parameter contentTypes: The content types that it can read, such as `text/csv` or `image/*`; a response of
    ///   another one is refused before. nil, the default, for any.
    public init(
        contentTypes: [String]? = nil,
        _ decode: @escaping @Sendable (_ body: Data, _ head: ResponseHead) throws -> Value
    ) {
        self.decode = { body, head, _ in try decode(body, head) }
        fitting = contentTypes.map { .these($0) } ?? .any
    }

    init(
        fitting: AcceptedTypes, configured: @escaping @Sendable (Data, ResponseHead, SessionContext) throws -> Value
    ) {
        decode = configured
        self.fitting = fitting
    }
}

extension BodyDecoder where Value == Data {
    /// The body as it is.
    public static var data: Self { Self { body, _ in body } }
}

extension BodyDecoder where Value == String {
    /// Text by the charset of the response's Content-Type; UTF-8 without one, and ISO-8859-1 where that fails.
    public static var string: Self {
        Self { body, head in
            let charset = head.headers["Content-Type"].flatMap { MediaType($0) }?.charset
            return try TextDecoding.string(from: body, charset: charset)
        }
    }
}

extension BodyDecoder where Value == NoContent {
    /// Nothing: the body, if there is one, is left alone.
    public static var noContent: Self { Self { _, _ in NoContent() } }
}

extension BodyDecoder where Value: Decodable {
    /// JSON, by a decoder of the session's configuration.
    public static var json: Self {
        Self(fitting: .json) { body, _, context in
            if body.isEmpty { throw AutomaticBody.EmptyBody() }
            return try context.configuration.makeJSONDecoder().decode(Value.self, from: body)
        }
    }

    /// What the type asks for: `Data`, `String` and `NoContent` are taken as body types, an optional of any is nil for an
    /// empty body, and all else is JSON.
    public static var automatic: Self {
        Self(fitting: AutomaticBody.fitting(Value.self)) { body, head, context in
            try AutomaticBody.value(Value.self, body, head, context)
        }
    }
}

/// The value of a response that has none, and the type to ask for when the body does not matter.
public struct NoContent: Sendable, Hashable, Codable {
    /// Nothing.
    public init() {}
}

enum AutomaticBody {
    static func fitting(_ type: any Any.Type) -> AcceptedTypes {
        if let optional = type as? any OptionalBody.Type { return optional.fitting }
        return type == Data.self || type == String.self || type == NoContent.self ? .any : .json
    }

    static func value<Value: Decodable>(
        _ type: Value.Type, _ body: Data, _ head: ResponseHead, _ context: SessionContext
    ) throws -> Value {
        if type == Data.self, let value = body as? Value { return value }
        if type == String.self, let value = try BodyDecoder.string.decode(body, head, context) as? Value {
            return value
        }
        if type == NoContent.self, let value = NoContent() as? Value { return value }
        if let optional = type as? any OptionalBody.Type,
            let value = try optional.value(body, head, context) as? Value
        {
            return value
        }
        if body.isEmpty { throw EmptyBody() }
        return try context.configuration.makeJSONDecoder().decode(Value.self, from: body)
    }

    struct EmptyBody: Error, CustomStringConvertible {
        var description: String { "it is empty; ask for an optional, Data or NoContent where that may be" }
    }
}

/// Optionals of what can be a body.
private protocol OptionalBody {
    static func value(_ body: Data, _ head: ResponseHead, _ context: SessionContext) throws -> Self
    static var fitting: AcceptedTypes { get }
}

extension Optional: OptionalBody where Wrapped: Decodable {
    fileprivate static var fitting: AcceptedTypes { AutomaticBody.fitting(Wrapped.self) }

    fileprivate static func value(
        _ body: Data, _ head: ResponseHead, _ context: SessionContext
    ) throws -> Self {
        if body.isEmpty { return nil }
        // A body that is JSON null, or the one space that some servers send for nothing, is an empty one of a Decodable
        // type; Data and String take it as text.
        let isText = Wrapped.self == Data.self || Wrapped.self == String.self
        if !isText, body.elementsEqual("null".utf8) || body.elementsEqual(" ".utf8) { return nil }
        return try AutomaticBody.value(Wrapped.self, body, head, context)
    }
}
