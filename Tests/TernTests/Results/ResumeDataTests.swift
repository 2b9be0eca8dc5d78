import Tern
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("ResumeData")
struct ResumeDataTests {
    private static let name = ".file.0123456789abcdef.tern-part"

    /// Returns the encoded form with one value replaced.
    private static func json(_ key: String = "", _ value: String = "") -> Data {
        var values = [
            "url": "\"https://a.example/f\"", "validator": "\"\\\"v\\\"\"", "offset": "5", "partialFile": "\"\(name)\"",
            "folder": "\"/a\"", "totalBytes": "9",
        ]
        if !key.isEmpty { values[key] = value }
        return Data("{\(values.map { "\"\($0)\":\($1)" }.joined(separator: ","))}".utf8)
    }

    private func decoded(_ data: Data) throws -> ResumeData { try JSONDecoder().decode(ResumeData.self, from: data) }

    @Test func theEncodedFormNamesThePartialFileWithoutItsFolder() throws {
        let data = ResumeData(
            url: "https://a.example/f", validator: "\"v\"", offset: 5, partialFile: "/a/\(Self.name)", totalBytes: 9)
        #expect(data.partialFile == Self.name && data.folder == "/a")
        #expect(try decoded(Self.json()) == data)
        #expect(try decoded(JSONEncoder().encode(data)) == data)
        let list = PropertyListEncoder()
        list.outputFormat = .binary
        #expect(try PropertyListDecoder().decode(ResumeData.self, from: list.encode(data)) == data)
    }

    @Test(arguments: [
        ("validator", #""\"a\"\r\nX-Injected: 1""#), ("validator", #""\"a\r\nb\"""#), ("validator", #""\"a b\"""#),
        ("validator", #""\"a""#), ("validator", #""a""#), ("validator", #""""#), ("validator", #""W/\"a\"""#),
        ("validator", #""\"a\"b\"""#), ("validator", #""\"a\u0000\"""#), ("validator", #""\"""#),
        ("validator", #""Wed, 21 Oct 2015 07:28:00 GMT\r\nX: 1""#), ("validator", #""Wed, 21 Oct 2015""#),
        ("partialFile", #""/etc/passwd""#), ("partialFile", #""../.file.0123456789abcdef.tern-part""#),
        ("partialFile", #"".bashrc""#), ("partialFile", #""""#), ("partialFile", #"".file.0123456789abcdef.tern""#),
        ("partialFile", #"".f\u0000.0123456789abcdef.tern-part""#),
        ("partialFile", #""/a/.f.0123456789abcdef.tern-part""#),
        ("offset", "-1"), ("offset", "9223372036854775807"), ("offset", "9223372036854775808"), ("offset", "1e400"),
        ("offset", "10"), ("offset", "null"), ("totalBytes", "4"), ("totalBytes", "-9223372036854775808"),
        ("totalBytes", "9223372036854775807"), ("url", #""""#), ("url", #""nothing""#),
        ("refusals", "-1"), ("refusals", "1001"), ("failures", "-1"), ("failures", "1001"), ("failures", "\"1\""),
        ("url", #""http://a.example/\r\nX: 1""#), ("folder", #""""#), ("folder", #""/a\u0000b""#), ("folder", "null"),
    ])
    func unknownTokenIsNotDecoded(key: String, value: String) {
        #expect(throws: DecodingError.self) { try decoded(Self.json(key, value)) }
    }

    /// Tokens of earlier versions have no counts, or one.
    @Test(
        arguments: [
            ("", "", PartCounts()), ("refusals", "2", PartCounts(refusals: 2)),
            ("failures", "2", PartCounts(failures: 2)), ("later", "[1]", PartCounts()),
        ])
    func countsAreOptional(key: String, value: String, expected: PartCounts) throws {
        let data = try decoded(Self.json(key, value))
        #expect(data.counts == expected)
        let counted = data.counting(PartCounts(refusals: 5, failures: 3))
        let again = try decoded(JSONEncoder().encode(counted))
        #expect(again == counted && again.counts == PartCounts(refusals: 5, failures: 3))
        #expect(again.at(7).counts == PartCounts())
    }

    @Test(arguments: ["url", "validator", "partialFile", "folder"])
    func textsOfAnyLengthAreRefused(key: String) throws {
        let text = key == "url" ? "http://a.example/" : "\\\""
        let long = "\"\(text)\(String(repeating: "a", count: 5_000_000))\(key == "url" ? "" : "\\\"")\""
        #expect(throws: DecodingError.self) { try decoded(Self.json(key, long)) }
    }

    @Test(
        arguments: [
            ("\"a\"", true), ("\"\"", true), ("\"a!#~\"", true), ("\"é\"", true),
            ("Wed, 21 Oct 2015 07:28:00 GMT", true), ("\"a\"\n", false), (" \"a\"", false), ("yesterday", false),
            ("\"\(String(repeating: "a", count: 1_022))\"", true),
            ("\"\(String(repeating: "a", count: 1_023))\"", false),
        ])
    func aValidatorIsAStrongTagOrADate(text: String, isValid: Bool) {
        #expect(ResumeData.isValidator(text) == isValid)
    }
}
