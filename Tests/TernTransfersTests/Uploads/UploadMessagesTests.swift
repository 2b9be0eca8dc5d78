import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The requests and responses of the protocols for resumable uploads.
@Suite("Resumable uploads: messages")
struct UploadMessagesTests {
    private let tus = UploadMessages(kind: .tus, length: 100)
    private let draft = UploadMessages(kind: .httpDraft, length: 100)
    private let base = "https://a.test/files/"

    private func head(_ fields: Headers) throws -> ResponseHead {
        ResponseHead(status: 200, version: .http11, target: try Request(.get, base).target, headers: fields)
    }

    @Test func creationStatesTheLength() {
        let fields = tus.creation(contentType: "text/plain", metadata: ["b": "", "a": "é"])
        #expect(fields["Upload-Length"] == "100" && fields["Tus-Resumable"] == "1.0.0")
        #expect(fields["Upload-Metadata"] == "a w6k=,b" && fields["Content-Type"] == nil)
        let other = draft.creation(contentType: "text/plain", metadata: ["a": "b"])
        #expect(other["Upload-Complete"] == "?0" && other["Content-Type"] == "text/plain")
        #expect(other["Upload-Draft-Interop-Version"] == "8" && other["Upload-Metadata"] == nil)
        let empty = UploadMessages(kind: .httpDraft, length: 0).creation(contentType: nil, metadata: [:])
        #expect(empty["Upload-Complete"] == "?1")
    }

    @Test func appendStatesPositionAndEnd() {
        #expect(tus.append(at: 7, count: 93, checksum: nil)["Upload-Offset"] == "7")
        #expect(draft.append(at: 7, count: 93, checksum: nil)["Upload-Complete"] == "?1")
        #expect(draft.append(at: 7, count: 92, checksum: nil)["Upload-Complete"] == "?0")
        let digest = FileDigest(.sha256, bytes: Data([1, 2, 3]))
        #expect(tus.append(at: 0, count: 1, checksum: digest)["Upload-Checksum"] == "sha256 AQID")
        #expect(draft.append(at: 0, count: 1, checksum: digest)["Content-Digest"] == "sha-256=:AQID:")
    }

