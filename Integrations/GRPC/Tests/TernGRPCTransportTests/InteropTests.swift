import Foundation
import GRPCCore
import Synchronization
import Testing

@testable import TernGRPCTransport

/// The cases of gRPC's interoperability suite, by their names there, against grpcio.
@Suite("grpcio: interoperability", .enabled(if: TestServer.isExpected, TestServer.absence), .timeLimit(.minutes(1)))
struct InteropTests {
    private func withTestClient(
        _ settings: [String: any Sendable] = [:], configuration: TernGRPCTransport.Configuration = .init(),
        _ test: (TestClient) async throws -> Void
    ) async throws {
        let server = try await TestServer(settings)
        try await withClient(of: server.url, configuration, test)
        withExtendedLifetime(server) {}
    }

    @Test(arguments: [true, false]) func emptyUnary(isTyped: Bool) async throws {
        try await withTestClient { client in
            let reply = try await client.unary("Empty", isTyped: isTyped).message
            #expect(reply == [])
        }
    }

    @Test(arguments: [true, false]) func largeUnary(isTyped: Bool) async throws {
        try await withTestClient { client in
            let request = message(#"{"size": 314159}"#, size: 271_828)
            let reply = try await client.unary("Unary", request, isTyped: isTyped).message
            #expect(reply.count == 314_159)
        }
    }

    @Test func clientStreaming() async throws {
        try await withTestClient { client in
            let response = try await client.clientStream("ClientStream") { writer in
                for size in [27_182, 8, 1_828, 45_904] { try await writer.write(message(size: size)) }
            }
            #expect(try String(decoding: response.message, as: UTF8.self) == #"{"count": 4, "size": 74922}"#)
        }
    }

    @Test(arguments: [true, false]) func serverStreaming(isTyped: Bool) async throws {
        try await withTestClient { client in
            let request = message(#"{"sizes": [31415, 9, 2653, 58979]}"#)
            let sizes = try await client.serverStream("ServerStream", request, isTyped: isTyped) { response in
                try await response.messages.reduce(into: []) { $0.append($1.count) }
            }
            #expect(sizes == [31_415, 9, 2_653, 58_979])
        }
    }

    /// Each message follows the answer to the one before.
    @Test func pingPong() async throws {
        try await withTestClient { client in
            let (turns, next) = AsyncStream.makeStream(of: Void.self)
            let sizes = try await client.duplex("FullDuplex") { writer in
                var turns = turns.makeAsyncIterator()
                for (size, answer) in [(27_182, 31_415), (8, 9), (1_828, 2_653), (45_904, 58_979)] {
                    try await writer.write(message(#"{"sizes": [\#(answer)]}"#, size: size))
                    await turns.next()
                }
            } read: { response in
                var sizes: [Int] = []
                for try await message in response.messages {
                    sizes.append(message.count)
                    next.yield()
                }
                return sizes
            }
            #expect(sizes == [31_415, 9, 2_653, 58_979])
        }
    }

    @Test func emptyStream() async throws {
        try await withTestClient { client in
            let count = try await client.duplex("FullDuplex") { _ in
            } read: { response in
                try await response.messages.reduce(0) { count, _ in count + 1 }
            }
            #expect(count == 0)
        }
    }

    private static let customMetadata: Metadata = [
        "x-initial": "test_initial_metadata_value", "x-trailing-bin": .binary([0x0A, 0x0B, 0x0A, 0x0B, 0x0A, 0x0B, 0]),
    ]

    @Test(arguments: [true, false]) func customMetadata(isTyped: Bool) async throws {
        try await withTestClient { client in
            let unary = try await client.unary("Unary", metadata: Self.customMetadata, isTyped: isTyped)
            #expect(Array(unary.metadata[stringValues: "x-initial"]) == ["test_initial_metadata_value"])
            #expect(
                Array(unary.trailingMetadata["x-trailing-bin"]) == [.binary([0x0A, 0x0B, 0x0A, 0x0B, 0x0A, 0x0B, 0])])
        }
    }

    @Test func customMetadataOfAStream() async throws {
        try await withTestClient { client in
            try await client.duplex("FullDuplex", metadata: Self.customMetadata) { writer in
                try await writer.write(message(#"{"sizes": [1]}"#))
            } read: { response in
                let contents = try response.accepted.get()
                #expect(Array(contents.metadata[stringValues: "x-initial"]) == ["test_initial_metadata_value"])
                var trailers: Metadata = [:]
                for try await part in contents.bodyParts {
                    if case .trailingMetadata(let metadata) = part { trailers = metadata }
                }
                #expect(Array(trailers["x-trailing-bin"]).count == 1)
            }
        }
    }

    @Test func noFieldOfTernIsMetadata() async throws {
        try await withTestClient { client in
            let response = try await client.unary("Unary", message(#"{"wants": "metadata"}"#), metadata: ["x-own": "1"])
            let metadata = try JSONSerialization.jsonObject(with: Data(response.message)) as? [String: String]
            #expect(metadata?["x-own"] == "1" && metadata?["user-agent"]?.hasPrefix("grpc-swift-tern/") == true)
            // grpcio hides what belongs to the protocol.
            #expect(Set(metadata?.keys ?? [:].keys) == ["x-own", "user-agent"], "\(metadata ?? [:])")
        }
    }

    @Test(arguments: [
        "test status message", "\t\ntest with whitespace\r\nand Unicode BMP \u{263A} and non-BMP \u{1F608}\t\n",
    ])
    func statusCodeAndMessage(text: String) async throws {
        try await withTestClient { client in
            let json = try JSONSerialization.data(withJSONObject: ["status": ["code": 2, "message": text]])
            let request = message(String(decoding: json, as: UTF8.self))
            for isTyped in [true, false] {
                let error = await failure { _ = try await client.unary("Unary", request, isTyped: isTyped).message }
                #expect(error?.code == .unknown && error?.message == text)
            }
            let streamed = await failure {
                try await client.duplex("FullDuplex") { writer in
                    try await writer.write(request)
                } read: { response in
                    for try await _ in response.messages {}
                }
            }
            #expect(streamed?.code == .unknown && streamed?.message == text)
        }
    }

    @Test(arguments: [1, 3, 5, 8, 14, 16]) func eachCodeArrives(code: Int) async throws {
        try await withTestClient { client in
            let request = message(#"{"status": {"code": \#(code), "message": ""}}"#)
            let error = await failure { _ = try await client.unary("Unary", request).message }
            #expect(error?.code.rawValue == code)
        }
    }

    @Test(arguments: ["tern.Test/Missing", "tern.Missing/Unary"]) func unimplemented(name: String) async throws {
        try await withTestClient { client in
            for isTyped in [true, false] {
                let error = await failure { _ = try await client.unary(name, isTyped: isTyped).message }
                #expect(error?.code == .unimplemented, "\(String(describing: error))")
            }
        }
    }

    // MARK: Cancellation and deadlines

    @Test func cancelAfterBegin() async throws {
        try await withTestClient { client in
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let call = Task {
                try await client.clientStream("ClientStream") { writer in
                    try await writer.write(message(size: 1))
                    begin.yield()
                    for await _ in AsyncStream<Void>(unfolding: { try? await Task.sleep(for: .seconds(60)) }) {
                        try Task.checkCancellation()
                    }
                }.message
            }
            for await _ in begun { break }
            call.cancel()
            let error = await failure { _ = try await call.value }
            #expect(error?.code == .cancelled, "\(String(describing: error))")
        }
    }

    @Test func cancelAfterFirstResponse() async throws {
        try await withTestClient { client in
            let first = try await client.serverStream("ServerStream", message(#"{"sizes": [3], "waits": true}"#)) {
                for try await message in $0.messages { return message.count }
                return 0
            }
            #expect(first == 3)
            // The server notices, because the stream was reset.
            #expect(try await client.unary("WaitForCancel").message == Array("cancelled".utf8))
        }
    }

    @Test func timeoutOnSleepingServer() async throws {
        try await withTestClient { client in
            var options = CallOptions.defaults
            options.timeout = .milliseconds(20)
            let error = await failure {
                _ = try await client.serverStream("ServerStream", message(#"{"waits": true}"#), options: options) {
                    try await $0.messages.reduce(0) { count, _ in count + 1 }
                }
            }
            #expect(error?.code == .deadlineExceeded)
        }
    }

    @Test func theServerKnowsTheDeadline() async throws {
        try await withTestClient { client in
            var options = CallOptions.defaults
            options.timeout = .seconds(100)
            let request = message(#"{"wants": "remaining"}"#)
            let limited = try await client.unary("Unary", request, options: options).message
            let remaining = Double(String(decoding: limited, as: UTF8.self))
            #expect(remaining.map { 1...100 ~= $0 } == true)
            #expect(try await client.unary("Unary", request).message == Array("-1".utf8))
        }
    }

    // MARK: Compression

    @Test(arguments: [CompressionAlgorithm.gzip, .deflate, .none]) func clientCompressed(
        algorithm: CompressionAlgorithm
    ) async throws {
        try await withTestClient { client in
            var options = CallOptions.defaults
            options.compression = algorithm
            let request = message(#"{"size": 314159}"#, size: 271_828)
            #expect(try await client.unary("Unary", request, options: options).message.count == 314_159)
            let response = try await client.clientStream("ClientStream", options: options) { writer in
                for size in [27_182, 0, 45_904] { try await writer.write(message(size: size)) }
            }
            #expect(try String(decoding: response.message, as: UTF8.self) == #"{"count": 3, "size": 73086}"#)
        }
    }

    @Test(arguments: ["gzip", "deflate", "identity"]) func serverCompressed(compression: String) async throws {
        try await withTestClient(["compression": compression]) { client in
            #expect(try await client.unary("Unary", message(#"{"size": 314159}"#)).message.count == 314_159)
            let sizes = try await client.serverStream("ServerStream", message(#"{"sizes": [31415, 0, 92653]}"#)) {
                try await $0.messages.reduce(into: []) { $0.append($1.count) }
            }
            #expect(sizes == [31_415, 0, 92_653])
        }
    }

    /// grpcio compresses although the client does not accept it.
    @Test func aCompressionThatWasNotAcceptedIsRefused() async throws {
        var configuration = TernGRPCTransport.Configuration()
        configuration.acceptedCompressions = .none
        try await withTestClient(["compression": "gzip"], configuration: configuration) { client in
            let error = await failure { _ = try await client.unary("Unary", message(#"{"size": 1000}"#)).message }
            #expect(error?.code == .internalError && error?.message.contains("gzip") == true)
        }
    }

    @Test func messagesAreLimited() async throws {
        try await withTestClient(["compression": "gzip"]) { client in
            var options = CallOptions.defaults
            options.maxResponseMessageBytes = 1_000
            for size in [1_000, 1_001] {
                let error = await failure {
                    _ = try await client.unary("Unary", message(#"{"size": \#(size)}"#), options: options).message
                }
                #expect(error?.code == (size > 1_000 ? .resourceExhausted : nil), "\(String(describing: error))")
            }
            options = .defaults
            options.maxRequestMessageBytes = 1_000
            for size in [1_000, 1_001] {
                let error = await failure {
                    _ = try await client.unary("Unary", message(size: size), options: options).message
                }
                #expect(error?.code == (size > 1_000 ? .resourceExhausted : nil), "\(String(describing: error))")
            }
        }
    }

    // MARK: Back-pressure

    /// The server's messages wait in its windows while they are not read, and ours while it does not read them.
    @Test func manyLargeMessagesPassBothWays() async throws {
        try await withTestClient { client in
            let total = try await client.duplex("FullDuplex") { writer in
                for _ in 0..<200 { try await writer.write(message(#"{"sizes": [65536]}"#, size: 65_536)) }
            } read: { response in
                try await response.messages.reduce(0) { $0 + $1.count }
            }
            #expect(total == 200 * 65_536)
        }
    }

    @Test func manySmallMessagesPass() async throws {
        try await withTestClient { client in
            let count = try await client.serverStream("ServerStream", message(#"{"count": 5000, "size": 32}"#)) {
                try await $0.messages.reduce(0) { count, message in count + message.count }
            }
            #expect(count == 5_000 * 32)
            let response = try await client.clientStream("ClientStream") { writer in
                for _ in 0..<5_000 { try await writer.write(message(size: 32)) }
            }
            #expect(try String(decoding: response.message, as: UTF8.self) == #"{"count": 5000, "size": 160000}"#)
        }
    }
}
