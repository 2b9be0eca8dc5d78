import Foundation
import Tern
import TernTesting
import Testing

@testable import TernXML

@Suite("XML", .timeLimit(.minutes(1)))
struct XMLTests {
    private static let feed = """
        <?xml version="1.0" encoding="utf-8"?>
        <!-- not kept --><rss version="2.0" xmlns:m="urn:media"><channel>
          <item id="1"><title>Ä &amp; &lt;b&gt; &#x20AC;</title><m:size m:unit="px">3</m:size></item>
          <item id="2"><title><![CDATA[<raw> & ]]>text</title></item><?go on?>
        </channel></rss>
        """

    private func response(
        _ body: Data, contentType: String?, status: Int = 200
    ) async throws -> Response<XMLTree> {
        let stub = StubTransport(["GET /x": .data(body, status: status, contentType: contentType)])
        let session = Session(stub: stub)
        return try await session.response(for: try Request(.get, "https://a.example/x"), decode: .xml)
    }

    @Test(arguments: ["application/xml", "text/xml; charset=utf-8", "application/rss+xml", "image/svg+xml"])
    func documentsBecomeTrees(contentType: String) async throws {
        let root = try await response(Data(Self.feed.utf8), contentType: contentType).value
        #expect(root.name == "rss" && root.attributes["version"] == "2.0")
        let items = try #require(root["channel"]).elements(named: "item")
        #expect(items.map { $0.attributes["id"] } == ["1", "2"])
        #expect(items.map { $0["title"]?.text } == ["Ä & <b> €", "<raw> & text"])
        let size = try #require(items[0]["size"])
        #expect(size.namespace == "urn:media" && size.attributes == ["m:unit": "px"] && size.text == "3")
        #expect(items[1].elements.map(\.name) == ["title"])
        #expect(root["no"] == nil && root.namespace == nil)
    }

