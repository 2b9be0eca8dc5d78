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

    /// Parses a document and creates its outermost element.
    ///
    /// External entities are never fetched, and no document type is loaded from anywhere.
    ///
    /// - Throws: `XMLTree.Problem` for a document that is not well-formed, that nests deeper than ``maximumDepth``, or
    ///   that declares its own entities, because a few entities can expand to gigabytes.
    public init(parsing data: Data) throws(Problem) {
        if data.isEmpty { throw Problem(reason: "the document is empty", line: nil) }
        if XMLProlog.declaresEntities(data) {
            throw Problem(reason: "the document declares entities, which are not supported", line: nil)
        }
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
    /// The text since the last tag. It arrives in pieces, of which there are as many as the document has entities.
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
        // Without a namespace the parsers say nil, or the empty text.
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

/// Reads the part of a document before its first element. The parser on Linux reports no declarations, and leaves out
/// the text of entities that a document declares.
enum XMLProlog {
    static func declaresEntities(_ document: Data) -> Bool {
        // In UTF-16, each ASCII character has a zero byte beside it.
        var rest = document.prefix(4).contains(0) ? Data(document.filter { $0 != 0 })[...] : document[...]
        while let start = rest.firstRange(of: [UInt8(ascii: "<")])?.upperBound {
            rest = rest[start...]
            switch rest.first {
            case UInt8(ascii: "?"): rest = after("?>", in: rest)
            case UInt8(ascii: "!") where rest.starts(with: "!--".utf8): rest = after("-->", in: rest)
            case UInt8(ascii: "!") where rest.starts(with: "!ENTITY".utf8): return true
            case UInt8(ascii: "!"): continue
            default: return false
            }
        }
        return false
    }

    private static func after(_ mark: String, in bytes: Data) -> Data {
        bytes.firstRange(of: Data(mark.utf8)).map { bytes[$0.upperBound...] } ?? Data()
    }
}
