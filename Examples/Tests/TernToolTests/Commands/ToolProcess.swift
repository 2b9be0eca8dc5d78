#if os(Linux)
import Foundation
import Synchronization
import TernTesting
import Testing

/// The built tool, or another program, run as a process in a folder of its own.
struct ToolProcess {
    /// The end of a process, and its output.
    struct Result {
        let code: Int32
        let output: Data
        /// Standard error.
        let messages: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The folder, which is removed with `remove()`.
    let folder: URL

    init() throws {
        folder = URL(filePath: "/tmp/tern-tool-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func remove() {
        // A folder that cannot be removed disturbs no other test.
        try? FileManager.default.removeItem(at: folder)
    }

    /// The names of all files in the folder, those of the output excluded.
    var names: [String] {
        get throws { try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted() }
    }

    func file(_ name: String) -> URL { folder.appending(path: name) }

    func bytes(_ name: String) throws -> Data { try Data(contentsOf: file(name)) }

    func write(_ bytes: some Sequence<UInt8>, to name: String) throws { try Data(bytes).write(to: file(name)) }

    /// The path of a program beside the tests.
    static func path(_ name: String) throws -> String {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return program[..<(program.lastIndex(of: "/") ?? program.startIndex)] + "/" + name
    }

    /// Runs the tool to its end.
    func tern(_ arguments: String..., input: String = "") async throws -> Result {
        try await run(Self.path("tern"), arguments, input: input)
    }

    /// Runs a program to its end.
    ///
    /// - Parameters:
    ///   - keepsInputOpen: Whether standard input is a pipe without bytes that does not end.
    ///   - started: Called with the process when it runs.
    func run(
        _ program: String, _ arguments: [String], input: String = "", keepsInputOpen: Bool = false,
        output: String? = nil,
        started: (Process) async throws -> Void = { _ in }
    ) async throws -> Result {
        await Turns.shared.enter()
        defer { Turns.shared.leave() }
        let log = URL(filePath: folder.path + "-log-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: log, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: log) }  // As in `remove()`.
        let places = ["input", "output", "messages"].map { log.appending(path: $0) }
        try Data(input.utf8).write(to: places[0])
        for place in places[1...] { try Data().write(to: place) }
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        var environment = ProcessInfo.processInfo.environment
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment[name] = nil
        }
        environment["TERN_QUEUE"] = folder.appending(path: ".queue").path
        process.environment = environment
        let pipe = Pipe()
        defer { try? pipe.fileHandleForWriting.close() }  // Closed already where the process took it.
        process.standardInput = keepsInputOpen ? pipe : try FileHandle(forReadingFrom: places[0])
        process.standardOutput = try FileHandle(forWritingTo: output.map { URL(filePath: $0) } ?? places[1])
        process.standardError = try FileHandle(forWritingTo: places[2])
        let (ends, end) = AsyncStream<Void>.makeStream()
        process.terminationHandler = { _ in end.finish() }
        try process.run()
        do {
            try await started(process)
        } catch {
            process.terminate()
            throw error
        }
        for await _ in ends {}
        let code = process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
        return Result(
            code: code, output: try Data(contentsOf: places[1]),
            messages: String(decoding: try Data(contentsOf: places[2]), as: UTF8.self))
    }
}

/// Lets 16 processes run at a time. `Process.run()` of Foundation lists the open descriptors and copies more bytes of the
/// last entry than there are, which ends this process if there are more than a thousand.
private final class Turns: Sendable {
    static let shared = Turns()

    private let state = Mutex<(free: Int, waiting: [CheckedContinuation<Void, Never>])>((16, []))

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.free > 0 {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}

/// Runs a server, and the tool in a folder, for one test.
func withTool(
    _ handler: @escaping LoopbackServer.Handler, test: (LoopbackServer, ToolProcess) async throws -> Void
) async throws {
    let server = try LoopbackServer(handler: handler)
    defer { server.stop() }
    let tool = try ToolProcess()
    defer { tool.remove() }
    try await test(server, tool)
}

extension LoopbackServer {
    func text(_ path: String) -> String { url(path).absoluteString }
}

/// Values seen by the threads of a server.
final class Seen: Sendable {
    private let values = Mutex<[String]>([])

    var all: [String] { values.withLock { $0 } }

    func add(_ value: String) { values.withLock { $0.append(value) } }

    func removeAll() { values.withLock { $0 = [] } }
}
#endif
