/// Builds a tree from the events of a parser that knows no namespaces, within limits.
///
/// Namespaces are resolved here, because a parser copies the URI into each name: a long one that is used often would
/// take time and memory in proportion to the product of both.
struct XMLTreeBuilder {
    /// The limits of a document. Its size is checked before it is parsed.
    enum Limits {
        static let attributes = 1_000
        /// The longest name, in bytes.
        static let name = 1_024
    }

    /// A namespace. Equal URIs have the same number, so that comparing them takes no time.
    private struct Namespace {
        let number: Int
        let uri: String
    }

    private struct OpenElement {
        var tree: XMLTree
        /// The prefixes that the element declares.
        let prefixes: [String]
    }

    /// The attributes of one element by the number of their namespace and their local name.
    private struct ExpandedName: Hashable {
        let namespace: Int
        let local: String
    }

    /// The outermost element after its end; nil before.
    private(set) var root: XMLTree?
    /// The open elements, outermost first.
    private var open: [OpenElement] = []
    /// The text since the last tag, in UTF-8. It arrives in pieces, at least one for each reference.
    private var text: [UInt8] = []
    /// The number of elements and texts, and its limit.
    private var nodes = 0
    private let maximumNodes: Int
    /// The namespaces of each prefix, the innermost last; nil for a default namespace that is taken back.
    private var bindings: [String: [Namespace?]]
    private var numbers: [String: Int]

    init(maximumNodes: Int = 4_000_000) {
        self.maximumNodes = maximumNodes
        let xml = Namespace(number: 0, uri: "http://www.w3.org/XML/1998/namespace")
        bindings = ["xml": [xml]]
        numbers = [xml.uri: xml.number]
    }

    /// Begins an element, with the names as written.
    mutating func startElement(
        _ name: String, attributes: [(name: String, value: String)]
    ) throws(XMLTree.Problem) {
        try endText()
        if open.isEmpty, root != nil { throw Self.malformed }
        if open.count >= XMLTree.maximumDepth {
            throw Self.problem("the elements nest deeper than \(XMLTree.maximumDepth)")
        }
        try countNode()
        let prefixes = try declareNamespaces(in: attributes)
        let (prefix, local) = try Self.parts(of: name)
        let namespace = try namespace(of: prefix)
        var tree = XMLTree(local, namespace: namespace?.uri)
        tree.attributes.reserveCapacity(attributes.count - prefixes.count)
        var expanded: Set<ExpandedName> = []
        for (name, value) in attributes where Self.declaredPrefix(name) == nil {
            let (prefix, local) = try Self.parts(of: name)
            if !prefix.isEmpty {
                guard let namespace = try self.namespace(of: prefix) else { throw Self.malformed }
                // Two prefixes of one namespace name the same attribute.
                guard expanded.insert(ExpandedName(namespace: namespace.number, local: local)).inserted else {
                    throw Self.malformed
                }
            }
            guard tree.attributes.updateValue(value, forKey: name) == nil else { throw Self.malformed }
        }
        open.append(OpenElement(tree: tree, prefixes: prefixes))
    }

    /// Ends the innermost open element.
    mutating func endElement() throws(XMLTree.Problem) {
        try endText()
        guard let element = open.popLast() else { throw Self.malformed }
        for prefix in element.prefixes {
            bindings[prefix]?.removeLast()
            if bindings[prefix]?.isEmpty ?? false { bindings[prefix] = nil }
        }
        if open.isEmpty { root = element.tree } else { open[open.count - 1].tree.nodes.append(.element(element.tree)) }
    }

    /// Adds text in UTF-8.
    mutating func addText(_ bytes: some Collection<UInt8>) { text += bytes }

    private mutating func endText() throws(XMLTree.Problem) {
        guard !text.isEmpty else { return }
        if !open.isEmpty {
            try countNode()
            open[open.count - 1].tree.nodes.append(.text(String(decoding: text, as: UTF8.self)))
        }
        // A long text gives its memory back.
        text.removeAll(keepingCapacity: text.count < 4_096)
    }

    private mutating func countNode() throws(XMLTree.Problem) {
        nodes += 1
        if nodes > maximumNodes {
            throw Self.problem("the document has more than \(maximumNodes) elements and texts")
        }
    }
}

// Namespaces in XML 1.0 (Third Edition).

extension XMLTreeBuilder {
    /// Declares the namespaces of an element, and returns their prefixes.
    private mutating func declareNamespaces(
        in attributes: [(name: String, value: String)]
    ) throws(XMLTree.Problem) -> [String] {
        if attributes.count > Limits.attributes {
            throw Self.problem("an element has more than \(Limits.attributes) attributes")
        }
        var prefixes: [String] = []
        for (name, uri) in attributes {
            guard let prefix = Self.declaredPrefix(name) else { continue }
            // `xml` can be declared as what it is, `xmlns` not at all, and only the default namespace can be taken back
            // (§3, §5).
            let isXML = numbers[uri] == 0
            guard prefix.utf8.count <= Limits.name, prefix != "xmlns", isXML == (prefix == "xml"),
                uri != "http://www.w3.org/2000/xmlns/", prefix.isEmpty || !uri.isEmpty,
                prefix.isEmpty || !prefix.utf8.contains(UInt8(ascii: ":")) && Self.isNameStart(prefix)
            else { throw Self.malformed }
            bindings[prefix, default: []].append(uri.isEmpty ? nil : Namespace(number: number(of: uri), uri: uri))
            prefixes.append(prefix)
        }
        return prefixes
    }

    private mutating func number(of uri: String) -> Int {
        if let number = numbers[uri] { return number }
        let number = numbers.count
        numbers[uri] = number
        return number
    }

    /// Returns the prefix that an attribute declares, which is empty for the default namespace; nil for other
    /// attributes.
    private static func declaredPrefix(_ name: String) -> String? {
        if name == "xmlns" { return "" }
        return name.hasPrefix("xmlns:") ? String(name.dropFirst(6)) : nil
    }

    private func namespace(of prefix: String) throws(XMLTree.Problem) -> Namespace? {
        if let namespace = bindings[prefix]?.last { return namespace }
        if prefix.isEmpty { return nil }
        throw Self.problem("the document uses a prefix of a namespace that it does not declare")
    }

    /// Returns the prefix, which is empty for none, and the local part of a name.
    private static func parts(of name: String) throws(XMLTree.Problem) -> (prefix: String, local: String) {
        if name.utf8.count > Limits.name {
            throw problem("a name is longer than \(Limits.name) bytes")
        }
        let parts = name.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count > 1 else { return ("", name) }
        guard parts.count == 2, let prefix = String(parts[0]), let local = String(parts[1]), !prefix.isEmpty,
            isNameStart(local), prefix != "xmlns"
        else { throw malformed }
        return (prefix, local)
    }

    /// Returns whether a part of a name that the parser accepted can begin a name by itself.
    private static func isNameStart(_ part: String) -> Bool {
        guard let first = part.unicodeScalars.first?.value else { return false }
        switch first {
        case 0x2D, 0x2E, 0x30...0x39, 0xB7, 0x300...0x36F, 0x203F...0x2040: return false
        default: return true
        }
    }

    private static func problem(_ reason: String) -> XMLTree.Problem { XMLTree.Problem(reason: reason, line: nil) }
    static let malformed = problem("the document is not well-formed")
}
