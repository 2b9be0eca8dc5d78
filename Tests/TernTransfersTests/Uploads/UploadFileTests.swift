import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#endif

/// The check of the file of an upload before a byte of it is read.
@Suite("Durable uploads: the file", .timeLimit(.minutes(1)))
struct UploadFileTests {
    private func expectFailure(_ code: Int32, _ file: UploadFile) async {
        let error = await #expect(throws: FileFailure.self) { try await file.open() }
        #expect(error?.code == code, "\(String(describing: error))")
    }

    /// Reading a device can have an effect or never end.
    @Test(arguments: ["/dev/zero", "/dev/null", "/dev/tty"])
    func deviceIsRefusedBeforeItIsOpened(path: String) async throws {
        try await inTestFolder { folder in
            let calls = Log<String>()
            let files = FaultyFiles { call, path in
                calls.add("\(call) \(path)")
                return nil
            }
            await expectFailure(
                DiskCall.notAFile, UploadFile(path: path, controlPath: "\(folder.path)/control", system: files))
            #expect(calls.all.isEmpty)
            let session = Session(stub: StubTransport { _ in .data(Data()) })
            let upload = DurableUploadTask(
                upload: DurableUpload.started(
                    URL(filePath: path), .success(try Request(.post, "https://a.test/files")), kind: .tus,
                    session: session, options: DurableUploadOptions(), system: files))
            let error = try await failure { try await upload.value }
            #expect(error.kind == .fileSystem && error.reason.contains("open \(path)"), "\(error)")
            #expect(calls.all.isEmpty)
        }
    }

    #if os(Linux)
    /// A link can lead to a private file of the user, and a pipe can hold up its reader.
    @Test func linksAndPipesAreRefusedBeforeTheyAreOpened() async throws {
        try await inTestFolder { folder in
            try folder.write(Data([1]), to: "file")
            try FileManager.default.createSymbolicLink(
                atPath: folder.url("link").path, withDestinationPath: folder.url("file").path)
            #expect(unsafe mkfifo(folder.url("pipe").path, 0o600) == 0)
            let calls = Log<String>()
            let files = FaultyFiles { call, path in
                calls.add("\(call) \(path)")
                return nil
            }
            for path in ["link", "pipe", ""].map({ folder.url($0).path }) {
                await expectFailure(
                    DiskCall.notAFile, UploadFile(path: path, controlPath: "\(path).control", system: files))
            }
            #expect(calls.all.isEmpty)
        }
    }

    /// Another user can replace the file between its check and its opening.
    @Test(arguments: ["file", "pipe", "device"]) func fileThatIsReplacedMeanwhileIsNotRead(
        with new: String
    ) async throws {
        try await inTestFolder { folder in
            let (path, other) = (folder.url("big.iso").path, folder.url("other").path)
            try folder.write(Data([1]), to: "big.iso")
            switch new {
            case "file": try folder.write(Data([2]), to: "other")
            case "pipe": #expect(unsafe mkfifo(other, 0o600) == 0)
            default: try FileManager.default.createSymbolicLink(atPath: other, withDestinationPath: "/dev/zero")
            }
            let calls = Log<String>()
            let files = FaultyFiles { call, named in
                calls.add(call)
                if call == "open", named == path { unsafe rename(other, path) }
                return nil
            }
            let file = UploadFile(path: path, controlPath: "\(path).control", system: files)
            await expectFailure(DiskCall.stale, file)
            #expect(calls.all == ["open"])
            await #expect(throws: FileFailure.self) { try await file.read(at: 0, count: 1) }
            #expect(calls.all == ["open"])
        }
    }
    #endif

    /// File systems count their files independently of each other.
    @Test func fileOfTheSameNumberOnAnotherDeviceIsAnotherFile() {
        func identity(device: UInt64) -> DiskCall.Identity {
            DiskCall.Identity(device: device, number: 7, length: 1, seconds: 1, nanoseconds: 1)
        }
        #expect(identity(device: 1).isSameFile(as: identity(device: 1)))
        #expect(!identity(device: 1).isSameFile(as: identity(device: 2)))
    }
}
