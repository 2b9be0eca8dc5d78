/// A value that is being encoded into a form. A reference: containers are filled after they were given out.
final class FormNode {
    enum Content {
        /// Nothing was encoded.
        case empty
        /// A property that is nil.
        case absent
        /// nil on purpose.
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

/// The flat items of a tree.
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
