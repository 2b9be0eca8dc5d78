extension Request {
    /// Query items of one call, in order.
    ///
    /// A literal keeps its order. A value may be anything that describes itself; nil gives the bare name, without `=`.
    /// The items are put behind a query that the URL has already.
    ///
    /// ```swift
    /// let query: Request.Query = ["page": 2, "tags": "a b", "flag": nil]   // page=2&tags=a%20b&flag
    /// ```
    public struct Query: Sendable, Hashable {
        /// One name with its value.
        public struct Item: Sendable, Hashable {
            /// The name, not encoded.
            public var name: String
            /// The value, not encoded; nil for a bare name.
            public var value: String?

            /// Makes an item from a name and a value, both not encoded.
            public init(name: String, value: String?) {
                self.name = name
                self.value = value
            }
        }

        /// The items in the order in which they are sent. A name may occur more than once.
        public var items: [Item]

        /// How a space is written; `.percentEncoded` by default.
        public var spaces = FormEncoder.Spaces.percentEncoded

        /// Makes a query without items.
        public init() { items = [] }

        /// Takes over the items in their order.
        public init(_ items: some Sequence<Item>) { self.items = Array(items) }

        /// The members of a value as items, named, ordered and written as the encoder says.
        ///
        /// - Throws: `NetworkError` of kind `.invalidRequest` when the value cannot be encoded.
        public init(encoding value: some Encodable, with encoder: FormEncoder = FormEncoder()) throws(NetworkError) {
            do {
                items = try encoder.items(of: value)
            } catch {
                let reason = "the values cannot be encoded: \(EncodingProblem.text(error))"
                throw NetworkError(.invalidRequest, reason: reason, underlying: error)
            }
            spaces = encoder.spaces
        }

        /// Whether there are no items, so that the URL stays as it is.
        public var isEmpty: Bool { items.isEmpty }

        /// Adds an item at the end; nil gives the bare name.
        public mutating func append(_ name: String, _ value: (any CustomStringConvertible & Sendable)?) {
            items.append(Item(name: name, value: value?.description))
        }

        /// The items as they stand in a URL, without the `?`.
        package var encoded: String { QueryEncoding.encode(items, spaces: spaces) }
    }
}

extension Request.Query: ExpressibleByDictionaryLiteral {
    /// Keeps the literal's order; a name may occur more than once.
    public init(dictionaryLiteral elements: (String, (any CustomStringConvertible & Sendable)?)...) {
        items = elements.map { Item(name: $0.0, value: $0.1?.description) }
    }
}

extension Request.Query.Item: CustomStringConvertible, CustomReflectable {
    /// The name; the value may be a secret and is hidden.
    public var description: String { value == nil ? name : "\(name)=<redacted>" }

    /// Nothing beside ``description``: `dump` would show the value.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Request.Query: CustomStringConvertible {
    /// The names of the items; values may be secrets and are hidden.
    public var description: String { items.map(\.description).joined(separator: "&") }
}
