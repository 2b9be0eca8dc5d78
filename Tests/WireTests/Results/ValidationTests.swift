import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Validation and formats", .timeLimit(.minutes(1)))
struct ValidationTests {
    private struct User: Codable, Sendable, Equatable {
        var name: String
        var age: Int?
    }

    private struct Problem: Decodable, Equatable { var title: String }

    private func client(
        _ answer: StubTransport.Answer, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) throws
        -> Client
    {
        var configuration = Session.Configuration()
        change(&configuration)
        let stub = StubTransport { _ in answer }
        return try Client(baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
    }

    private let html = StubTransport.Answer.text("{\"name\":\"Ada\"}", contentType: "text/html")

    @Test func pageInsteadOfJSONIsRefusedWithItsBody() async throws {
        let client = try client(html)
        let error = try await failure { try await client.get("x", as: User.self) }
        #expect(error.kind == .contentType && error.status == 200 && error.body.count == 14)
        let handle = try await failure { try await client.task(.get, "x", as: User?.self).value }
        #expect(handle.kind == .contentType)
        #expect(try await client.get("x", as: String.self).contains("Ada"))
        #expect(try await client.get("x").count == 14)
        #expect(try await client.get("x", as: NoContent.self) == NoContent())
    }

    @Test func requestCanReplaceTheRulesOfTheSession() async throws {
        #expect(try await client(html) { $0.validation.contentTypes = .any }.get("x", as: User.self).name == "Ada")
        let client = try client(html)
        var request = try client.request(.get, "x")
        request.validation = ResponseValidation(contentTypes: .only(["text/html"]))
        #expect(try await client.session.response(for: request, decode: BodyDecoder<User>.json).value.name == "Ada")
        request.validation = ResponseValidation(statuses: { $0 == 404 })
        let error = try await failure { try await client.session.response(for: request) }
        #expect(error.kind == .status)
    }

    @Test func errorDecodesItsBody() async throws {
        let client = try client(.json(["title": "no such user"], status: 404))
        let error = try await failure { try await client.get("x", as: User.self) }
        #expect(error.status == 404)
        #expect(try error.decode(as: Problem.self) == Problem(title: "no such user"))
    }

    @Test func aRefusedStatusComesBeforeAnErrorOfTheDecoder() async throws {
        let torn = "{\"name\":"
        let client = try client(.text(torn, status: 500, contentType: "application/json"))
        let error = try await failure { try await client.get("x", as: User.self) }
        #expect(error.kind == .status && error.status == 500 && error.body == Data(torn.utf8))
        let accepting = try self.client(.text(torn, contentType: "application/json"))
        #expect(try await failure { try await accepting.get("x", as: User.self) }.kind == .decoding)
    }

    @Test func streamIsValidatedBeforeItIsRead() async throws {
        let client = try client(html)
        var request = try client.request(.get, "x")
        request.validation = ResponseValidation(contentTypes: .only(["video/*"]))
        let stream = client.session.stream(request)
        let error = try await failure { try await stream.response }
        #expect(error.kind == .contentType)
    }

    @Test func scriptPrefixAndNullsAreRemoved() async throws {
        let text = ")]}',\n{\"name\":\"Ada\",\"age\":null}"
        let client = try client(.text(text, contentType: "application/json"))
        let request = try client.request(.get, "x")
        let user = try await client.session.response(
            for: request, decode: BodyDecoder<User>.json(removingPrefix: ")]}',"))
        #expect(user.value == User(name: "Ada"))
        let value = try await client.session.response(
            for: request, decode: BodyDecoder<JSONValue>.json(removingPrefix: ")]}',", removesNulls: true))
        #expect(value.value == ["name": "Ada"])
        let plain = try self.client(.text("{\"name\":\"Ada\",\"age\":null}", contentType: "application/json"))
        let short = BodyDecoder<JSONValue>.jsonWithoutNulls
        #expect(try await plain.session.response(for: plain.request(.get, "x"), decode: short).value == ["name": "Ada"])
        #expect(try await failure { try await client.get("x", as: User.self) }.kind == .decoding)
    }

    @Test func propertyListIsRead() async throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        let list = try encoder.encode(User(name: "Ada", age: 36))
        let client = try client(.data(list, contentType: "application/x-plist"))
        let request = try client.request(.get, "x")
        let user = try await client.session.response(for: request, decode: BodyDecoder<User>.propertyList).value
        #expect(user == User(name: "Ada", age: 36))
        #expect(try await failure { try await client.get("x", as: User.self) }.kind == .contentType)
    }

