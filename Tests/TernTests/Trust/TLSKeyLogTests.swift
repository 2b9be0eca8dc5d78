import Foundation
import TernConcurrency
import Testing

@testable import Tern

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite("TLS key log", .timeLimit(.minutes(1))) struct TLSKeyLogTests {
    private func inFolder(_ test: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "tern-keylog-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        // A folder that cannot be removed disturbs no other test.
        defer { try? FileManager.default.removeItem(atPath: path) }
        try test(path)
    }

    private func mode(of path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test func linesAreAppendedToAFileOfTheOwnerAlone() throws {
        try inFolder { folder in
            let path = "\(folder)/keys.log"
            do {
                let log = try TLSKeyLog(path: path) { _ in }
                log.write("A 1 2")
                // A second one, as in another program.
                try TLSKeyLog(path: path) { _ in }.write("B 1 2")
                log.write("C 1 2")
            }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "A 1 2\nB 1 2\nC 1 2\n")
            #expect(try mode(of: path) == 0o600)
            try TLSKeyLog(path: path) { _ in }.write("D 1 2")
            #expect(try String(contentsOfFile: path, encoding: .utf8).hasSuffix("C 1 2\nD 1 2\n"))
        }
    }

    @Test func linesOfManyThreadsStayWhole() async throws {
        let path = NSTemporaryDirectory() + "tern-keylog-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }  // A leftover does no harm.
        let shared = try TLSKeyLog(path: path) { _ in }
        let end = String(repeating: "f", count: 200)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    let log = writer % 2 == 0 ? shared : try TLSKeyLog(path: path) { _ in }
                    for number in 0..<200 { log.write("LABEL \(writer) \(number) \(end)") }
                }
            }
            try await group.waitForAll()
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 1_601 && lines.last == "")
        #expect(Set(lines).count == 1_601)
        #expect(lines.dropLast().allSatisfy { $0.hasPrefix("LABEL ") && $0.hasSuffix(end) })
    }

    @Test func filesThatCannotKeepSecretsAreRefusedWithTheirPath() throws {
        try inFolder { folder in
            let names = ["missing/keys.log", "folder", "pipe", "readable", "link"]
            try FileManager.default.createDirectory(atPath: "\(folder)/folder", withIntermediateDirectories: true)
            #expect(unsafe mkfifo("\(folder)/pipe", 0o600) == 0)
            for (name, mode) in [("readable", 0o644), ("target", 0o600)] {
                _ = FileManager.default.createFile(
                    atPath: "\(folder)/\(name)", contents: nil, attributes: [.posixPermissions: mode])
            }
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/link", withDestinationPath: "\(folder)/target")
            for name in names {
                let error = #expect(throws: NetworkError.self) {
                    try TLSKeyLog(path: "\(folder)/\(name)") { Issue.record("\($0)") }
                }
                #expect(error?.kind == .fileSystem && error?.reason.contains("\(folder)/\(name)") == true, "\(name)")
            }
            let error = #expect(throws: NetworkError.self) { try TLSKeyLog(path: "\(folder)/readable") { _ in } }
            #expect(error?.reason.contains("chmod 600") == true)
            #expect(try mode(of: "\(folder)/readable") == 0o644)
        }
    }

    @Test func aFailureIsToldOnceAndTheNextLineIsWhole() {
        let told = Lock<[String]>([])
        let results = Lock<[Int32]>([0, ENOSPC, ENOSPC, 0, ENOSPC])
        let written = Lock<[String]>([])
        let log = TLSKeyLog(path: "/keys") { text in
            told.withLock { $0.append(text) }
        } append: { text in
            written.withLock { $0.append(text) }
            return results.withLock { $0.removeFirst() }
        }
        for line in ["a", "b", "c", "d", "e"] { log.write(line) }
        #expect(written.withLock { $0 } == ["a\n", "b\n", "\nc\n", "\nd\n", "e\n"])
        let expected = "the key log /keys is not complete: \(ErrorText.text(ENOSPC))"
        #expect(told.withLock { $0 } == [expected, expected])
    }

    @Test func theWarningIsGivenOnceAndNamesThePlace() {
        let told = Lock<[String]>([])
        let log = TLSKeyLog(path: "/a/keys.log") { text in
            told.withLock { $0.append(text) }
        } append: { _ in
            0
        }
        for _ in 0..<3 { log.warn() }
        let all = told.withLock { $0 }
        #expect(all.count == 1 && all[0].contains("the file /a/keys.log") && all[0].contains("secrets"))
    }

    @Test func configurationsNameTheirKeyLog() {
        var configuration = Session.Configuration()
        #expect(!configuration.description.contains("key log"))
        configuration.keyLog = TLSKeyLog { _ in }
        #expect(configuration.description.contains("key log to a closure"))
    }
}
