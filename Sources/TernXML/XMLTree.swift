/// An element of an XML document, with all that is in it. A value: it may be kept, compared and passed on.
///
/// ```swift
/// let feed = try await session.response(for: request, decode: .xml).value
/// let titles = feed["channel"]?.elements(named: "item").compactMap { $0["title"]?.text } ?? []
/// ```
public struct XMLTree: Sendable, Hashable {
    /// What stands between the tags of an element.
    public enum Node: Sendable, Hashable {
        /// An element.
        case element(XMLTree)
        /// Text, out of its CDATA section and with its entities resolved.
        case text(String)
    }

    /// The name without its prefix.
    public var name: String
    /// The URI of the name's namespace; nil for none.
    public var namespace: String?
    /// The attributes by their names as they are written, prefix included.
    public var attributes: [String: String]
    /// Elements and texts in their order. Texts of white space alone between elements are kept; comments and processing
    /// instructions are not.
    public var nodes: [Node]

    /// An element.
    public init(_ name: String, namespace: String? = nil, attributes: [String: String] = [:], nodes: [Node] = []) {
        self.name = name
        self.namespace = namespace
        self.attributes = attributes
        self.nodes = nodes
    }

    /// The elements right below this one.
    public var elements: [XMLTree] {
        nodes.compactMap { node in
            if case .element(let element) = node { element } else { nil }
        }
    }

    /// The elements right below this one that have a name, in their order.
    public func elements(named name: String) -> [XMLTree] { elements.filter { $0.name == name } }

    /// The first element right below this one that has a name.
    public subscript(name: String) -> XMLTree? {
        for case .element(let element) in nodes where element.name == name { return element }
        return nil
    }

    /// All text within the element, at every depth, as it is written.
    public var text: String {
        nodes.map { node in
            switch node {
            case .element(let element): element.text
            case .text(let text): text
            }
        }.joined()
    }
}