    // MARK: Hostile property lists

    /// An array of arrays, or of texts.
    private indirect enum Tree: Decodable {
        case array([Tree])
        case text(String)

        init(from decoder: any Decoder) throws {
            if let text = try? decoder.singleValueContainer().decode(String.self) {  // Else it is an array.
                self = .text(text)
            } else {
                self = .array(try decoder.singleValueContainer().decode([Tree].self))
            }
        }

        var depth: Int {
            guard case .array(let elements) = self else { return 0 }
            return 1 + (elements.map(\.depth).max() ?? 0)
        }
    }

    private func tree(_ list: Data) async throws -> Tree {
        let client = try client(.data(list, contentType: "application/x-plist"))
        return try await client.session.response(
            for: try client.request(.get, "x"), decode: BodyDecoder<Tree>.propertyList
        ).value
    }

    private func refusal(of list: Data) async throws -> String {
        let error = try await failure { try await tree(list) }
        #expect(error.kind == .decoding)
        return "\(try #require(error.underlying as? PropertyListCheck.Problem))"
    }

    private func nested(_ depth: Int, content: String = "<string>a</string>") -> String {
        let (starts, ends) = ("<array>", "</array>")
        return "<plist version=\"1.0\">" + String(repeating: starts, count: depth) + content
            + String(repeating: ends, count: depth) + "</plist>"
    }

