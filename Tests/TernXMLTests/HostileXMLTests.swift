import Foundation
import Testing

@testable import TernXML

@Suite("Hostile XML", .timeLimit(.minutes(1)))
struct HostileXMLTests {
    private func problem(_ text: String) -> XMLTree.Problem? {
        #expect(throws: XMLTree.Problem.self, "\(text.prefix(100))") { try XMLTree(parsing: Data(text.utf8)) }
    }

    // MARK: Documents that ended the process

    @Test(arguments: ["<?x?><a/>", "<?x ?><a/>", "<a><?x?></a>", "<a/><?x?>", "<?x?><?y z?><a/>"])
    func instructionsWithoutDataAreRead(text: String) throws {
        #expect(try XMLTree(parsing: Data(text.utf8)) == XMLTree("a"))
    }

    @Test(arguments: [
        "<a \u{1}\u{2}='b'/>", "<\u{1}\u{2}/>", "<a b='\u{1}\u{2}'/>", "<a>\u{1}\u{2}</a>", "<a/>\u{1}\u{2}",
    ])
    func bytesThatAreNoTextAreRefused(pattern: String) {
        let pairs: [[UInt8]] = [
            [0xFF, 0xFE], [0xC3, 0x28], [0xE2, 0x82], [0xED, 0xA0], [0xC0, 0x80], [0x80, 0x41], [0xF8, 0x88],
            [0, 0x41],
        ]
        for pair in pairs {
            let bytes = pattern.utf8.map { $0 == 1 ? pair[0] : $0 == 2 ? pair[1] : $0 }
            #expect(throws: XMLTree.Problem.self, "\(bytes)") { try XMLTree(parsing: Data(bytes)) }
            let declared = Data("<?xml version='1.0' encoding='utf-8'?>".utf8) + bytes
            #expect(throws: XMLTree.Problem.self, "\(bytes)") { try XMLTree(parsing: declared) }
        }
    }

    @Test func defaultsOfAttributesDoNotExplode() {
        let value = String(repeating: "x", count: 60_000)
        let children = String(repeating: "<b/>", count: 16_000)
        let text = "<!DOCTYPE a [<!ATTLIST b c CDATA '\(value)'>]><a>\(children)</a>"
        #expect(problem(text)?.reason == "the document type has declarations, which are not supported")
    }

    @Test(arguments: [
        "<!DOCTYPE a SYSTEM 'x'><a>&nope;</a>", "<!DOCTYPE a SYSTEM 'x'><a b='&nope;'/>", "<a>&nope;</a>",
    ])
    func entitiesThatAreNotKnownAreRefused(text: String) {
        #expect(problem(text) != nil)
    }

    @Test(arguments: [
        "<!DOCTYPE a", "<!DOCTYPE a '><a/>", "<!--", "<?x", "<", "<!", "<!x><a/>", "x<a/>", "<a/>x", "<a/><b/>",
        "<!DOCTYPE><a/>", "<!DOCTYPEa><a/>", "<!DOCTYPE a SYSTEM><a/>", "<!DOCTYPE a SYSTEM'x'><a/>",
        "<!DOCTYPE a x><a/>",
        "<!DOCTYPE a PUBLIC 'x'><a/>", "<!DOCTYPE a PUBLIC 'x''y'><a/>", "<!DOCTYPE a PUBLIC '[' 'y'><a/>",
        "<!DOCTYPE a SYSTEM 'x' y><a/>", "<!DOCTYPE 1><a/>", "<!DOCTYPE a><!DOCTYPE a><a/>", "<a/><!DOCTYPE a>",
        "<a/><!DOCTYPE a [<!ENTITY x 'y'>]>", "<!doctype a><a/>", "<!DOCTYPE a SYSTEM '\u{1}'><a/>",
    ])
    func documentsThatEndEarlyOrHaveMoreAreRefused(text: String) {
        #expect(problem(text)?.reason.hasPrefix("the document is not well-formed") ?? false)
    }

    // MARK: Limits

