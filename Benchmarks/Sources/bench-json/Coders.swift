import TernJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A decoder and an encoder.
protocol Coder {
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
    func encode<Value: Encodable>(_ value: Value) throws -> Data
}

/// The coders of TernJSON. All settings that a shape does not need are the default ones.
struct TernCoder: Coder {
    private var decoder = TernJSONDecoder()
    private var encoder = TernJSONEncoder()

    init(_ shape: Shape) {
        decoder.dateDecodingStrategy = .iso8601
        encoder.dateEncodingStrategy = .iso8601
        if shape == .pretty { encoder.outputFormatting = .prettyPrinted }
        if shape == .sorted { encoder.outputFormatting = .sortedKeys }
    }

    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try decoder.decode(type, from: data)
    }

    func encode<Value: Encodable>(_ value: Value) throws -> Data { try encoder.encode(value) }
}

/// The coders of Foundation, with the same settings.
struct FoundationCoder: Coder {
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()

    init(_ shape: Shape) {
        decoder.dateDecodingStrategy = .iso8601
        encoder.dateEncodingStrategy = .iso8601
        if shape == .pretty { encoder.outputFormatting = .prettyPrinted }
        if shape == .sorted { encoder.outputFormatting = .sortedKeys }
    }

    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try decoder.decode(type, from: data)
    }

    func encode<Value: Encodable>(_ value: Value) throws -> Data { try encoder.encode(value) }
}