    /// Returns a list in binary form, whose first object is its top.
    private func binary(_ objects: [[UInt8]]) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in objects {
            offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
            bytes += object
        }
        let table = bytes.count
        func number(_ value: Int) -> [UInt8] { (0..<8).reversed().map { UInt8(value >> ($0 * 8) & 0xFF) } }
        bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1] + number(objects.count) + number(0) + number(table)
        return Data(bytes)
    }

    /// Foundation's decoder would overflow the stack of the thread.
    @Test func nestingOfPropertyListsIsLimited() async throws {
        #expect(try await tree(Data(nested(200).utf8)).depth == 200)
        for depth in [201, 100_000] {
            #expect(try await refusal(of: Data(nested(depth).utf8)).contains("200 levels"))
        }
        let wide = try #require(nested(201).data(using: .utf16))
        #expect(try await refusal(of: wide).contains("200 levels"))
        let hidden = [
            nested(3, content: "<!-- -->" + nested(201)),
            nested(3, content: "<!-- <array> -- </array> -->" + nested(201)),
            nested(3, content: "<string><![CDATA[</string>]]></string>" + nested(201)),
            nested(3, content: "<?p </array>?>" + nested(201)),
        ]
        for text in hidden { #expect(try await refusal(of: Data(text.utf8)).contains("200 levels")) }
        for depth in [200, 201] {
            let arrays: [[UInt8]] = (1...depth).map { [0xA1, UInt8($0)] } + [[0x51, 0x61]]
            if depth == 200 {
                #expect(try await tree(binary(arrays)).depth == 200)
            } else {
                #expect(try await refusal(of: binary(arrays)).contains("200 levels"))
            }
        }
    }

    @Test func objectsOfPropertyListsDoNotContainThemselves() async throws {
        #expect(try await refusal(of: binary([[0xA1, 0]])).contains("contains itself"))
        #expect(try await refusal(of: binary([[0xA1, 1], [0xA2, 2, 0], [0x51, 0x61]])).contains("contains itself"))
        // Each of these has the next one many times: ten arrays stand for 15^10 values.
        let row = [UInt8](repeating: 0, count: 14)
        let bomb: [[UInt8]] = (1...10).map { level in [0xAE] + row.map { _ in UInt8(level) } } + [[0x51, 0x61]]
        #expect(try await refusal(of: binary(bomb)).contains("expand to more"))
        // Fourteen arrays whose bytes are those of the first one cost time for each.
        let shared: [[UInt8]] = [[0xAE] + (1...14).map { UInt8($0) }, [0xAE] + row.map { _ in 15 }]
        var overlapping = binary(shared + Array(repeating: [0x50], count: 13) + [[0x51, 0x61]])
        let table = Int(try #require(overlapping.last))
        for object in 2...14 { overlapping[table + 2 * object + 1] = overlapping[table + 3] }
        #expect(try await refusal(of: overlapping).contains("not a property list"))
        // A shared object is no cycle.
        #expect(try await tree(binary([[0xA2, 1, 1], [0xA2, 2, 2], [0x51, 0x61]])).depth == 2)
    }

    /// Foundation's decoder ends the process at some of these bytes.
    @Test func bytesThatAreNotUTF8AreErrorsInEachElementOfAPropertyList() throws {
        struct Values: Decodable {
            let integer: Int?
            let real: Double?
            let text: String?
            let date: Date?
            let data: Data?
            let bool: Bool?
        }
        let elements = [
            ("integer", "<integer>", "</integer>"), ("real", "<real>", "</real>"), ("text", "<string>", "</string>"),
            ("date", "<date>", "</date>"), ("data", "<data>", "</data>"), ("bool", "<", "/>"),
        ]
        for (key, start, end) in elements {
            for byte in UInt8(0x80)...0xFF {
                for text in [[byte], [0x31, byte], [0x31, byte, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x32]] {
                    var list = Data("<plist version=\"1.0\"><dict><key>\(key)</key>\(start)".utf8)
                    list += text
                    list += Data("\(end)</dict></plist>".utf8)
                    #expect(throws: PropertyListCheck.Problem.self) { try PropertyListCheck.checked(list) }
                    // The key, too.
                    let other = Data("<plist><dict><key>".utf8) + text + Data("</key><true/></dict></plist>".utf8)
                    #expect(throws: PropertyListCheck.Problem.self) { try PropertyListCheck.checked(other) }
                }
            }
            // Characters beyond ASCII pass the check, and the decoder decides.
            let list = "<plist><dict><key>\(key)</key>\(start)1\u{E9}\u{3000}\u{1F600}\(end)</dict></plist>"
            _ = try? PropertyListDecoder().decode(Values.self, from: PropertyListCheck.checked(Data(list.utf8)))
        }
    }

    @Test(arguments: [
        "", "bplist00", "{ a = b; }", "<plist", "<plist><array>", "<!DOCTYPE a [<!ENTITY b '<array>'>]><plist/>",
        "<plist><!-- </plist>", "<plist><array a='>'/></plist>", "<plist><![CDATA[<array>]]></plist>",
    ])
    func malformedPropertyListsAreErrors(text: String) async throws {
        let error = try await failure { try await tree(Data(text.utf8)) }
        #expect(error.kind == .decoding)
    }

    /// No byte changed, and no end missing, stops the process.
    @Test func damagedBinaryPropertyListsAreErrorsOrLists() throws {
        let list = binary([[0xA3, 1, 2, 3], [0xD1, 2, 3], [0x5F, 0x10, 0x03, 0x61, 0x62, 0x63], [0x61, 0x00, 0x61]])
        func check(_ list: Data) {
            // An error is as good as a list.
            guard let checked = try? PropertyListCheck.checked(list) else { return }
            _ = try? PropertyListDecoder().decode(Tree.self, from: checked)
        }
        for index in list.indices {
            check(list.prefix(index))
            for byte in UInt8.min...UInt8.max {
                var damaged = list
                damaged[index] = byte
                check(damaged)
            }
        }
    }

    @Test(arguments: ["utf-8", "utf-16", "utf-32", "iso-8859-1"])
    func propertyListsOfOtherEncodingsAreRead(name: String) async throws {
        let text = """
            <?xml version="1.0" encoding="\(name)"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <!-- a <array> --><plist version="1.0"><array><string><![CDATA[<é>]]></string></array></plist>
            """
        let encodings: [String: String.Encoding] = [
            "utf-8": .utf8, "utf-16": .utf16, "utf-32": .utf32, "iso-8859-1": .isoLatin1,
        ]
        let encoding = try #require(encodings[name])
        let list = try #require(text.data(using: encoding))
        guard case .array(let elements) = try await tree(list), case .text(let value) = elements.first else {
            Issue.record("no text")
            return
        }
        #expect(value == "<é>")
    }

    @Test func firstSuccessfulDecoderIsUsed() async throws {
        let client = try client(html)
        let request = try client.request(.get, "x")
        let fallback = BodyDecoder<User> { body, _ in User(name: "\(body.count) bytes") }
        let never = BodyDecoder<User>(contentTypes: ["image/*"]) { _, _ in User(name: "image") }
        let chosen = try await client.session.response(for: request, decode: .first(of: [never, .json, fallback]))
        #expect(chosen.value.name == "Ada")
        let last = try await client.session.response(
            for: request, decode: .first(of: [never, .propertyList, fallback]))
        #expect(last.value.name == "14 bytes")
    }
}
