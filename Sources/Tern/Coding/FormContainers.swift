#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes the members of a structure or a dictionary.
struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil(forKey key: Key) throws { encoder.nested(key).node.content = .null }

    mutating func encode(_ value: some Encodable, forKey key: Key) throws { try encoder.nested(key).encode(value) }

    // An absent value is encoded as nil, so that the options decide about it. The protocol's default implementation,
    // one for each of the types below, would leave it out.
    mutating func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try put(value, key) }

    private mutating func put(_ value: (some Encodable)?, _ key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encoder.nested(key).node.content = .absent }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        encoder.nested(key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.nested(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { encoder.nested(FormSuperKey.super) }

    mutating func superEncoder(forKey key: Key) -> any Encoder { encoder.nested(key) }
}

/// Encodes the elements of an array.
struct FormListContainer: UnkeyedEncodingContainer {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int {
        if case .list(let nodes, _) = encoder.node.content { nodes.count } else { 0 }
    }

    mutating func encodeNil() throws { encoder.element().node.content = .null }

    mutating func encode(_ value: some Encodable) throws { try encoder.element().encode(value) }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.element().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.element().unkeyedContainer() }

    mutating func superEncoder() -> any Encoder { encoder.element() }
}

/// Encodes a single value.
struct FormSingleContainer: SingleValueEncodingContainer {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws { encoder.node.content = .null }
    mutating func encode(_ value: Bool) throws { try encoder.encode(value) }
    mutating func encode(_ value: String) throws { try encoder.encode(value) }
    mutating func encode(_ value: Double) throws { try encoder.encode(finite: value) }
    mutating func encode(_ value: Float) throws { try encoder.encode(finite: value) }
    mutating func encode(_ value: Int) throws { put(value) }
    mutating func encode(_ value: Int8) throws { put(value) }
    mutating func encode(_ value: Int16) throws { put(value) }
    mutating func encode(_ value: Int32) throws { put(value) }
    mutating func encode(_ value: Int64) throws { put(value) }
    mutating func encode(_ value: UInt) throws { put(value) }
    mutating func encode(_ value: UInt8) throws { put(value) }
    mutating func encode(_ value: UInt16) throws { put(value) }
    mutating func encode(_ value: UInt32) throws { put(value) }
    mutating func encode(_ value: UInt64) throws { put(value) }
    mutating func encode(_ value: some Encodable) throws { try encoder.encode(value) }

    private func put(_ value: some BinaryInteger) { encoder.node.content = .text(value.description) }
}

private enum FormSuperKey: String, CodingKey {
    case `super`
}

/// Encodes one value into its node.
struct FormValueEncoder: Encoder {
    let node: FormNode
    let options: FormEncoder
    let codingPath: [any CodingKey]
    /// Whether the keys belong to a dictionary and are not names of properties.
    private let keepsKeys: Bool

