/// The values that a description shows although they can be secrets: of query parameters and, in a `curl` command, of
/// header fields with certain names. Names are compared without regard to case.
///
/// ```swift
/// LoggingInterceptor(.headers, revealing: ["page", "sort"]) { logger.debug("\($0)") }
/// print(request.curlDescription(revealing: .all))
/// ```
public struct RevealedValues: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// The names in lower case; nil for all.
    private let names: Set<String>?

    /// Every value, and the user information of URLs. The text is as secret as the request.
    public static let all = RevealedValues(names: nil)
    /// No value.
    public static let none: RevealedValues = []

    /// Creates a set of names, not encoded.
    public init(_ names: some Sequence<String>) { self.names = Set(names.map { $0.lowercased() }) }

    /// Creates a set of names, not encoded.
    public init(arrayLiteral names: String...) { self.init(names) }

    private init(names: Set<String>?) { self.names = names }

    /// Whether every value is shown.
    package var isAll: Bool { names == nil }

    /// Returns whether the value of a parameter or field is shown.
    package func contains(_ name: String) -> Bool {
        guard let names else { return true }
        return !names.isEmpty && names.contains(name.lowercased())
    }
}
