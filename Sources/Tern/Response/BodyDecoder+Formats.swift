#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension BodyDecoder where Value: Decodable {
    /// JSON that is not quite what its type expects.
    ///
    /// - Parameters:
    ///   - prefix: Bytes that stand before the JSON to keep it from being run as a script, such as `)]}',`; removed, with
    ///     a line break behind them, where they are.
    ///   - removesNulls: Whether names whose value is null, and nulls in arrays, are removed at every depth first.
    ///   - makeDecoder: Makes the decoder; nil for that of the session.
    public static func json(
        removingPrefix prefix: String, removesNulls: Bool = false,
        makeDecoder: (@Sendable () -> JSONDecoder)? = nil
    ) -> Self {
        Self(fitting: .json) { body, _, context in
            var json = body
            if json.starts(with: prefix.utf8) { json = json.dropFirst(prefix.utf8.count) }
            if json.isEmpty { throw AutomaticBody.EmptyBody() }
            if removesNulls {
                json = try JSONEncoder().encode(JSONDecoder().decode(JSONValue.self, from: json).removingNulls)
            }
            let decoder = makeDecoder?() ?? context.configuration.makeJSONDecoder()
            return try decoder.decode(Value.self, from: json)
        }
    }

    /// JSON without the names whose value is null, and without nulls in arrays, at every depth.
    public static var jsonWithoutNulls: Self { json(removingPrefix: "", removesNulls: true) }

    /// A property list, in XML or binary form.
    public static var propertyList: Self {
        let types = ["application/x-plist", "application/xml", "text/xml", "application/x-apple-binary-plist"]
        return Self(fitting: .these(types)) { body, _, _ in
            try PropertyListDecoder().decode(Value.self, from: body)
        }
    }
}

extension BodyDecoder {
    /// The value of the first decoder that succeeds. The content types of each are its own affair; when all fail, the
    /// error of the last is thrown.
    public static func first(of decoders: [BodyDecoder]) -> Self {
        Self(fitting: .any) { body, head, context in
            var last: any Error = NoDecoder()
            for decoder in decoders {
                if case .these(let types) = decoder.fitting, !AcceptedTypes.these(types).fits(head) { continue }
                do {
                    return try decoder.decode(body, head, context)
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
    /// The start of the refused response's body as a value of the caller's own: the problem document of an API, say.
    ///
    /// ```swift
    /// } catch {
    ///     let problem = try error.decode(as: Problem.self)
    /// }
    /// ```
    ///
    /// - Throws: What the decoder throws, also for a body that is longer than the session's `errorBodyLimit`.
    public func decode<Value: Decodable>(
        as type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: body)
    }
}
