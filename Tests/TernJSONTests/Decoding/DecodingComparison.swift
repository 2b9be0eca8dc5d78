import Foundation
import Testing

@testable import TernJSON

/// Decodes with our decoder and with Foundation's, and compares.
struct Comparison {
    var ours = TernJSONDecoder()
    let foundation = JSONDecoder()

    /// Expects equal values.
    func same<Value: Decodable & Equatable>(
        _ type: Value.Type, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        do {
            let theirs = try foundation.decode(type, from: Data(text.utf8))
            #expect(try ours.decode(type, from: text) == theirs, sourceLocation: sourceLocation)
            #expect(try ours.decode(type, from: Data(text.utf8)) == theirs, sourceLocation: sourceLocation)
        } catch {
            Issue.record("\(text): \(error)", sourceLocation: sourceLocation)
        }
    }

    /// Expects errors of the same case with the same path.
    func sameError<Value: Decodable>(
        _ type: Value.Type, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let theirs = Self.summary { try foundation.decode(type, from: Data(text.utf8)) }
        let summary = Self.summary { try ours.decode(type, from: text) }
        #expect(theirs != "none", "Foundation accepts \(text)", sourceLocation: sourceLocation)
        #expect(summary == theirs, "\(text)", sourceLocation: sourceLocation)
    }

    /// Expects errors that differ on purpose.
    func differs<Value: Decodable>(
        _ type: Value.Type, _ text: String, ours: String, foundation expected: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let theirs = Self.summary { try foundation.decode(type, from: Data(text.utf8)) }
        #expect(Self.summary { try self.ours.decode(type, from: text) } == ours, sourceLocation: sourceLocation)
        #expect(theirs == expected, sourceLocation: sourceLocation)
    }

    /// The case and path of an error: `typeMismatch user.0.name`.
    static func summary<Value>(_ decode: () throws -> Value) -> String {
        do {
            _ = try decode()
            return "none"
        } catch let error as DecodingError {
            switch error {
            case .typeMismatch(_, let context): return "typeMismatch \(path(context))"
            case .valueNotFound(_, let context): return "valueNotFound \(path(context))"
            case .keyNotFound(let key, let context): return "keyNotFound \(path(context)) \(key.stringValue)"
            case .dataCorrupted(let context): return "dataCorrupted \(path(context))"
            @unknown default: return "unknown"
            }
        } catch {
            return "\(error)"
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        // The keys of a dictionary with numbers as keys are strings in the text.
        context.codingPath.map { $0.stringValue.replacingOccurrences(of: "Index ", with: "#") }.joined(separator: ".")
    }
}