    @Test func otherContentTypesAreRefused() async throws {
        let error = await #expect(throws: NetworkError.self) {
            try await response(Data("<a/>".utf8), contentType: "application/json")
        }
        #expect(error?.kind == .contentType)
    }

    @Test(arguments: ["", "   ", "<a>", "<a></b>", "{}", "<a/><b/>", "<a>&nope;</a>", "<a b=c/>", "\0"])
    func malformedDocumentsAreErrors(text: String) async throws {
        let error = await #expect(throws: NetworkError.self) {
            try await response(Data(text.utf8), contentType: "text/xml")
        }
        #expect(error?.kind == .decoding)
        #expect(error?.underlying is XMLTree.Problem)
    }

    /// Their text would be missing without an error, and nested ones expand to gigabytes.
    @Test(arguments: [
        "<!DOCTYPE a [<!ATTLIST a q CDATA #IMPLIED>]><a/>",
        "<!DOCTYPE a [<!NOTATION n SYSTEM 'x'>]><a/>", "<!DOCTYPE a []><a/>",
        "<!DOCTYPE a [<!ELEMENT a ANY><!-- <!ENTITY x 'text'> -->]><a/>",
        "<!DOCTYPE a [<!ENTITY x 'text'>]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY % x 'text'>]><a/>",
        "<!DOCTYPE a [<!ENTITY x 'aa'><!ENTITY y '&x;&x;'>]><a b='&y;'/>",
        "<!DOCTYPE a SYSTEM '<a>' [<!ENTITY x 'text'>]><a>&x;</a>",
        "<!DOCTYPE a PUBLIC \"-?\" '<!--' [<!ENTITY x 'text'>]><a>&x;</a>",
        "<!DOCTYPE a [<!ATTLIST a b CDATA '<a>'><!ENTITY x 'text'>]><a>&x;</a>",
        "\u{FEFF}<?xml version='1.0'?><!-- <a> --><!DOCTYPE a [<?p <b>?><!ELEMENT a ANY><!ENTITY x 'text'>]><a/>",
    ])
    func declarationsInTheDocumentTypeAreRefused(text: String) throws {
        let problem = try #require(throws: XMLTree.Problem.self) { try XMLTree(parsing: Data(text.utf8)) }
        #expect(problem.reason == "the document type has declarations, which are not supported")
        for encoding in [String.Encoding.utf16LittleEndian, .utf16BigEndian] {
            let wide = try #require(text.data(using: encoding))
            #expect(throws: problem) { try XMLTree(parsing: wide) }
        }
    }

    /// Encodings in which the bytes of the declarations, or of the tags before them, are others than in ASCII.
    @Test func declaredEntitiesAreRefusedInEveryEncoding() throws {
        let declaration = "<!DOCTYPE a [<!ENTITY x 'text'>]><a>-&x;-</a>"
        let utf7 = declaration.replacing("<", with: "+ADw-").replacing("&", with: "+ACY-")
        // In these, U+2D2D and U+3C61 have the bytes of `--` and `<a`.
        let comment = "<!--\u{2D2D}\u{3E3E}<a>-->\(declaration)"
        let name = "<?p \u{3C61}?>\(declaration)"
        let spaces = String(repeating: " ", count: 2_000)
        var documents: [Data] = ["utf-7", "UTF-7", "utf-7' standalone='yes"].map {
            Data("<?xml version='1.0' encoding='\($0)'?>\(utf7)".utf8)
        }
        documents.append(Data("<?xml version='1.0'\(spaces)encoding='utf-7'?>\(utf7)".utf8))
        // The parser would obey the second declaration.
        let utf7Declaration = "<?xml version='1.0' encoding='utf-7'?>"
        let pairs = [
            "<?xml version='1.0' encoding='iso-8859-1'?>", "<?xml version='1.0'?>", "<?xml version='1.0'?>\n",
            "<?xml standalone='encoding=\"utf-8\"' encoding='utf-7'?>", "\u{FEFF}<?xml-stylesheet x?>", " ", "\u{FEFF}",
        ].map { Data("\($0)\(utf7Declaration)\(utf7)".utf8) }
        for pair in pairs.prefix(3) {
            #expect(throws: TextDecoding.Problem.malformedDeclaration) { try XMLEncoding.withoutDeclaration(pair) }
        }
        documents += pairs
        for text in [comment, name] {
            documents.append(try #require(text.data(using: .utf16LittleEndian)))
            documents.append(try #require(text.data(using: .utf16BigEndian)))
        }
        // <?xml version='1.0' encoding='ibm037'?><!DOCTYPE a [<!ENTITY x 'text'>]><a>-&x;-</a>
        let ebcdic =
            "TG+nlJNApYWZoomWlX598UvwfUCFlYOWhImVh359iYKU8PP3fW9uTFrE1sPj"
            + "6NfFQIFAukxaxdXjyePoQKdAfaOFp6N9brtuTIFuYFCnXmBMYYFu"
        documents.append(try #require(Data(base64Encoded: ebcdic)))
        for document in documents {
            #expect(throws: XMLTree.Problem.self, "\(document)") { try XMLTree(parsing: document) }
        }
    }

    @Test(arguments: ["utf-8", "UTF8", "iso-8859-1", "windows-1252", "iso-8859-15", "utf-16", "utf-32"])
    func declaredEncodingsAreRead(name: String) throws {
        let text = "<?xml version=\"1.0\"\n encoding = \"\(name)\" ?><!DOCTYPE a SYSTEM '<b>'><a>1 é</a>"
        let encodings: [String: String.Encoding] = [
            "utf-8": .utf8, "UTF8": .utf8, "windows-1252": .windowsCP1252, "utf-16": .utf16, "utf-32": .utf32,
        ]
        let document = try #require(text.data(using: encodings[name] ?? .isoLatin1))
        #expect(try XMLTree(parsing: document).text == "1 é")
    }

    @Test func unknownEncodingIsNamed() throws {
        let document = Data("<?xml version='1.0' encoding='no-such-text'?><a/>".utf8)
        let problem = #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: document) }
        #expect(problem?.reason.contains("no-such-text") ?? false)
    }

    @Test(arguments: [
        "<!DOCTYPE a><a/>", "<!DOCTYPE a PUBLIC '-//x//y' \"[<!ENTITY x 'text'>\"><a/>",
        "<!DOCTYPE a SYSTEM '>'><a/>", "<!--<!DOCTYPE a [ ]>--><?p <!DOCTYPE a [ ?><a/>",
        "<a><![CDATA[<!ENTITY x 'text'>]]></a>", "<?p <!ENTITY x 'text'>?><a/>",
    ])
    func documentTypesWithoutDeclarationsAreAccepted(text: String) throws {
        #expect(try XMLTree(parsing: Data(text.utf8)).name == "a")
    }

    /// Joining this text piece by piece would take minutes.
    @Test func textOfManyPiecesIsJoinedOnce() throws {
        let count = 1_500_000
        let tree = try XMLTree(parsing: Data("<a>\(String(repeating: "&lt;", count: count))<b/>end</a>".utf8))
        #expect(tree.nodes.count == 3)
        #expect(tree.text.utf8.count == count + 3)
    }

    @Test func problemsNameTheLine() throws {
        let problem = #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: Data("<a>\n<b>\n</c>\n</a>".utf8)) }
        let line = try #require(problem?.line)
        #expect(line == 3)
        #expect("\(try #require(problem))".contains("line \(line)"))
    }

    @Test func charsetOfTheResponseWinsOverTheDeclaration() async throws {
        let latin = Data("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<a>".utf8) + [0xE4] + Data("</a>".utf8)
        #expect(try await response(latin, contentType: "text/xml").value.text == "ä")
        #expect(try await response(latin, contentType: "text/xml; charset=iso-8859-1").value.text == "ä")
        #expect(try await response(latin, contentType: "text/xml; charset=iso-8859-5").value.text == "ф")
        let marked = Data([0xEF, 0xBB, 0xBF]) + Data("<a>ü</a>".utf8)
        #expect(try await response(marked, contentType: "text/xml; charset=iso-8859-1").value.text == "ü")
        let japanese = Data("<a>".utf8) + [0x93, 0xFA] + Data("</a>".utf8)
        #expect(try await response(japanese, contentType: "text/xml; charset=shift_jis").value.text == "日")
        let wide = Data("<a>é</a>".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
        #expect(try await response([0xFF, 0xFE] + wide, contentType: "text/xml").value.text == "é")
    }

    @Test func dataCanBeParsedAsXML() async throws {
        let stub = StubTransport(["GET /x": .text("<a>1</a>"), "GET /y": .text("no")])
        let session = Session(stub: stub)
        let good = try await session.response(for: try Request(.get, "https://a.example/x"))
        #expect(try good.xml().text == "1")
        let bad = try await session.response(for: try Request(.get, "https://a.example/y"))
        let error = #expect(throws: NetworkError.self) { try bad.xml() }
        #expect(error?.kind == .decoding)
    }

    // MARK: Hostile documents

    @Test func depthIsLimited() throws {
        func nested(_ depth: Int) -> Data {
            Data((String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)).utf8)
        }
        #expect(try XMLTree(parsing: nested(200)).name == "a")
        for depth in [201, 100_000] {
            let problem = #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: nested(depth)) }
            #expect(problem?.reason.contains("200") ?? false)
        }
    }

    @Test func entitiesDoNotExplode() {
        var definitions = "<!ENTITY e0 \"0123456789\">"
        for level in 1...9 {
            let references = String(repeating: "&e\(level - 1);", count: 10)
            definitions += "<!ENTITY e\(level) \"\(references)\">"
        }
        let bomb = "<?xml version=\"1.0\"?><!DOCTYPE a [\(definitions)]><a>&e9;</a>"
        #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: Data(bomb.utf8)) }
    }

    @Test func externalEntitiesAreNotRead() throws {
        let path = NSTemporaryDirectory() + "tern-xml-\(UUID().uuidString)"
        try Data("s3cret".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let document = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file://\(path)\">]><a>-&x;-</a>"
        #expect(throws: XMLTree.Problem.self) { try XMLTree(parsing: Data(document.utf8)) }
    }
}
