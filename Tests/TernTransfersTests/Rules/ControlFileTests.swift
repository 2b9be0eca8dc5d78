import Tern
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Durable downloads: control file")
struct ControlFileTests {
    private let names = ControlNames(destination: "big.iso")

    private var control: ControlFile {
        var control = ControlFile(url: "https://example.com/big.iso?id=1&sig=secret", partialFile: ".big.iso.tern")
        control.etag = "\"v1\""
        control.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
        control.origin = "https://example.com:443"
        control.size = 1_000
        control.digest = ControlFile.StoredDigest(.sha256(String(repeating: "ab", count: 32)))
        return control
    }

    /// Returns the encoded file with one value in place of another.
    private func changed(_ key: String, _ value: String) -> Data {
        var object: [String: String] = [:]
        for member in ["version", "url", "urlDigest", "partialFile", "etag", "lastModified", "origin", "size"] {
            object[member] =
                switch member {
                case "version": "1"
                case "size": "1000"
                case "url": "\"\(control.url)\""
                case "urlDigest": "\"\(control.urlDigest)\""
                case "partialFile": "\".big.iso.tern\""
                case "etag": "\"\\\"v1\\\"\""
                case "lastModified": "\"Sun, 06 Nov 1994 08:49:37 GMT\""
                default: "\"https://example.com:443\""
                }
        }
        object[key] = value
        return Data(("{" + object.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}").utf8)
    }

    @Test func encodedFileIsReadBack() throws {
        #expect(try ControlFile(control.encoded(), names: names) == control)
        #expect(try ControlFile(changed("size", "1000"), names: names).size == 1_000)
    }

    /// A file of an earlier version has no counts, or one.
    @Test func countsAreOptional() throws {
        #expect(try ControlFile(changed("size", "1000"), names: names).counts == PartCounts())
        #expect(try ControlFile(changed("refusals", "2"), names: names).counts == PartCounts(refusals: 2))
        var counted = control
        counted.counts = PartCounts(refusals: 4, failures: 3)
        let again = try ControlFile(counted.encoded(), names: names)
        #expect(again == counted && again.counts == PartCounts(refusals: 4, failures: 3))
    }

    @Test(arguments: [
        ("url", "\"file:///etc/passwd\""), ("url", "\"https://other.example/big.iso\""), ("urlDigest", "\"00\""),
        ("partialFile", "\"../passwd\""), ("partialFile", "\".other.tern\""), ("etag", "\"W/\\\"v1\\\"\""),
        ("etag", "\"\\\"v1\\\"\\r\\nX: y\""), ("etag", "\"v1\""), ("lastModified", "\"yesterday\""),
        ("lastModified", "\"\\\"v1\\\"\""), ("size", "-1"), ("size", "9223372036854775807"), ("size", "\"many\""),
        ("syncedBytes", "1001"), ("syncedBytes", "-1"), ("segments", "1"), ("segments", "17"),
        ("digest", "{\"algorithm\":\"crc\",\"value\":\"00\"}"),
        ("digest", "{\"algorithm\":\"sha256\",\"value\":\"00\"}"),
        ("version", "0"), ("version", "-1"), ("refusals", "-1"), ("refusals", "1001"), ("failures", "-1"),
        ("failures", "1001"), ("failures", "\"1\""),
    ])
    func invalidValueIsRefused(key: String, value: String) throws {
        let data = changed(key, value)
        #expect(throws: ControlFile.Problem.self) { try ControlFile(data, names: names) }
    }

    @Test func laterVersionIsToldApart() throws {
        let data = changed("version", "2")
        #expect(throws: ControlFile.Problem.laterVersion(2)) { try ControlFile(data, names: names) }
    }

    @Test func oversizedFileIsRefused() {
        let data = Data(repeating: UInt8(ascii: " "), count: ControlFile.limit + 1)
        #expect(throws: ControlFile.Problem.self) { try ControlFile(data, names: names) }
    }

    @Test func descriptionHidesTheQuery() {
        #expect(!"\(control)".contains("secret"))
        var dumped = ""
        dump(control, to: &dumped)
        #expect(!dumped.contains("secret"))
    }

    @Test(arguments: [
        ("https://a.example/f?id=1&X-Amz-Signature=1&X-Amz-Date=2", "https://a.example/f?id=1&X-Amz-Signature=9"),
        ("https://a.example/f?sig=1&se=2&id=1", "https://a.example/f?id=1"),
        ("https://user:word@a.example/f#here", "https://a.example/f"),
    ])
    func signedFormsOfOneURLHaveOneDigest(one: String, other: String) {
        #expect(ControlFile.digest(of: one) == ControlFile.digest(of: other))
    }

    @Test(arguments: [
        ("https://a.example/f?id=1", "https://a.example/f?id=2"), ("https://a.example/f", "https://b.example/f"),
        ("https://a.example/f", "https://a.example/g"), ("https://a.example/f", "http://a.example/f"),
        // Secrets that can name the resource.
        ("https://a.example/f?key=1", "https://a.example/f?key=2"),
        ("https://a.example/f?session=1", "https://a.example/f?session=2"),
    ])
    func differentURLsHaveDifferentDigests(one: String, other: String) {
        #expect(ControlFile.digest(of: one) != ControlFile.digest(of: other))
    }

    @Test func namesFitIntoAFolder() {
        #expect(names == ControlNames(destination: "big.iso"))
        #expect(names.partial == ".big.iso.tern" && names.control == ".big.iso.tern.json")
        let long = ControlNames(destination: String(repeating: "é", count: 120) + "a")
        let other = ControlNames(destination: String(repeating: "é", count: 120) + "b")
        #expect(long.nextControl.utf8.count <= 255)
        #expect(long.partial != other.partial)
    }

    /// A sweep of temporary files would remove a part whose name has their form.
    @Test func nameIsNeverThatOfATemporaryFile() {
        let names = ControlNames(destination: "blob.0123456789abcdef")
        #expect(TemporaryName(names.partial) == nil)
        #expect(TemporaryName(".blob.0123456789abcdef.tern") != nil)
    }
}
