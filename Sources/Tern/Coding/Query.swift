extension Request {
    /// Query items of one request, in order.
    ///
    /// A literal keeps its order. A value can have any type with a description. nil leaves the item out, and `.null`
    /// gives the bare name, without `=`. The items follow a query that the URL already has.
    ///
    /// ```swift
    /// let query: Request.Query = ["page": 2, "tags": "a b", "cursor": nil, "flag": .null]   // page=2&tags=a%20b&flag
    /// ```
    public struct Query: Sendable, Hashable {
        /// A name with its value.
        public struct Item: Sendable, Hashable {
            /// The name, not encoded.
            public var name: String
            /// The value, not encoded; nil for a bare name.
            public var value: String?

            /// Creates an item from a name and a value, both not encoded.
            public init(name: String, value: String?) {
                self.name = name
                self.value = value
            }
        }

        /// The items in the order in which they are sent. A name can occur more than once.
        public var items: [Item]

        /// The encoding of a space. `.percentEncoded` by default.
        public var spaces = FormEncoder.Spaces.percentEncoded

        /// Creates a query without items.
        public init() { items = [] }

        /// Creates a query from items in order.
        public init(_ items: some Sequence<Item>) { self.items = Array(items) }

        /// Creates a query from a dictionary, ordered by name so that the result is the same in every run.
        public init(_ dictionary: [String: String]) {
            items = dictionary.sorted { ($0.key, $0.value) < ($1.key, $1.value) }.map {
                Item(name: $0.key, value: $0.value)
            }
        }

        /// Creates a query from the members of a value, with the names, order and format of the encoder.
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

        /// A Boolean value that indicates whether there are no items, so that the URL stays unchanged.
        public var isEmpty: Bool { items.isEmpty }

        /// Appends an item. nil appends nothing, and `.null` the bare name.
        public mutating func append(_ name: String, _ value: (any CustomStringConvertible & Sendable)?) {
            if let item = Item(name, value) { items.append(item) }
        }

        /// The items as a URL contains them, without the `?`.
        package var encoded: String { QueryEncoding.encode(items, spaces: spaces) }
    }
}

extension Request.Query: ExpressibleByDictionaryLiteral {
    /// Creates a query in the literal's order. A name can occur more than once.
    public init(dictionaryLiteral elements: (String, (any CustomStringConvertible & Sendable)?)...) {
        items = elements.compactMap { Item($0.0, $0.1) }
    }
}

extension Request.Query.Item {
    fileprivate init?(_ name: String, _ value: (any CustomStringConvertible & Sendable)?) {
        guard let value else { return nil }
        self.init(name: name, value: value is BareName ? nil : value.description)
    }

    fileprivate struct BareName: CustomStringConvertible, Sendable {
        var description: String { "" }
    }
}

extension Optional where Wrapped == any CustomStringConvertible & Sendable {
    /// The value of a query item that has only a name, as in `?flag`.
    public static var null: Self { .some(Request.Query.Item.BareName()) }
}

extension Request.Query.Item: CustomStringConvertible, CustomReflectable {
    /// The name. The value is hidden, because it can be a secret.
    public var description: String { value == nil ? name : "\(name)=<redacted>" }

    /// An empty mirror. Without it, `dump` would show the value.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Request.Query: CustomStringConvertible {
    /// The names of the items. Values are hidden, because they can be secrets.
    public var description: String { items.map(\.description).joined(separator: "&") }
}

extension Target {
    /// Returns a target with further query items after the existing ones.
    package func appending(_ query: Request.Query) -> Target {
        appending(encodedQuery: query.encoded)
    }
}

extension QueryEncoding {
    /// Returns `name=value` pairs joined by `&`, in order. A nil value gives the bare name.
    package static func encode(
        _ items: [Request.Query.Item], spaces: FormEncoder.Spaces = .percentEncoded
    ) -> String {
        var result: [UInt8] = []
        for (index, item) in items.enumerated() {
            append(name: item.name, value: item.value, isFirst: index == 0, to: &result, usesPlus: spaces == .plus)
        }
        return String(decoding: result, as: UTF8.self)
    }
}
