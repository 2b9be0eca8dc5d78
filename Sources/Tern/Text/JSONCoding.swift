// `import Tern` alone gives the coders and `JSONValue`.
@_exported public import TernJSON

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The settings with which a session decodes and encodes JSON.
///
/// ```swift
/// configuration.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
/// configuration.json.decoder.dateDecodingStrategy = .iso8601
/// configuration.json.encoder.dateEncodingStrategy = .iso8601
/// ```
///
/// Foundation's coders can take their place, for JSON5 and for a subclass of your own: see
/// ``foundation(decoder:encoder:)``.
public struct JSONCoding: Sendable {
    /// Decodes responses, events, lines and messages.
    public var decoder = TernJSONDecoder()
    /// Encodes bodies and messages. By default with sorted keys, so that equal values give equal bytes, and without
    /// escaped slashes.
    public var encoder = Self.defaultEncoder
    /// The size in bytes up to which a response is decoded where the call runs, without a change of threads, if the
    /// caller has no actor. Others are decoded off the caller's actor. 16 KiB by default; 0 for types whose
    /// `init(from:)` takes long.
    public var inPlaceLimit = 16 << 10
    private var makeDecoder: (@Sendable () -> JSONDecoder)?
    private var makeEncoder: (@Sendable () -> JSONEncoder)?

    /// Creates a coding with the defaults stated at each property.
    public init() {}

    /// Returns a coding that uses Foundation's coders in place of ``decoder`` and ``encoder``. With a decoder of
    /// Foundation, no response is decoded where the call runs.
    ///
    /// - Parameters:
    ///   - decoder: Creates a decoder, for each decoding. nil, the default, leaves decoding to ``decoder``.
    ///   - encoder: Creates an encoder, for each encoding. nil, the default, leaves encoding to ``encoder``.
    public static func foundation(
        decoder: (@Sendable () -> JSONDecoder)? = nil, encoder: (@Sendable () -> JSONEncoder)? = nil
    ) -> JSONCoding {
        var coding = JSONCoding()
        (coding.makeDecoder, coding.makeEncoder) = (decoder, encoder)
        if decoder != nil { coding.inPlaceLimit = 0 }
        return coding
    }

    /// Decodes a value from JSON text. A text in UTF-16 or UTF-32, which RFC 8259 §8.1 no longer allows, is converted
    /// first.
    ///
    /// - Throws: The error of the decoder; `CancellationError` if the current task is cancelled.
    public func decode<Value: Decodable>(_ type: Value.Type, from text: Data) throws -> Value {
        if let makeDecoder { return try makeDecoder().decode(type, from: text) }
        // `try?`: the decoder's error says what the text should be.
        if let charset = Self.wideCharset(of: text),
            let converted = try? TextDecoding.string(from: Array(text), charset: charset)
        {
            return try decoder.decode(type, from: converted)
        }
        return try decoder.decode(type, from: text)
    }

    /// Returns the charset of a text in UTF-16 or UTF-32, whose first character is one of ASCII or a byte order mark;
    /// nil for another text.
    private static func wideCharset(of text: Data) -> String? {
        guard text.count >= 2 else { return nil }
        let start = text.startIndex
        let (first, second) = (text[start], text[start + 1])
        let endsInZeros = text.count >= 4 && text[start + 2] == 0 && text[start + 3] == 0
        return switch (first, second) {
        case (0xFE, 0xFF), (0xFF, 0xFE): endsInZeros ? "utf-32" : "utf-16"
        case (0, 0): "utf-32"
        case (0, _): "utf-16"
        case (_, 0): endsInZeros ? "utf-32le" : "utf-16le"
        default: nil
        }
    }

    /// Encodes a value as JSON text.
    ///
    /// - Throws: The error of the encoder.
    public func encode(_ value: some Encodable) throws -> Data {
        if let makeEncoder { return try makeEncoder().encode(value) }
        return try encoder.encode(value)
    }

    private static let defaultEncoder: TernJSONEncoder = {
        var encoder = TernJSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()
}
