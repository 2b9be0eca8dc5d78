#if os(Linux)
import Foundation
import Testing

@testable import TernFuzz

/// The short form of `make fuzz`: each target with few inputs, in a process of its own, without a sanitizer.
@Suite(.serialized, .enabled(if: FuzzProgram.hasPython, "there is no .build/venv; `make test` makes it"))
struct FuzzTargetTests {
    @Test(.timeLimit(.minutes(2)), arguments: FuzzTarget.all.map(\.name))
    func targetHolds(name: String) throws {
        let folder = try FuzzProgram.fixtures.get()
        let input = folder.deletingLastPathComponent().appending(path: "tern-fuzz-\(UUID().uuidString).input")
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = URL(filePath: program).deletingLastPathComponent().appending(path: "TernFuzz").path
        let (status, output) = try FuzzProgram.run(path, arguments: [name, "500", folder.path, input.path])
        #expect(status == 0, "the input is in \(input.path): \(output.suffix(2_000))")
        #expect(output.contains("\(name): done"))
    }
}

/// Runs programs for the fuzz tests and makes their fixtures.
enum FuzzProgram {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    private static let python = root.appending(path: ".build/venv/bin/python")

    /// Whether the fixtures can be made. In CI they must be, so the suite runs there always.
    static let hasPython =
        ProcessInfo.processInfo.environment["CI"] == "true"
        || FileManager.default.fileExists(atPath: root.appending(path: ".build/venv/.installed").path)

    /// The folder of the fixtures, made once a run.
    static let fixtures = Result { try makeFixtures() }

    private static func makeFixtures() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-fuzz-\(UUID().uuidString)")
        let script = root.appending(path: "Tests/Pillow/fixtures.py")
        let (status, output) = try run(python.path, arguments: ["-B", script.path, folder.path])
        try #require(status == 0, "fixtures.py: \(output)")
        return folder
    }

    static func run(_ program: String, arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        // Under the address sanitizer, a small quarantine makes growing memory visible, and a backtrace takes minutes.
        process.environment = ProcessInfo.processInfo.environment.merging([
            "ASAN_OPTIONS": "quarantine_size_mb=16:allocator_may_return_null=1", "SWIFT_BACKTRACE": "enable=no",
        ]) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
#endif
