import Tern

/// The `No-Vary-Search` field of a response: which parameters of the query do not change it.
///
/// A field that is malformed, or whose members contradict each other, has no effect.
struct NoVarySearch: Sendable, Hashable {
    /// The parameters that are ignored.
    enum Ignored: Sendable, Hashable {
        case none
        case names(Set<String>)
        /// All but these.
        case allExcept(Set<String>)
    }

    let ignored: Ignored
    /// Whether the order of parameters with different names has no meaning.
    let ignoresOrder: Bool

    /// The rule without the field: the query must be the same.
    static let exact = NoVarySearch(ignored: .none, ignoresOrder: false)

    init(ignored: Ignored, ignoresOrder: Bool) {
        self.ignored = ignored
        self.ignoresOrder = ignoresOrder
    }

    init(_ headers: Headers) {
        guard let members = StructuredFields.dictionary("No-Vary-Search", in: headers),
            let ignored = Self.ignored(members), let ignoresOrder = Self.ignoresOrder(members)
        else {
            self = .exact
            return
        }
        self.init(ignored: ignored, ignoresOrder: ignoresOrder)
    }

    private static func ignoresOrder(_ members: [String: StructuredFields.Value]) -> Bool? {
        switch members["key-order"] {
        case nil: false
        case .boolean(let value)?: value
        default: nil
        }
    }

    private static func ignored(_ members: [String: StructuredFields.Value]) -> Ignored? {
        switch (members["params"], members["except"]) {
        case (nil, nil), (.boolean(false)?, nil): .some(.none)
        case (.boolean(true)?, nil): .allExcept([])
        case (.boolean(true)?, .strings(let names)?): .allExcept(Set(names))
        case (.strings(let names)?, nil): .names(Set(names))
        default: nil
        }
    }

    /// Returns the form of a query that all equivalent queries share. Without a rule, it is the query itself.
    func canonical(_ query: String?) -> String? {
        if self == .exact { return query }
        guard let query else { return "" }
        var items = query.utf8.split(separator: UInt8(ascii: "&")).map { Item($0) }.filter { !isIgnored($0.name) }
        if ignoresOrder {
            // Sorted by name alone: items of one name keep their order.
            items = items.enumerated().sorted { left, right in
                left.element.name == right.element.name
                    ? left.offset < right.offset : left.element.name < right.element.name
            }.map(\.element)
        }
        return items.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }.joined(separator: "&")
    }

    private func isIgnored(_ name: String) -> Bool {
        switch ignored {
        case .none: false
        case .names(let names): contains(names, name)
        case .allExcept(let names): !contains(names, name)
        }
    }

    /// Returns whether names of structured fields, which are ASCII, contain a name. By canonical equivalence, they
    /// would contain names such as the Kelvin sign, too.
    private func contains(_ names: Set<String>, _ name: String) -> Bool {
        name.utf8.allSatisfy { $0 < 0x80 } && names.contains(name)
    }

    /// A name and a value of a query, decoded as a form is.
    private struct Item {
        let name: String
        let value: String

        init(_ bytes: Substring.UTF8View) {
            let halves = bytes.split(separator: .equals, maxSplits: 1, omittingEmptySubsequences: false)
            name = Self.decoded(halves[0])
            value = halves.count > 1 ? Self.decoded(halves[1]) : ""
        }

        private static func decoded(_ bytes: Substring.UTF8View) -> String {
            var result: [UInt8] = []
            let bytes = Array(bytes)
            var index = 0
            while index < bytes.count {
                if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                    let value = UInt8(String(decoding: bytes[index + 1...index + 2], as: UTF8.self), radix: 16),
                    bytes[index + 1] != UInt8(ascii: "+")
                {
                    result.append(value)
                    index += 3
                } else {
                    result.append(bytes[index] == UInt8(ascii: "+") ? 0x20 : bytes[index])
                    index += 1
                }
            }
            return String(decoding: result, as: UTF8.self)
        }
    }

    private static func encoded(_ text: String) -> String {
        let hex = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            if ByteSet.token.contains(byte), byte != UInt8(ascii: "%"), byte != UInt8(ascii: "&") {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The rule as text, for the keys of a store.
    var text: String {
        let order = ignoresOrder ? "order " : ""
        switch ignored {
        case .none: return order + "none"
        case .names(let names): return order + "names " + names.map(Self.encoded).sorted().joined(separator: ",")
        case .allExcept(let names): return order + "except " + names.map(Self.encoded).sorted().joined(separator: ",")
        }
    }
}
