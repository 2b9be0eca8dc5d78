#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes values from JSON (RFC 8259), with the settings of Foundation's `JSONDecoder` and, in optimized builds, in
/// about a seventh of its time.
///
/// ```swift
/// var decoder = TernJSONDecoder()
/// decoder.dateDecodingStrategy = .iso8601
/// decoder.keyDecodingStrategy = .convertFromSnakeCase
/// let user = try decoder.decode(User.self, from: data)
/// ```
///
/// A decoder is a value. It can be used by any number of tasks at once.
///
/// It differs from Foundation's decoder in these points:
///
/// - Only texts that obey RFC 8259 in UTF-8 are accepted: no commas at the end, no invalid UTF-8, no halves of
///   characters. A byte order mark at the beginning is ignored. JSON5, and texts in UTF-16 and UTF-32, are left to
///   Foundation's decoder.
/// - If a key occurs twice in an object, the last value counts, as in ECMAScript. Keys are compared byte by byte.
/// - Dates in ISO 8601 can have fractions of a second.
/// - A number too close to zero for its floating-point type, such as 1e-400, is 0. A fraction that is lost is an error
///   for an integer.
/// - An error says where in the text it is; see ``TernJSONErrorPlace``.
///
/// The time is proportional to the size of the text, whatever its bytes are. Beside the values, decoding needs up to 8
/// bytes of memory for each byte of the text, up to 16 while the memory grows, and usually about 1.3. An object with
/// very many, repeated or converted keys also needs an index. In a task, cancellation ends the decoding with a
/// `CancellationError`.
public struct TernJSONDecoder: Sendable {
    /// The ways to decode dates.
    public enum DateDecodingStrategy: Sendable {
        /// As `Date` decodes itself: from the seconds since the beginning of 2001.
        case deferredToDate
        /// From a number of seconds since the beginning of 1970.
        case secondsSince1970
        /// From a number of milliseconds since the beginning of 1970.
        case millisecondsSince1970
        /// From a string with date and time of RFC 3339, with or without fractions of a second, with any offset from
        /// UTC.
        case iso8601
        #if canImport(Darwin)
        /// From a string, with a formatter.
        case formatted(DateFormatter)
        #endif
        /// With a function.
        case custom(@Sendable (_ decoder: any Decoder) throws -> Date)
    }

    /// The ways to decode data.
    public enum DataDecodingStrategy: Sendable {
        /// As `Data` decodes itself: from an array of numbers.
        case deferredToData
        /// From a string in Base64.
        case base64
        /// With a function.
        case custom(@Sendable (_ decoder: any Decoder) throws -> Data)
    }

    /// The ways to find the value of a coding key.
    public enum KeyDecodingStrategy: Sendable {
        /// The key is the same in the text.
        case useDefaultKeys
        /// `one_two_three` in the text is `oneTwoThree`. Underscores at the beginning and at the end stay. The keys of
        /// dictionaries (`[String: Value]`) are not converted.
        case convertFromSnakeCase
        /// With a function, which gets the coding path of the object and, as its last key, the key in the text, and
        /// returns the coding key. The keys of dictionaries (`[String: Value]`) are not converted.
        case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// The ways to decode infinity and NaN, for which JSON has no numbers.
    public enum NonConformingFloatDecodingStrategy: Sendable {
        /// They are errors.
        case `throw`
        /// From these strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    private var settings = DecodingSettings.initial

    /// The way to decode dates. The default is ``DateDecodingStrategy/deferredToDate``.
    public var dateDecodingStrategy: DateDecodingStrategy {
        get { settings.values.dates }
        set { settings = settings.changed { $0.dates = newValue } }
    }
    /// The way to decode data. The default is ``DataDecodingStrategy/base64``.
    public var dataDecodingStrategy: DataDecodingStrategy {
        get { settings.values.data }
        set { settings = settings.changed { $0.data = newValue } }
    }
    /// The way to find the value of a coding key. The default is ``KeyDecodingStrategy/useDefaultKeys``.
    public var keyDecodingStrategy: KeyDecodingStrategy {
        get { settings.values.keys }
        set { settings = settings.changed { $0.keys = newValue } }
    }
    /// The way to decode infinity and NaN. The default is ``NonConformingFloatDecodingStrategy/throw``.
    public var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy {
        get { settings.values.floats }
        set { settings = settings.changed { $0.floats = newValue } }
    }
    /// Values that types can read while they are decoded. The default is none.
    public var userInfo: [CodingUserInfoKey: any Sendable] {
        get { settings.values.userInfo }
        set { settings = settings.changed { $0.userInfo = newValue } }
    }
    /// The deepest nesting of arrays and objects. The default is 512. A type that contains itself uses the stack for
    /// each level.
    public var depthLimit: Int {
        get { settings.values.depthLimit }
        set { settings = settings.changed { $0.depthLimit = newValue } }
    }

    /// Creates a decoder with default settings.
    public init() {}

    /// Decodes a value from JSON text in UTF-8.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for bytes that are not JSON; another `DecodingError` for a value of
    ///   another kind; `CancellationError` if the current task is cancelled; errors of the type itself.
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try unsafe data.withUnsafeBytes { try unsafe decode(type, from: $0) }
    }

    /// Decodes a value from JSON text in UTF-8.
    ///
    /// - Throws: See ``decode(_:from:)-(_,Data)``.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        try unsafe bytes.withUnsafeBytes { try unsafe decode(type, from: $0) }
    }

    /// Decodes a value from JSON text.
    ///
    /// - Throws: See ``decode(_:from:)-(_,Data)``.
    public func decode<Value: Decodable>(_ type: Value.Type, from text: String) throws -> Value {
        let result = try unsafe text.utf8.withContiguousStorageIfAvailable {
            try unsafe decode(type, from: UnsafeRawBufferPointer($0))
        }
        if let result { return result }
        // A string bridged from NSString is copied.
        return try decode(type, from: Array(text.utf8))
    }

    /// Decodes a value from JSON text in UTF-8.
    ///
    /// - Throws: See ``decode(_:from:)-(_,Data)``.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: RawSpan) throws -> Value {
        try unsafe bytes.withUnsafeBytes { try unsafe decode(type, from: $0) }
    }

    @unsafe
    private func decode<Value: Decodable>(_ type: Value.Type, from bytes: UnsafeRawBufferPointer) throws -> Value {
        var owner = DecodingPool.take()
        defer { if owner.core.end(isUnique: isKnownUniquelyReferenced(&owner)) { DecodingPool.put(owner) } }
        do {
            try unsafe owner.core.begin(bytes.assumingMemoryBound(to: UInt8.self), settings: settings)
            let value = try owner.core.value(type, at: 0)
            try owner.core.checkEnd()
            return value
        } catch {
            throw owner.core.located(error)
        }
    }
}
