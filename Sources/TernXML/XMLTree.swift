/// An element of an XML document with its content, as a value that can be stored, compared and passed on.
///
/// ```swift
/// let feed = try await session.response(for: request, decode: .xml).value
/// let titles = feed["channel"]?.elements(named: "item").compactMap { $0["title"]?.text } ?? []
/// ```
public struct XMLTree: Sendable, Hashable {
    /// The content of an element: an element or a text.
    public enum Node: Sendable, Hashable {
        /// An element.
        case element(XMLTree)
        /// Text, without CDATA markup and with resolved entities.
        case text(String)
    }

    /// The name without its prefix.
    public var name: String
    /// The URI of the namespace; nil if there is none.
    public var namespace: String?
    /// The attributes by their names as written, including the prefix.
    public var attributes: [String: String]
    /// The child elements and texts, in document order. Includes texts of white space between elements, but no comments
    /// and processing instructions.
    public var nodes: [Node]

    /// Creates an element.
    public init(_ name: String, namespace: String? = nil, attributes: [String: String] = [:], nodes: [Node] = []) {
        self.name = name
        self.namespace = namespace
        self.attributes = attributes
        self.nodes = nodes
    }

    /// The child elements.
    public var elements: [XMLTree] {
        nodes.compactMap { node in
            if case .element(let element) = node { element } else { nil }
        }
    }

    /// Returns the child elements with a name, in document order.
    public func elements(named name: String) -> [XMLTree] { elements.filter { $0.name == name } }

    /// The first child element with a name; nil if there is none.
    public subscript(name: String) -> XMLTree? {
        for case .element(let element) in nodes where element.name == name { return element }
        return nil
    }

    /// The text of the element and all its descendants, as written.
    public var text: String {
        nodes.map { node in
            switch node {
            case .element(let element): element.text
            case .text(let text): text
            }
        }.joined()
    }
}
