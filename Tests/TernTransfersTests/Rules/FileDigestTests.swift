import Tern
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Durable downloads: digests")
struct FileDigestTests {
    /// The SHA-256 of no bytes.
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let emptyBase64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    @Test func textIsHexadecimalOrBase64() {
        #expect(FileDigest.sha256(Self.empty) == .sha256(Self.emptyBase64))
        #expect(FileDigest.sha256(Self.empty.uppercased()).isValid)
        #expect("\(FileDigest.sha256(Self.emptyBase64))" == "sha256:\(Self.empty)")
    }

    @Test(arguments: ["", "zz", String(repeating: "g", count: 64), String(repeating: "a", count: 62)])
    func otherTextIsInvalid(text: String) { #expect(!FileDigest.sha256(text).isValid) }

    @Test(arguments: [
        (FileDigest.Algorithm.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ])
    func hashOfPiecesIsThatOfTheStandard(algorithm: FileDigest.Algorithm, text: String) throws {
        let hash = try #require(FileHash(algorithm))
        hash.update(Data("a".utf8))
        hash.update(Data("bc".utf8))
        #expect(hash.count == 3)
        #expect(hash.finalize() == FileDigest(algorithm, text))
    }

    @Test func representationDigestIsRead() {
        let headers: Headers = ["Repr-Digest": "unixsum=:AAA=:, sha-256=:\(Self.emptyBase64):;x=1"]
        #expect(FileDigest(of: headers, status: 206) == .sha256(Self.empty))
    }

    @Test(arguments: [
        "sha-256=:AAAA:", "sha-256=AAAA", "sha-256", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", "sha-256=::", "=:,;",
    ])
    func malformedDigestCountsAsNone(value: String) {
        #expect(FileDigest(of: ["Repr-Digest": value], status: 200) == nil)
    }

    @Test func contentMD5IsThatOfAWholeBody() {
        let headers: Headers = ["Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="]
        #expect(FileDigest(of: headers, status: 200) == .md5("d41d8cd98f00b204e9800998ecf8427e"))
        #expect(FileDigest(of: headers, status: 206) == nil)
    }

    @Test func digestOfACodedBodyIsNotThatOfTheFile() {
        let headers: Headers = ["Repr-Digest": "sha-256=:\(Self.emptyBase64):", "Content-Encoding": "gzip"]
        #expect(FileDigest(of: headers, status: 200) == nil)
    }

    // MARK: Hashing

    @Test(arguments: [0, 3, 1 << 20, (5 << 20) + 7])
    func aFileAndItsChunksHaveTheSameDigest(size: Int) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-digest-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "file with a space")
        let bytes = size == 3 ? Data("abc".utf8) : Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        try bytes.write(to: file)
        let digest = try await FileDigest.sha256(of: file)
        if size == 0 { #expect(digest == .sha256(Self.empty)) }
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        if size == 3 { #expect(digest == .sha256(abc)) }
        let chunks = AsyncStream<Data> { stream in
            for start in stride(from: 0, to: size, by: 100_003) {
                stream.yield(bytes[start..<min(size, start + 100_003)])
            }
            stream.finish()
        }
        #expect(try await FileDigest(.sha256, of: chunks) == digest)
        for algorithm in FileDigest.Algorithm.allCases {
            #expect(try await FileDigest(algorithm, of: file).isValid)
        }
    }

    @Test func aFileThatCannotBeReadIsAnError() async throws {
        let web = try #require(URL(string: "https://a.example/"))
        for file in [URL(filePath: "/nowhere/x"), URL(filePath: "/tmp"), web] {
            do throws(NetworkError) {
                _ = try await FileDigest.sha256(of: file)
                Issue.record("\(file) was read")
            } catch {
                #expect(error.kind == .fileSystem && error.reason.contains("the file cannot be read"), "\(error)")
            }
        }
    }

    @Test func aCancelledTaskHashesNothing() async throws {
        let task = Task { try await FileDigest(.sha256, of: AsyncStream<Data> { _ in }) }
        task.cancel()
        let result = await task.result
        #expect(throws: NetworkError.self) { try result.get() }
    }

    @Test func digitsAreThoseOfOtherPrograms() {
        let digest = FileDigest(.md5, bytes: Data([0x0F] + [UInt8](repeating: 0xA0, count: 15)))
        #expect(digest.hexadecimal == "0f" + String(repeating: "a0", count: 15))
        #expect(digest.description == "md5:\(digest.hexadecimal)" && FileDigest.md5(digest.hexadecimal) == digest)
    }
}
