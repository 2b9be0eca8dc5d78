#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Encodes values to JSON (RFC 8259).
///
/// ```swift
/// let body = try TernJSONEncoder().encode(user)
/// ```
///
/// The settings have the names and the meaning of those of Foundation's `JSONEncoder`, and the text is the same, except
/// for the order of the names of an object: without ``OutputFormatting/sortedKeys`` they are in the order in which they
/// were written.
///
/// - If a name is written twice in an object, the last value counts. It is at the place of the first one.
/// - Numbers are written in the shortest form that reads back as the same value. A `Float16` is written by its own
///   precision.
/// - Arrays and objects can nest 512 levels deep. Values that encode each other without an end are an error, at 512
///   calls of `encode(to:)` within each other or 320 KiB of stack (about 100 calls in a debug build).
/// - A type may use its containers in any order, keep them, and ask for the same one several times. A misuse for which
///   Foundation stops the process, such as two values at one place, is an `EncodingError`.
/// - A long encoding looks every 64 KiB whether the current task is cancelled, and throws `CancellationError`.
///
/// An encoder is a value, and can be used by several tasks at the same time.
public struct TernJSONEncoder: Sendable {
    /// The layout of the text. Empty by default: without white space, `/` as `\/`.
    public var outputFormatting: OutputFormatting = []
    /// How dates are written. ``DateEncodingStrategy/deferredToDate`` by default.
    public var dateEncodingStrategy = DateEncodingStrategy.deferredToDate
    /// How `Data` is written. ``DataEncodingStrategy/base64`` by default.
    public var dataEncodingStrategy = DataEncodingStrategy.base64
    /// How the names of an object are written. ``KeyEncodingStrategy/useDefaultKeys`` by default. The keys of a
    /// dictionary are written as they are.
    public var keyEncodingStrategy = KeyEncodingStrategy.useDefaultKeys
    /// How infinity and NaN are written, which JSON does not have. ``NonConformingFloatEncodingStrategy/throw`` by
    /// default.
    public var nonConformingFloatEncodingStrategy = NonConformingFloatEncodingStrategy.throw
    /// Values that `encode(to:)` can read from its encoder. Empty by default.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Creates an encoder with the default settings.
    public init() {}

    /// Whether all settings except for the layout are the default ones.
    var hasDefaultStrategies: Bool {
        guard case .deferredToDate = dateEncodingStrategy, case .base64 = dataEncodingStrategy,
            case .useDefaultKeys = keyEncodingStrategy, case .throw = nonConformingFloatEncodingStrategy
        else { return false }
        return userInfo.isEmpty
    }

    /// Encodes a value to JSON in UTF-8.
    ///
    /// - Throws: `EncodingError.invalidValue` for a number that JSON cannot hold, for a value that encodes nothing, for
    ///   arrays and objects that nest too deep, and for misuse of an encoder; `CancellationError` if the current task
    ///   is cancelled; the errors of the value's `encode(to:)`.
    public func encode<Value: Encodable>(_ value: Value) throws -> Data {
        unsafe try withText(of: value) { text in
            guard let start = text.baseAddress else { return Data() }
            return unsafe Data(bytes: start, count: text.count)
        }
    }

    /// Encodes a value to the bytes of JSON in UTF-8.
    ///
    /// - Throws: As ``encode(_:)``.
    public func encodeToBytes<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        unsafe try withText(of: value) { text in unsafe [UInt8](text) }
    }

    /// Swift 6.3.1 crashes when it specialises this for a class, therefore never.
    @_semantics("optimize.sil.specialize.generic.never")
    private func withText<Value: Encodable, Result>(
        of value: Value, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) throws -> Result {
        let run = EncodingRun(self)
        try run.writer.writeTopLevel(value)
        return try unsafe run.withFinishedText(body)
    }
}
