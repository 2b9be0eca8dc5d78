public import Foundation
import Tern

#if canImport(FoundationXML)
import FoundationXML
#endif

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

extension XMLTree {
    /// An error that explains why bytes are not XML. Its text does not quote them.
    public struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// A sentence that describes the problem.
        public let reason: String
        /// The line of the document at which the parser found the problem, from 1; nil if there is no meaningful line.
        public let line: Int?

        /// The reason and the line.
        public var description: String { line.map { "\(reason), on line \($0)" } ?? reason }
    }

    /// The maximum depth of nested elements. Deeper documents could overflow the stack of code that walks the tree.
    public static let maximumDepth = 200

    /// Parses a document and creates its outermost element.
    ///
    /// External entities are never fetched, and no document type is loaded from anywhere.
    ///
    /// - Throws: `XMLTree.Problem` for a document that is not well-formed, that nests deeper than ``maximumDepth``, or
    ///   that declares its own entities, because a few entities can expand to gigabytes.
    public init(parsing data: Data) throws(Problem) {
        if data.isEmpty { throw Problem(reason: "the document is empty", line: nil) }
        let document: Data
        do {
            document = try XMLEncoding.utf8(data)
        } catch {
            throw Problem(reason: "the document is not well-formed: \(error)", line: nil)
        }
        // The parser would recognize EBCDIC, in which the check below finds nothing.
        guard document.first(where: { !XMLEncoding.isSpace($0) }) == UInt8(ascii: "<") else {
            throw Problem(reason: "the document is not well-formed", line: 1)
        }
        if XMLProlog.declaresEntities(document) {
            throw Problem(reason: "the document declares entities, which are not supported", line: nil)
        }
        let builder = Builder()
        let parser = XMLParser(data: document)
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

/// Builds the tree from the parser's events.
private final class Builder: NSObject, XMLParserDelegate {
    private(set) var root: XMLTree?
    private(set) var isTooDeep = false
    /// Linux's parser reports success after some errors, and continues behind the end of the document.
    private(set) var hasFailed = false
    /// The open elements, outermost first.
    private var open: [XMLTree] = []
    /// The text since the last tag. It arrives in pieces, at least one for each entity.
    private var text = ""

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        endText()
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
        // Without a namespace, the parsers pass nil or an empty string.
        let namespace = namespaceURI.flatMap { $0.isEmpty ? nil : $0 }
        open.append(XMLTree(elementName, namespace: namespace, attributes: attributes))
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?
    ) {
        endText()
        guard let element = open.popLast() else { return }
        if open.isEmpty { root = element } else { open[open.count - 1].nodes.append(.element(element)) }
    }

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) { hasFailed = true }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(_ parser: XMLParser, foundCDATA block: Data) { text += String(decoding: block, as: UTF8.self) }

    private func endText() {
        guard !text.isEmpty else { return }
        if !open.isEmpty { open[open.count - 1].nodes.append(.text(text)) }
        text = ""
    }
}

/// Reads the part of a document in UTF-8 before its first element. The parser on Linux reports no declarations, and omits the
/// text of entities that a document declares.
enum XMLProlog {
    static func declaresEntities(_ document: Data) -> Bool {
        var rest = document[...]
        while let start = rest.firstRange(of: [UInt8(ascii: "<")])?.upperBound {
            rest = rest[start...]
            switch rest.first {
            case UInt8(ascii: "?"): rest = after("?>", in: rest)
            case UInt8(ascii: "!") where rest.starts(with: "!--".utf8): rest = after("-->", in: rest)
            case UInt8(ascii: "!") where rest.starts(with: "!ENTITY".utf8): return true
            case UInt8(ascii: "!"):
                guard let end = endOfDeclaration(in: rest) else { return true }
                rest = rest[end...]
            default: return false
            }
        }
        return false
    }

    /// Returns the position of the next mark that is not in a quoted text, which can contain `<`; nil for a text without its
    /// end.
    private static func endOfDeclaration(in bytes: Data) -> Int? {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "["): return index
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                guard let close = bytes[(index + 1)...].firstIndex(of: bytes[index]) else { return nil }
                index = close + 1
            default: index += 1
            }
        }
        return index
    }

    private static func after(_ mark: String, in bytes: Data) -> Data {
        bytes.firstRange(of: Data(mark.utf8)).map { bytes[$0.upperBound...] } ?? Data()
    }
}