    init(_ node: FormNode, _ options: FormEncoder, at path: [any CodingKey] = [], keepsKeys: Bool = false) {
        self.node = node
        self.options = options
        codingPath = path
        self.keepsKeys = keepsKeys
    }

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .keyed = node.content {} else { node.content = .keyed([]) }
        return KeyedEncodingContainer(FormKeyedContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .list = node.content {} else { node.content = .list([], isSet: false) }
        return FormListContainer(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { FormSingleContainer(encoder: self) }

    /// Returns the encoder of a member.
    func nested(_ key: some CodingKey) -> FormValueEncoder {
        let name = keepsKeys ? key.stringValue : options.keys.name(key.stringValue)
        return FormValueEncoder(node.append(named: name), options, at: codingPath + [key])
    }

    /// Returns the encoder of a further element.
    func element() -> FormValueEncoder {
        FormValueEncoder(node.append(), options, at: codingPath)
    }

    func encode(_ value: some Encodable) throws {
        switch value {
        case let value as Bool: node.content = .text(options.bools.text(value))
        case let value as String: node.content = .text(value)
        case let value as Double: try encode(finite: value)
        case let value as Float: try encode(finite: value)
        case let value as Date: try encode(date: value)
        case let value as Data: try encode(data: value)
        case let value as URL: node.content = .text(value.absoluteString)
        case let value as Decimal: node.content = .text(value.description)
        case is any FormDictionary:
            try value.encode(to: FormValueEncoder(node, options, at: codingPath, keepsKeys: true))
        default:
            try value.encode(to: self)
            if value is any FormSet, case .list(let nodes, _) = node.content {
                node.content = .list(nodes, isSet: true)
            }
        }
    }

    func encode(finite value: some BinaryFloatingPoint & Encodable & LosslessStringConvertible) throws {
        guard value.isFinite else {
            let problem = "a form has no way to write \(value)"
            throw EncodingError.invalidValue(value, .init(codingPath: codingPath, debugDescription: problem))
        }
        node.content = .text(value.description)
    }

    private func encode(date: Date) throws {
        switch options.dates {
        case .deferred:
            try date.encode(to: self)
        case .secondsSince1970:
            let seconds = date.timeIntervalSince1970
            node.content = .text(Int64(exactly: seconds)?.description ?? seconds.description)
        case .millisecondsSince1970:
            let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
            node.content = .text(Int64(exactly: milliseconds)?.description ?? milliseconds.description)
        case .iso8601:
            node.content = .text(date.formatted(.iso8601))
        case .custom(let write):
            node.content = .text(try write(date))
        }
    }

    private func encode(data: Data) throws {
        switch options.data {
        case .base64: node.content = .text(data.base64EncodedString())
        case .deferred: try data.encode(to: self)
        case .custom(let write): node.content = .text(try write(data))
        }
    }
}

/// Distinguishes a set from an array, which encodes the same way.
private protocol FormSet {}
extension Set: FormSet {}

/// Distinguishes a dictionary from a structure, which encodes the same way.
private protocol FormDictionary {}
extension Dictionary: FormDictionary where Key == String {}

/// A value that is being encoded into a form. A reference, because containers are filled after they are returned.
final class FormNode {
    enum Content {
        /// Nothing was encoded.
        case empty
        /// A property that is nil.
        case absent
        /// An explicit nil.
        case null
        case text(String)
        case list([FormNode], isSet: Bool)
        case keyed([(name: String, node: FormNode)])
    }

    var content = Content.empty

    func append() -> FormNode {
        let node = FormNode()
        if case .list(let nodes, let isSet) = content {
            content = .list(nodes + [node], isSet: isSet)
        } else {
            content = .list([node], isSet: false)
        }
        return node
    }

    func append(named name: String) -> FormNode {
        let node = FormNode()
        if case .keyed(let members) = content {
            content = .keyed(members.filter { $0.name != name } + [(name, node)])
        } else {
            content = .keyed([(name, node)])
        }
        return node
    }
}

/// Collects the items of a tree.
struct FormItems {
    let encoder: FormEncoder

    func append(_ node: FormNode, named name: String, to items: inout [Request.Query.Item]) {
        switch node.content {
        case .empty:
            break
        case .absent:
            appendNil(name, isAbsent: true, to: &items)
        case .null:
            appendNil(name, isAbsent: false, to: &items)
        case .text(let text):
            items.append(.init(name: name, value: text))
        case .list(let nodes, isSet: false):
            for (index, node) in nodes.enumerated() {
                append(node, named: encoder.arrays.name(name, index), to: &items)
            }
        case .list(let nodes, isSet: true):
            var members: [Request.Query.Item] = []
            for node in nodes { append(node, named: name, to: &members) }
            // A set has no order of its own.
            items += members.sorted { ($0.name, $0.value ?? "") < ($1.name, $1.value ?? "") }
        case .keyed(let members):
            let ordered = encoder.sortsNames ? members.sorted { $0.name < $1.name } : members
            for member in ordered {
                append(member.node, named: encoder.nesting.name(name, member.name), to: &items)
            }
        }
    }

    private func appendNil(_ name: String, isAbsent: Bool, to items: inout [Request.Query.Item]) {
        switch encoder.nils {
        case .automatic where isAbsent, .dropName: break
        case .automatic: items.append(.init(name: name, value: nil))
        case .bareName: items.append(.init(name: name, value: nil))
        case .emptyValue: items.append(.init(name: name, value: ""))
        case .null: items.append(.init(name: name, value: "null"))
        }
    }
}