    @Test func attributesAndNamesAreLimited() throws {
        func element(attributes: Int) -> String {
            "<a \((0..<attributes).map { "b\($0)=''" }.joined(separator: " "))/>"
        }
        #expect(try XMLTree(parsing: Data(element(attributes: 1_000).utf8)).attributes.count == 1_000)
        #expect(problem(element(attributes: 1_001))?.reason == "an element has more than 1000 attributes")
        let name = String(repeating: "n", count: 1_024)
        #expect(try XMLTree(parsing: Data("<\(name) \(name)=''/>".utf8)).name == name)
        for text in ["<\(name)n/>", "<a \(name)n=''/>"] {
            #expect(problem(text)?.reason == "a name is longer than 1024 bytes")
        }
        #expect(problem("<a xmlns:\(name)n='x'/>") != nil)
    }

    @Test func elementsAndTextsAreLimited() throws {
        var builder = XMLTreeBuilder(maximumNodes: 3)
        try builder.startElement("a", attributes: [])
        builder.addText("text".utf8)
        try builder.startElement("b", attributes: [])
        try builder.endElement()
        builder.addText("text".utf8)
        let problem = #expect(throws: XMLTree.Problem.self) { try builder.endElement() }
        #expect(problem?.reason == "the document has more than 3 elements and texts")
    }

    @Test func theSizeIsLimited() {
        let document = Data(count: XMLProlog.maximumSize + 1)
        let problem = #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: document) }
        #expect(problem?.reason == "the document is larger than 268435456 bytes")
    }

    /// A parser that knows namespaces copies the URI to each of these names: 40 GB.
    @Test func aLongNamespaceIsNotCopied() throws {
        let uri = String(repeating: "u", count: 400_000)
        let attributes = (0..<900).map { "p:a\($0)=''" }.joined(separator: " ")
        let children = String(repeating: "<p:b \(attributes)/>", count: 100)
        let tree = try XMLTree(parsing: Data("<a xmlns='\(uri)' xmlns:p='\(uri)'>\(children)</a>".utf8))
        #expect(tree.elements.count == 100)
        #expect(tree.elements.allSatisfy { $0.namespace == uri })
    }

    @Test func manyDeclarationsOfOnePrefixTakeLinearTime() throws {
        var text = "<a>"
        for _ in 0..<2_000 {
            text += "<b \((0..<50).map { "xmlns:p\($0)='u\($0)'" }.joined(separator: " "))><p1:c/></b>"
        }
        let tree = try XMLTree(parsing: Data((text + "</a>").utf8))
        #expect(tree.elements.count == 2_000)
        #expect(tree.elements.last?["c"]?.namespace == "u1")
    }

    // MARK: Namespaces

    @Test func namespacesFollowTheirElements() throws {
        let text = """
            <a xmlns="one" xmlns:p="two"><b/><p:c p:d="1" d="2" xml:lang="en"/><e xmlns=""><f/></e>\
            <g xmlns:p="three"><p:h/></g><p:i/></a>
            """
        let tree = try XMLTree(parsing: Data(text.utf8))
        #expect(tree.namespace == "one" && tree.attributes.isEmpty)
        #expect(tree.elements.map(\.name) == ["b", "c", "e", "g", "i"])
        #expect(tree.elements.map(\.namespace) == ["one", "two", nil, "one", "two"])
        #expect(tree["c"]?.attributes == ["p:d": "1", "d": "2", "xml:lang": "en"])
        #expect(tree["e"]?["f"]?.namespace == nil)
        #expect(tree["g"]?["h"]?.namespace == "three")
    }

    @Test(arguments: [
        "<p:a/>", "<a p:b=''/>", "<a><b xmlns:p='x'/><p:c/></a>", "<a xmlns:p=''/>", "<a xmlns:xmlns='x'/>",
        "<a xmlns:xml='x'/>", "<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
        "<a xmlns:p='x' xmlns:q='x' p:b='' q:b=''/>", "<a xmlns:p='x'><p:1/></a>", "<a:b:c xmlns:a='x'/>", "<:a/>",
        "<a:/>", "<xmlns:a/>", "<a xmlns='http://www.w3.org/2000/xmlns/'/>", "<a b='' b=''/>",
    ])
    func wrongNamespacesAreRefused(text: String) {
        #expect(problem(text) != nil)
    }

    @Test func theNamespaceOfXMLCanBeDeclared() throws {
        let text = "<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:space='preserve'><xml:b/></a>"
        let tree = try XMLTree(parsing: Data(text.utf8))
        #expect(tree["b"]?.namespace == "http://www.w3.org/XML/1998/namespace")
        #expect(tree.attributes == ["xml:space": "preserve"])
    }
}
