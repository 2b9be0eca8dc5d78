#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes one value into its node.
struct FormValueEncoder: Encoder {
    let node: FormNode
    let options: FormEncoder
    let codingPath: [any CodingKey]
    /// The keys are a dictionary's, and not the names of properties.
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

    /// The encoder of a member.
    func nested(_ key: some CodingKey) -> FormValueEncoder {
        let name = keepsKeys ? key.stringValue : options.keys.name(key.stringValue)
        return FormValueEncoder(node.append(named: name), options, at: codingPath + [key])
    }

    /// The encoder of one more element.
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

/// What tells a set from an array, which encodes alike.
private protocol FormSet {}
extension Set: FormSet {}

/// What tells a dictionary from a structure, which encodes alike.
private protocol FormDictionary {}
extension Dictionary: FormDictionary where Key == String {}
