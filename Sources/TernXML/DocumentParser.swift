#if canImport(FoundationEssentials)
import CTernXML
import FoundationEssentials

/// Parses a checked document in UTF-8 with expat.
///
/// Foundation's parser on Linux is not used: its bridge to libxml2 reads instructions without data, attribute lists,
/// notations and bytes that are not UTF-8 outside their memory, and ends the process.
enum DocumentParser {
    static func tree(of document: Data) throws(XMLTree.Problem) -> XMLTree {
        guard let parser = unsafe tern_xml_parser_make() else {
            throw XMLTree.Problem(reason: "there is no memory for a parser", line: nil)
        }
        defer { unsafe XML_ParserFree(parser) }
        let events = unsafe ParserEvents(parser)
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(events).toOpaque())
        unsafe XML_SetElementHandler(
            parser, { unsafe ParserEvents.of($0).startElement($1, $2) },
            { context, _ in unsafe ParserEvents.of(context).endElement() })
        unsafe XML_SetCharacterDataHandler(parser) { unsafe ParserEvents.of($0).addText($1, $2) }
        unsafe XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, hasDeclarations in
            unsafe ParserEvents.of(context).startDocumentType(hasDeclarations: hasDeclarations != 0)
        }
        let status = unsafe document.withUnsafeBytes { bytes in
            // The size is limited to less than Int32.max.
            unsafe XML_Parse(parser, bytes.bindMemory(to: CChar.self).baseAddress, Int32(bytes.count), 1)
        }
        let line = max(unsafe Int(XML_GetCurrentLineNumber(parser)), 1)
        if let problem = events.problem { throw XMLTree.Problem(reason: problem.reason, line: line) }
        guard status == XML_STATUS_OK, let root = events.builder.root else {
            throw XMLTree.Problem(reason: XMLTreeBuilder.malformed.reason, line: line)
        }
        return root
    }
}

/// Receives the events of expat, and stops it at the first problem.
@safe private final class ParserEvents {
    private(set) var builder = XMLTreeBuilder()
    private(set) var problem: XMLTree.Problem?
    private let parser: XML_Parser

    init(_ parser: XML_Parser) { unsafe self.parser = parser }

    static func of(_ context: UnsafeMutableRawPointer?) -> ParserEvents {
        guard let context = unsafe context else { preconditionFailure("expat passes its user data") }
        return unsafe Unmanaged<ParserEvents>.fromOpaque(context).takeUnretainedValue()
    }

    /// `attributes` has the name and the value of each attribute in turn, and ends with NULL.
    func startElement(_ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        guard let name = unsafe name, let attributes = unsafe attributes else { return }
        perform { (builder) throws(XMLTree.Problem) in
            var pairs: [(name: String, value: String)] = []
            var index = 0
            while let name = unsafe attributes[index], let value = unsafe attributes[index + 1] {
                unsafe pairs.append((String(cString: name), String(cString: value)))
                index += 2
            }
            try builder.startElement(unsafe String(cString: name), attributes: pairs)
        }
    }

    func endElement() { perform { (builder) throws(XMLTree.Problem) in try builder.endElement() } }

    func addText(_ bytes: UnsafePointer<CChar>?, _ count: Int32) {
        guard problem == nil else { return }
        let raw = unsafe UnsafeRawBufferPointer(start: bytes, count: Int(count))
        unsafe builder.addText(raw)
    }

    /// The document was checked for declarations before. They are refused here too, where the parser itself finds them.
    func startDocumentType(hasDeclarations: Bool) {
        guard hasDeclarations else { return }
        stop(XMLTree.Problem(reason: "the document type has declarations, which are not supported", line: nil))
    }

    /// Events can arrive after the parser has been stopped, and are ignored.
    private func perform(_ event: (inout XMLTreeBuilder) throws(XMLTree.Problem) -> Void) {
        guard problem == nil else { return }
        do {
            try event(&builder)
        } catch {
            stop(error)
        }
    }

    private func stop(_ problem: XMLTree.Problem) {
        if self.problem == nil { self.problem = problem }
        _ = unsafe XML_StopParser(parser, 0)
    }
}
#else
import Foundation

/// Parses a checked document in UTF-8 with the parser of the system.
enum DocumentParser {
    static func tree(of document: Data) throws(XMLTree.Problem) -> XMLTree {
        let events = ParserEvents()
        let parser = XMLParser(data: document)
        parser.delegate = events
        parser.shouldProcessNamespaces = false
        parser.shouldResolveExternalEntities = false
        let isWellFormed = parser.parse()
        let line = max(parser.lineNumber, 1)
        if let problem = events.problem { throw XMLTree.Problem(reason: problem.reason, line: line) }
        guard isWellFormed, !events.hasFailed, parser.parserError == nil, let root = events.builder.root else {
            throw XMLTree.Problem(reason: XMLTreeBuilder.malformed.reason, line: line)
        }
        return root
    }
}

/// Receives the events of the parser, and stops it at the first problem.
private final class ParserEvents: NSObject, XMLParserDelegate {
    private(set) var builder = XMLTreeBuilder()
    private(set) var problem: XMLTree.Problem?
    private(set) var hasFailed = false

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        perform(parser) { (builder) throws(XMLTree.Problem) in
            try builder.startElement(elementName, attributes: attributes.map { ($0.key, $0.value) })
        }
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?
    ) {
        perform(parser) { (builder) throws(XMLTree.Problem) in try builder.endElement() }
    }

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) { hasFailed = true }

    func parser(_ parser: XMLParser, foundCharacters string: String) { builder.addText(string.utf8) }

    func parser(_ parser: XMLParser, foundCDATA block: Data) { builder.addText(block) }

    /// Events can arrive after the parser has been stopped, and are ignored.
    private func perform(_ parser: XMLParser, _ event: (inout XMLTreeBuilder) throws(XMLTree.Problem) -> Void) {
        guard problem == nil else { return }
        do {
            try event(&builder)
        } catch {
            problem = error
            parser.abortParsing()
        }
    }
}
#endif
