#if os(Linux)
import Foundation
import Testing

@testable import TernImages

/// Pictures that Python creates with `Tests/Pillow/fixtures.py`, and the pixels that Pillow decodes from them. Created
/// once per run.
struct PillowFixtures {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// One file and its frames in upright, straight RGBA.
    struct Entry: Sendable {
        let name: String
        let isExact: Bool
        let size: PixelSize
        let frameCount: Int
        let data: Data
        let expected: [UInt8]

        func expected(frame index: Int) -> ArraySlice<UInt8> {
            let count = size.pixelCount * 4
            return expected[index * count..<(index + 1) * count]
        }
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    private static let venv = root.appending(path: ".build/venv")

    /// The tests are skipped if the Python environment does not exist. They are never skipped in CI, or by `make test`,
    /// which creates it.
    static let isExpected =
        ProcessInfo.processInfo.environment["CI"] == "true"
        || FileManager.default.fileExists(atPath: venv.appending(path: ".installed").path)
    static let absence: Comment = "there is no .build/venv; `make test` makes it"

    private static let made = Result { try make() }

    /// Returns all entries, or those whose names end with a suffix.
    static func entries(_ suffix: String = "") throws -> [Entry] {
        try made.get().filter { $0.name.hasSuffix(suffix) }
    }

    private static func make() throws -> [Entry] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-pillow-\(UUID().uuidString)")
        // An error does not matter, because the folder belongs to this test alone and takes only a few megabytes.
        defer { try? FileManager.default.removeItem(at: folder) }
        let process = Process()
        process.executableURL = venv.appending(path: "bin/python")
        process.arguments = ["-B", root.appending(path: "Tests/Pillow/fixtures.py").path, folder.path]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "fixtures.py: \(String(decoding: said, as: UTF8.self))")
        }
        let index = try String(contentsOf: folder.appending(path: "index.tsv"), encoding: .utf8)
        return try index.split(separator: "\n").map { line in
            let fields = line.split(separator: "\t").map(String.init)
            guard fields.count == 5, let width = Int(fields[2]), let height = Int(fields[3]),
                let frames = Int(fields[4])
            else { throw Failure(description: "index.tsv: \(line)") }
            let file = folder.appending(path: fields[0])
            return Entry(
                name: fields[0], isExact: fields[1] == "exact", size: PixelSize(width: width, height: height),
                frameCount: frames, data: try Data(contentsOf: file),
                expected: [UInt8](try Data(contentsOf: folder.appending(path: fields[0] + ".rgba"))))
        }
    }
}
#endif
