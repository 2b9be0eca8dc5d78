public import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

extension XMLTree {
    /// Why bytes are no XML. The text quotes nothing of them.
    public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// One sentence: what is wrong, and where.
        public let reason: String
        /// The line of the document at which the parser noticed, from 1 on; nil where that says nothing.
        public let line: Int?

        /// The reason, with the line.
        public var description: String { line.map { "\(reason), on line \($0)" } ?? reason }
    }

    /// Elements within each other. What nests deeper is an attack on the stack of whoever walks the tree.
    public static let maximumDepth = 200

    /// The document's outermost element.
    ///
    /// External entities are never fetched, and no document type is loaded from anywhere.
    ///
    /// - Throws: `XMLTree.Problem` for what is not well-formed, and for a document that is deeper than ``maximumDepth``.
    public init(parsing data: Data) throws(Problem) {
        if data.isEmpty { throw Problem(reason: "the document is empty", line: nil) }
        let builder = Builder()
        let parser = XMLParser(data: data)
        parser.delegate = builder
        parser.shouldProcessNamespaces = true
        parser.shouldResolveExternalEntities = false
        let isWellFormed = parser.parse()
        if builder.isTooDeep {
            throw Problem(reason: "the elements nest deeper than \(Self.maximumDepth)", line: parser.lineNumber)
        }
        guard isWellFormed, !builder.hasFailed, parser.parserError == nil, let root = builder.root else {
            throw Problem(reason: "the document is not well-formed", line: max(parser.lineNumber, 1))
        }
        self = root
    }
}

/// Puts the parser's events together.
private final class Builder: NSObject, XMLParserDelegate {
    private(set) var root: XMLTree?
    private(set) var isTooDeep = false
    /// Linux's parser says of some errors that it went well, and goes on behind the document's end.
    private(set) var hasFailed = false
    /// The elements that are open, outermost first.
    private var open: [XMLTree] = []

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        if open.isEmpty, root != nil {
            hasFailed = true
            parser.abortParsing()
            return
        }
        if open.count >= XMLTree.maximumDepth {
            isTooDeep = true
            parser.abortParsing()
            return
        }
        // Without a namespace the parsers say nil, or the empty text.
        let namespace = namespaceURI.flatMap { $0.isEmpty ? nil : $0 }
        open.append(XMLTree(elementName, namespace: namespace, attributes: attributes))
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?
    ) {
        guard let element = open.popLast() else { return }
        if open.isEmpty { root = element } else { open[open.count - 1].nodes.append(.element(element)) }
    }

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) { hasFailed = true }

    func parser(_ parser: XMLParser, foundCharacters string: String) { add(string) }

    func parser(_ parser: XMLParser, foundCDATA block: Data) { add(String(decoding: block, as: UTF8.self)) }

    /// Text comes in pieces.
    private func add(_ text: String) {
        guard !open.isEmpty, !text.isEmpty else { return }
        let last = open.count - 1
        if case .text(let before)? = open[last].nodes.last {
            open[last].nodes[open[last].nodes.count - 1] = .text(before + text)
        } else {
            open[last].nodes.append(.text(text))
        }
    }
}
