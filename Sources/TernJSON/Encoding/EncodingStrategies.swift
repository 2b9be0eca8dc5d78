#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TernJSONEncoder {
    /// Options for the layout of the text.
    public struct OutputFormatting: OptionSet, Sendable {
        /// The options as bits.
        public let rawValue: UInt

        /// Creates options from bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Writes each member and element on a line of its own, indented by two spaces a level.
        public static let prettyPrinted = OutputFormatting(rawValue: 1 << 0)
        /// Sorts the names of each object by their UTF-8 bytes.
        public static let sortedKeys = OutputFormatting(rawValue: 1 << 1)
        /// Writes `/` instead of `\/`.
        public static let withoutEscapingSlashes = OutputFormatting(rawValue: 1 << 3)
    }

    /// The ways to write a date.
    public enum DateEncodingStrategy: Sendable {
        /// The number of seconds since the start of 2001, as the date encodes itself.
        case deferredToDate
        /// The number of seconds since the start of 1970, with fractions.
        case secondsSince1970
        /// The number of milliseconds since the start of 1970, with fractions.
        case millisecondsSince1970
        /// A text such as `2026-11-28T22:47:04Z` (RFC 3339). Fractions of a second are dropped. A date outside of the
        /// years 1 to 9999 is an error.
        case iso8601
        /// A text such as `2026-11-28T22:47:04.125Z` (RFC 3339), rounded to milliseconds. A date outside of the years 1
        /// to 9999 is an error.
        case iso8601WithFractionalSeconds
        #if canImport(Darwin)
        /// The text of a formatter. Apple's systems only.
        case formatted(DateFormatter)
        #endif
        /// Calls a function that writes the date to the encoder. If it writes nothing, the value is an empty object.
        case custom(@Sendable (Date, any Encoder) throws -> Void)
    }

    /// The ways to write `Data`.
    public enum DataEncodingStrategy: Sendable {
        /// An array of numbers, as `Data` encodes itself.
        case deferredToData
        /// A string in Base64 (RFC 4648 §4).
        case base64
        /// Calls a function that writes the data to the encoder. If it writes nothing, the value is an empty object.
        case custom(@Sendable (Data, any Encoder) throws -> Void)
    }

    /// The ways to write the names of an object's members. The keys of a dictionary are written as they are.
    public enum KeyEncodingStrategy: Sendable {
        /// The text of the coding key.
        case useDefaultKeys
        /// `userName` as `user_name`, and `myURLProperty` as `my_url_property`, as Foundation's encoder.
        case convertToSnakeCase
        /// The key that a function returns for a coding path, whose last key is the one to convert.
        case custom(@Sendable ([any CodingKey]) -> any CodingKey)
    }

    /// The ways to write infinity and NaN.
    public enum NonConformingFloatEncodingStrategy: Sendable {
        /// Throws `EncodingError.invalidValue`.
        case `throw`
        /// Writes one of three strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }
}
