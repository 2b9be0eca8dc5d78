import Foundation
import GRPCCore
import Synchronization
import Testing

@testable import TernGRPCTransport

/// grpcio's server, in a process of its own. It ends with this object.
final class TestServer: Sendable {
    private static let root = (0..<5).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
    private static let python = root.appending(path: ".build/venv/bin/python").path(percentEncoded: false)

    /// Suites that need the server are skipped where its package is missing. In CI, which installs it, they fail.
    static let isExpected =
        ProcessInfo.processInfo.environment["CI"] == "true" || FileManager.default.isExecutableFile(atPath: python)
    static let absence: Comment = "there is no grpcio; `scripts/checks/integrations Integrations/GRPC` installs it"

    private struct Running {
        var process: Process
        var input: Pipe
    }

    private let running = Mutex<Running?>(nil)
    private let settings: [String: any Sendable]
    /// The port of 127.0.0.1; 0 for a Unix socket.
    let port: Int

    var url: String { "http://127.0.0.1:\(port)" }

    /// Starts a server, and returns when it serves.
    ///
    /// - Parameter settings: The argument of `server.py`.
    init(_ settings: [String: any Sendable] = [:]) async throws {
        self.settings = settings
        let (running, port) = try await Self.run(settings)
        self.port = port
        self.running.withLock { $0 = running }
    }

    deinit { kill() }

    private static func run(_ settings: [String: any Sendable]) async throws -> (Running, Int) {
        let process = Process()
        process.executableURL = URL(filePath: python)
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "server.py")
        let argument = try JSONSerialization.data(withJSONObject: settings)
        process.arguments = [script.path(percentEncoded: false), String(decoding: argument, as: UTF8.self)]
        process.environment = ["PATH": "/usr/bin:/bin", "GRPC_VERBOSITY": "NONE"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = try await Self.firstLine(of: output)
        let port = try #require(line.split(separator: " ").last.flatMap { Int($0) }, "\(line)")
        return (Running(process: process, input: input), port)
    }

    private static func firstLine(of pipe: Pipe) async throws -> String {
        let text = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<String, any Error>) in
            Thread.detachNewThread {
                var bytes = Data()
                while !bytes.contains(0x0A), case let more = pipe.fileHandleForReading.availableData, !more.isEmpty {
                    bytes += more
                }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
        return try #require(text.split(separator: "\n").first.map(String.init), "the server has not started")
    }

    /// Ends the process at once.
    func kill() {
        let own = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let own else { return }
        Foundation.kill(own.process.processIdentifier, SIGKILL)
        own.process.waitUntilExit()
    }

    /// Starts the server again on its port.
    func restart() async throws {
        kill()
        var settings = settings
        settings["port"] = port
        let (running, _) = try await Self.run(settings)
        self.running.withLock { $0 = running }
    }
}

/// Messages are bytes.
struct BytesCoder: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) throws -> Bytes { Bytes(message) }

    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }
}

/// Returns the message of a request: a JSON object, with zeros after it up to a size.
func message(_ json: String = "", size: Int = 0) -> [UInt8] {
    let bytes = Array(json.utf8)
    return bytes + Array(repeating: 0, count: max(0, size - bytes.count))
}

typealias TestClient = GRPCClient<TernGRPCTransport>

extension GRPCClient where Transport == TernGRPCTransport {
    private static func method(_ name: String, _ type: MethodDescriptor.RPCType?) -> MethodDescriptor {
        let parts = name.split(separator: "/").map(String.init)
        return MethodDescriptor(
            fullyQualifiedService: parts.count > 1 ? parts[0] : "tern.Test", method: parts.last ?? "", type: type)
    }

    /// Makes a call with one message each way.
    ///
    /// - Parameter isTyped: Whether the descriptor says so, so that the request is sent with its message.
    func unary(
        _ name: String, _ request: [UInt8] = [], metadata: Metadata = [:], options: CallOptions = .defaults,
        isTyped: Bool = true
    ) async throws -> ClientResponse<[UInt8]> {
        try await unary(
            request: ClientRequest(message: request, metadata: metadata),
            descriptor: Self.method(name, isTyped ? .unary : nil), serializer: BytesCoder(),
            deserializer: BytesCoder(), options: options
        ) { $0 }
    }

    func clientStream(
        _ name: String, metadata: Metadata = [:], options: CallOptions = .defaults,
        producer: @escaping @Sendable (RPCWriter<[UInt8]>) async throws -> Void
    ) async throws -> ClientResponse<[UInt8]> {
        try await clientStreaming(
            request: StreamingClientRequest(metadata: metadata, producer: producer),
            descriptor: Self.method(name, .clientStreaming), serializer: BytesCoder(), deserializer: BytesCoder(),
            options: options
        ) { $0 }
    }

    func serverStream<Value: Sendable>(
        _ name: String, _ request: [UInt8] = [], metadata: Metadata = [:], options: CallOptions = .defaults,
        isTyped: Bool = true, read: @escaping @Sendable (StreamingClientResponse<[UInt8]>) async throws -> Value
    ) async throws -> Value {
        try await serverStreaming(
            request: ClientRequest(message: request, metadata: metadata),
            descriptor: Self.method(name, isTyped ? .serverStreaming : nil), serializer: BytesCoder(),
            deserializer: BytesCoder(), options: options, onResponse: read)
    }

    func duplex<Value: Sendable>(
        _ name: String, metadata: Metadata = [:], options: CallOptions = .defaults,
        producer: @escaping @Sendable (RPCWriter<[UInt8]>) async throws -> Void,
        read: @escaping @Sendable (StreamingClientResponse<[UInt8]>) async throws -> Value
    ) async throws -> Value {
        try await bidirectionalStreaming(
            request: StreamingClientRequest(metadata: metadata, producer: producer),
            descriptor: Self.method(name, .bidirectionalStreaming), serializer: BytesCoder(),
            deserializer: BytesCoder(), options: options, onResponse: read)
    }
}

/// Returns the error of a call.
func failure(_ body: () async throws -> Void) async -> RPCError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? RPCError ?? RPCError(code: .unknown, message: "no RPCError: \(error)")
    }
}

/// Runs a test with a client of a server, and waits for the end of the transport.
func withClient(
    of url: String, _ configuration: TernGRPCTransport.Configuration = .init(),
    _ test: (TestClient) async throws -> Void
) async throws {
    let transport = try TernGRPCTransport(url, configuration: configuration)
    try await withGRPCClient(transport: transport) { client in try await test(client) }
}