    @Test(arguments: ["", "-1", "+1", "101", " 5 5", "0x5", "99999999999999999999", "5;a"])
    func anOffsetOutsideTheFileIsNoState(offset: String) {
        for messages in [tus, draft] {
            #expect(throws: UploadMessages.Problem.self) { try messages.state(try head(["Upload-Offset": offset])) }
        }
        #expect(throws: UploadMessages.Problem.self) {
            try tus.appended(try head(["Upload-Offset": offset]), from: 0, to: 100)
        }
    }

    @Test func stateNeedsAnOffsetAndTheSameLength() throws {
        #expect(throws: UploadMessages.Problem.self) { try tus.state(try head([:])) }
        #expect(throws: UploadMessages.Problem.self) {
            try tus.state(try head(["Upload-Offset": "5", "Upload-Length": "99"]))
        }
        #expect(try tus.state(try head(["Upload-Offset": "5"])) == .init(offset: 5, isComplete: false))
        #expect(try tus.state(try head(["Upload-Offset": "100"])) == .init(offset: 100, isComplete: true))
    }

    @Test func onlyTheServerCompletesADraftUpload() throws {
        #expect(try draft.state(try head(["Upload-Offset": "100"])) == .init(offset: 100, isComplete: false))
        let whole: Headers = ["Upload-Offset": "100", "Upload-Complete": "?1"]
        #expect(try draft.state(try head(whole)) == .init(offset: 100, isComplete: true))
        let part: Headers = ["Upload-Offset": "5", "Upload-Complete": "?1"]
        #expect(throws: UploadMessages.Problem.self) { try draft.state(try head(part)) }
        #expect(try draft.appended(try head([:]), from: 0, to: 100) == .init(offset: 100, isComplete: true))
        #expect(try draft.appended(try head([:]), from: 0, to: 50) == .init(offset: 50, isComplete: false))
    }

    @Test func bytesThatWereNotTakenAreATemporaryProblem() throws {
        let open: Headers = ["Upload-Complete": "?0"]
        for (start, end) in [(Int64(0), Int64(100)), (99, 100), (100, 100)] {
            let problem = #expect(throws: UploadMessages.Problem.self) {
                try draft.appended(try head(open), from: start, to: end)
            }
            #expect(problem?.isTemporary == true)
        }
        #expect(try draft.appended(try head(open), from: 0, to: 50) == .init(offset: 50, isComplete: false))
        let counted = #expect(throws: UploadMessages.Problem.self) {
            try draft.appended(try head(["Upload-Offset": "10"]), from: 0, to: 100)
        }
        #expect(counted?.isTemporary == true)
        #expect(try draft.appended(try head(["Upload-Offset": "100"]), from: 0, to: 100).isComplete)
        let problem = #expect(throws: UploadMessages.Problem.self) {
            try tus.appended(try head(["Upload-Offset": "10"]), from: 10, to: 50)
        }
        #expect(problem?.isTemporary == true)
        #expect(try tus.appended(try head(["Upload-Offset": "11"]), from: 10, to: 50).offset == 11)
    }

    @Test func tusCountsOnlyBytesThatWereSent() throws {
        #expect(try tus.appended(try head(["Upload-Offset": "30"]), from: 10, to: 50).offset == 30)
        for offset in ["9", "51"] {
            #expect(throws: UploadMessages.Problem.self) {
                try tus.appended(try head(["Upload-Offset": offset]), from: 10, to: 50)
            }
        }
        #expect(throws: UploadMessages.Problem.self) { try tus.appended(try head([:]), from: 10, to: 50) }
    }

    @Test func locationIsOneURLWithoutALossOfTLS() throws {
        let target = try Target(absolute: base)
        #expect(try tus.location(try head(["Location": "7"]), of: target).string == "https://a.test/files/7")
        #expect(try tus.location(try head(["Location": "//b.test/7"]), of: target).string == "https://b.test/7")
        for location in ["http://a.test/7", "ftp://a.test/7", "http://[", "https://"] {
            #expect(throws: UploadMessages.Problem.self) {
                try tus.location(try head(["Location": location]), of: target)
            }
        }
        #expect(throws: UploadMessages.Problem.self) { try tus.location(try head([:]), of: target) }
        var two: Headers = ["Location": "1"]
        two.append(name: "Location", value: "2")
        #expect(throws: UploadMessages.Problem.self) { try tus.location(try head(two), of: target) }
    }

    @Test func namesOfMetadataAreChecked() {
        for name in ["", "a b", "a,b", "é", "a\r\nb"] {
            #expect(UploadMessages.problem(ofMetadataName: name) != nil)
            var options = DurableUploadOptions()
            options.metadata = [name: "x"]
            #expect(options.problem != nil)
        }
        #expect(UploadMessages.problem(ofMetadataName: "file-name") == nil)
    }

    @Test func storedURLIsUsedForItsEndpointWithoutALossOfTLS() throws {
        let identity = try #require(DiskCall.identity(of: #filePath))
        let (secure, plain) = (try Target(absolute: base), try Target(absolute: "http://a.test/files/"))
        var control = UploadControl(kind: .tus, endpointDigest: "ab", url: "http://a.test/files/1", file: identity)
        #expect(control.target(for: plain, endpointDigest: "ab", .tus)?.string == "http://a.test/files/1")
        #expect(control.target(for: secure, endpointDigest: "ab", .tus) == nil)
        control.url = "https://b.test/files/1"
        for endpoint in [secure, plain] {
            #expect(control.target(for: endpoint, endpointDigest: "ab", .tus)?.string == "https://b.test/files/1")
            #expect(control.target(for: endpoint, endpointDigest: "abc", .tus) == nil)
            #expect(control.target(for: endpoint, endpointDigest: "ab", .httpDraft) == nil)
        }
    }

    @Test func eachAlteredByteOfAControlFileIsCheckedOrHarmless() throws {
        let identity = try #require(DiskCall.identity(of: #filePath))
        let control = UploadControl(kind: .tus, endpointDigest: "ab", url: "https://a.test/files/1", file: identity)
        let bytes = try control.encoded()
        #expect(UploadControl.read(bytes).control == control && control.describes(identity))
        for position in bytes.indices {
            for byte in [UInt8(0), 0x22, 0x0A, 0xFF, bytes[position] ^ 1] where byte != bytes[position] {
                var other = bytes
                other[position] = byte
                guard let read = UploadControl.read(other).control else { continue }
                #expect(throws: Never.self) { try Target(absolute: read.url) }
                #expect(read.size >= 0)
            }
        }
        #expect(UploadControl.read(Data(count: UploadControl.limit + 1)).control == nil)
        guard case .laterVersion(2) = UploadControl.read(Data(#"{"version":2}"#.utf8)) else {
            Issue.record("a later version was not recognized")
            return
        }
    }
}
