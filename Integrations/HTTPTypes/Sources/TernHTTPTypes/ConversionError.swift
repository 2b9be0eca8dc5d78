/// The reason why a message cannot be converted between Tern and swift-http-types. Nothing was sent.
///
/// The text names the part of the message and never quotes a header value, user information or a query.
public struct ConversionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// One sentence that says what cannot be converted and why.
    public let reason: String

    init(_ reason: String) { self.reason = reason }

    /// The same as ``reason``.
    public var description: String { reason }
}

extension String {
    /// The text for an error: of limited length, and with control characters replaced.
    var shown: String {
        String(
            String.UnicodeScalarView(unicodeScalars.prefix(80).map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
