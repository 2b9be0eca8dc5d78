import Foundation
import TernJSON
import Testing

/// A pair of encoders with the same settings.
struct Encoders {
    var tern = TernJSONEncoder()
    let foundation = JSONEncoder()

    init(
        _ formatting: TernJSONEncoder.OutputFormatting = .sortedKeys,
        configure: (inout TernJSONEncoder, JSONEncoder) -> Void = { _, _ in }
    ) {
        tern.outputFormatting = formatting
        foundation.outputFormatting = JSONEncoder.OutputFormatting(rawValue: formatting.rawValue)
        configure(&tern, foundation)
    }

    /// Expects the same text from both.
    func expectSameText(_ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let ours = String(decoding: try tern.encode(value), as: UTF8.self)
        let theirs = String(decoding: try foundation.encode(value), as: UTF8.self)
        #expect(ours == theirs, sourceLocation: sourceLocation)
    }

    /// Expects an error of the same case, with the same path.
    func expectSameError(_ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation) {
        let ours = failure { _ = try tern.encode(value) }
        let theirs = failure { _ = try foundation.encode(value) }
        #expect(ours == theirs, sourceLocation: sourceLocation)
        #expect(ours != nil, sourceLocation: sourceLocation)
    }
}

/// Returns the case and the path of the error that a function throws; nil if it throws none.
func failure(_ body: () throws -> Void) -> String? {
    do {
        try body()
        return nil
    } catch EncodingError.invalidValue(_, let context) {
        return "invalidValue at " + path(context.codingPath)
    } catch {
        return "\(error)"
    }
}

func path(_ keys: [any CodingKey]) -> String {
    keys.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
}

/// Expects the same text from both encoders with sorted keys, also pretty-printed, and that Foundation's decoder gives
/// the value back.
func expectSameText<Value: Codable & Equatable>(
    _ value: Value, sourceLocation: SourceLocation = #_sourceLocation,
    configure: (inout TernJSONEncoder, JSONEncoder, JSONDecoder) -> Void = { _, _, _ in }
) throws {
    let decoder = JSONDecoder()
    for formatting in [
        TernJSONEncoder.OutputFormatting.sortedKeys, [.sortedKeys, .prettyPrinted],
        [.sortedKeys, .withoutEscapingSlashes],
    ] {
        let encoders = Encoders(formatting) { configure(&$0, $1, decoder) }
        try encoders.expectSameText(value, sourceLocation: sourceLocation)
    }
    for formatting in [TernJSONEncoder.OutputFormatting(), .prettyPrinted] {
        let encoders = Encoders(formatting) { configure(&$0, $1, decoder) }
        let text = try encoders.tern.encode(value)
        #expect(try decoder.decode(Value.self, from: text) == value, sourceLocation: sourceLocation)
        #expect(try Data(encoders.tern.encodeToBytes(value)) == text, sourceLocation: sourceLocation)
    }
}

/// Encodes by a function.
struct Closure: Encodable {
    let body: (any Encoder) throws -> Void

    init(_ body: @escaping (any Encoder) throws -> Void) { self.body = body }

    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

/// A key of any text.
struct AnyKey: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
    init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
    init(stringLiteral value: String) { self.init(stringValue: value) }
}

/// A key of one byte.
enum ShortKey: String, CodingKey {
    case a, b, c, d
    case dash = "a-b"
    case slash = "a/b"
    case userName
    case `super`
}
