#if os(Linux)
import Foundation
import GRPCCore
import Synchronization
import Tern
import Testing

@testable import TernGRPCTransport

/// The table "At the seams" of the README, with a server whose frames the test writes.
@Suite("Scripted server: the seams", .timeLimit(.minutes(1))) struct SeamTests {
    private typealias Frame = FrameServer.Frame

    private static let head = [(":status", "200"), ("content-type", "application/grpc")]
    private static let ok = [("grpc-status", "0")]

    /// The bytes of a message.
    private static func framed(_ count: Int) -> [UInt8] {
        [0, 0, 0, UInt8(count >> 8), UInt8(count & 0xFF)] + Array(repeating: 7, count: count)
    }

    /// Makes a call of one message to a server that answers its first stream, and reads on.
    private func unary(
        isTyped: Bool = true, options: CallOptions = .defaults,
        _ answer: @escaping @Sendable (FrameServer.Connection, UInt32) -> Void
    ) async throws -> (response: ClientResponse<[UInt8]>, error: RPCError?) {
        let server = try FrameServer { connection, _ in
            connection.send(.settings())
            guard let request = connection.next(1) else { return }
            answer(connection, request.stream)
            connection.readToEnd()
        }
        let result = Mutex<ClientResponse<[UInt8]>?>(nil)
        let error = await failure {
            try await withClient(of: server.url) { client in
                let response = try await client.unary("Unary", [1, 2, 3], options: options, isTyped: isTyped)
                result.withLock { $0 = response }
                _ = try response.message
            }
        }
        return (try #require(result.withLock { $0 }, "\(String(describing: error))"), error)
    }

    @Test(arguments: [true, false]) func aResponseIsRead(isTyped: Bool) async throws {
        let (response, error) = try await unary(isTyped: isTyped) { connection, stream in
            let message = Self.framed(300)
            connection.send(
                .headers(stream, Self.head + [("x", "1")]), .data(stream, Array(message[..<3])),
                .data(stream, Array(message[3..<100])), .data(stream, Array(message[100...])), .data(stream, []),
                .headers(stream, Self.ok + [("y", "2")], end: true))
        }
        #expect(error == nil)
        #expect(try response.message.count == 300)
        #expect(Array(response.metadata[stringValues: "x"]) == ["1"])
        #expect(Array(response.trailingMetadata[stringValues: "y"]) == ["2"])
    }

    @Test func aStatusInTheHeadIsTheWholeResponse() async throws {
        let (response, error) = try await unary { connection, stream in
            let fields = [("grpc-status", "5"), ("grpc-message", "not%20here"), ("z-bin", "AAE,Ag")]
            connection.send(.headers(stream, Self.head + fields, end: true))
        }
        #expect(error?.code == .notFound && error?.message == "not here")
        #expect(Array(response.trailingMetadata["z-bin"]) == [.binary([0, 1]), .binary([2])])
    }

    @Test func messagesAfterAStatusInTheHeadAreAnError() async throws {
        let (_, error) = try await unary { connection, stream in
            connection.send(.headers(stream, Self.head + Self.ok), .data(stream, Self.framed(1), end: true))
        }
        #expect(error?.code == .internalError)
    }

    @Test(
        arguments: [
            (502, .unavailable), (503, .unavailable), (429, .unavailable), (404, .unimplemented),
            (401, .unauthenticated),
            (403, .permissionDenied), (400, .internalError), (500, .unknown), (200, .unknown), (302, .unknown),
        ] as [(Int, RPCError.Code)])
    func aPageOfHTMLIsMappedByItsStatus(status: Int, code: RPCError.Code) async throws {
        let (_, error) = try await unary { connection, stream in
            connection.send(
                .headers(stream, [(":status", "\(status)"), ("content-type", "text/html")]),
                .data(stream, Array("<h1>no</h1>".utf8), end: true))
        }
        #expect(error?.code == code)
        #expect(error?.message.contains("\(status)") == true && error?.message.contains("text/html") == true)
    }

    @Test func aResponseWithoutAStatusIsAnError() async throws {
        for trailers in [nil, [("x", "1")]] as [[(String, String)]?] {
            let (_, error) = try await unary { connection, stream in
                connection.send(
                    .headers(stream, Self.head), .data(stream, Self.framed(1), end: trailers == nil))
                if let trailers { connection.send(.headers(stream, trailers, end: true)) }
            }
            #expect(error?.code == .unknown && error?.message.contains("grpc-status") == true)
        }
    }

    @Test func aResponseThatEndsWithinAMessageIsAnError() async throws {
        let (_, error) = try await unary { connection, stream in
            connection.send(
                .headers(stream, Self.head), .data(stream, Array(Self.framed(9).dropLast())),
                .headers(stream, Self.ok, end: true))
        }
        #expect(error?.code == .internalError)
    }

    @Test(arguments: [[0, 0x7F, 0xFF, 0xFF, 0xFF], [9, 0, 0, 0, 1, 0], [1, 0, 0, 0, 1, 0]] as [[UInt8]])
    func damagedMessagesEndTheCall(bytes: [UInt8]) async throws {
        let codes: [UInt8: RPCError.Code] = [0: .resourceExhausted, 9: .internalError, 1: .internalError]
        let resets = Mutex<[UInt8]>([])
        let (_, error) = try await unary { connection, stream in
            connection.send(.headers(stream, Self.head), .data(stream, bytes))
            // The stream goes on, so the client resets it, with CANCEL.
            resets.withLock { $0 = connection.next(3)?.payload ?? [] }
        }
        #expect(error?.code == codes[bytes[0]])
        #expect(resets.withLock { $0 } == [0, 0, 0, 8])
    }

    @Test func anUnknownCompressionIsRefused() async throws {
        let (_, error) = try await unary { connection, stream in
            connection.send(.headers(stream, Self.head + [("grpc-encoding", "snappy")]))
        }
        #expect(error?.code == .internalError && error?.message.contains("snappy") == true)
    }

    @Test(
        arguments: [(0, .internalError), (2, .internalError), (8, .cancelled), (11, .resourceExhausted)]
            as [(UInt32, RPCError.Code)])
    func aResetStreamIsMapped(code: UInt32, expected: RPCError.Code) async throws {
        for hasHead in [false, true] {
            let (_, error) = try await unary { connection, stream in
                if hasHead { connection.send(.headers(stream, Self.head)) }
                connection.send(.reset(stream, code))
            }
            #expect(error?.code == expected, "\(String(describing: error))")
        }
    }

    /// RST_STREAM(NO_ERROR) follows the trailers of a server that does not want the rest of the request.
    @Test func trailersCanComeBeforeTheEndOfTheRequest() async throws {
        let server = try FrameServer { connection, _ in
            connection.send(.settings())
            guard let stream = connection.next(1)?.stream, connection.next(0) != nil else { return }
            connection.send(
                .headers(stream, Self.head), .data(stream, Self.framed(2)),
                .headers(stream, [("grpc-status", "8"), ("grpc-message", "enough")], end: true), .reset(stream, 0))
            connection.readToEnd()
        }
        try await withClient(of: server.url) { client in
            let wasRefused = Mutex(false)
            let error = await failure {
                try await client.duplex("FullDuplex") { writer in
                    // Blocked by the window, until the call ends.
                    do {
                        while true { try await writer.write(message(size: 65_536)) }
                    } catch {
                        wasRefused.withLock { $0 = true }
                        throw error
                    }
                } read: { response in
                    for try await _ in response.messages {}
                }
            }
            #expect(error?.code == .resourceExhausted && error?.message == "enough")
            #expect(wasRefused.withLock { $0 })
        }
    }

    @Test func dataAfterTheEndOfAStreamDoesNotChangeItsStatus() async throws {
        let (response, error) = try await unary { connection, stream in
            connection.send(
                .headers(stream, Self.head), .data(stream, Self.framed(1)), .headers(stream, Self.ok, end: true),
                .data(stream, Self.framed(1), end: true))
        }
        #expect(error == nil)
        #expect(try response.message.count == 1)
    }

    // MARK: Calls that are made again

    /// The server refuses the first two streams, or ends the connection before them.
    @Test(arguments: [true, false], [true, false])
    func aCallThatWasNotProcessedIsMadeAgain(isTyped: Bool, isGoAway: Bool) async throws {
        let requests = Mutex<[[UInt8]]>([])
        let server = try FrameServer { connection, number in
            connection.send(.settings(streams: 8))
            var count = 0
            while let request = connection.next(1) {
                // The message, up to the end of the request.
                var body: [UInt8] = []
                while let frame = connection.next() {
                    if frame.type == 0 { body += frame.payload }
                    if frame.type == 0 && frame.flags & 1 != 0 || frame.type == 3 { break }
                }
                requests.withLock { $0.append(body) }
                count += 1
                if isGoAway, number < 2 {
                    connection.send(.goAway(last: 0))
                } else if !isGoAway, number + count < 3 {
                    connection.send(.reset(request.stream, 7))
                } else {
                    connection.send(
                        .headers(request.stream, Self.head), .data(request.stream, Self.framed(1)),
                        .headers(request.stream, Self.ok, end: true))
                }
            }
        }
        try await withClient(of: server.url) { client in
            let response = try await client.unary("Unary", [1, 2, 3], isTyped: isTyped)
            #expect(try response.message == [7])
        }
        let bodies = requests.withLock { $0 }
        #expect(bodies.count >= 2 && bodies.allSatisfy { $0 == [0, 0, 0, 0, 3, 1, 2, 3] }, "\(bodies)")
    }

    @Test func aCallThatBeganToBeAnsweredIsNotMadeAgain() async throws {
        let count = Mutex(0)
        let server = try FrameServer { connection, _ in
            connection.send(.settings())
            while let request = connection.next(1) {
                count.withLock { $0 += 1 }
                connection.send(
                    .headers(request.stream, Self.head), .data(request.stream, Self.framed(1)),
                    .goAway(last: request.stream), .reset(request.stream, 7))
            }
        }
        try await withClient(of: server.url) { client in
            let error = await failure {
                try await client.duplex("FullDuplex") { writer in
                    try await writer.write([1])
                } read: { response in
                    for try await _ in response.messages {}
                }
            }
            #expect(error != nil)
        }
        #expect(count.withLock { $0 } == 1)
    }

    @Test func callsInFlightGoOnAfterGOAWAY() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let second = DispatchSemaphore(value: 0)
        let server = try FrameServer { connection, number in
            connection.send(.settings())
            guard let stream = connection.next(1)?.stream else { return }
            connection.send(.headers(stream, Self.head), .data(stream, Self.framed(1)))
            if number == 0 {
                connection.send(.goAway(last: stream))
                // Answered when the other call has been answered over another connection.
                second.wait()
            }
            connection.send(.data(stream, Self.framed(2)), .headers(stream, Self.ok, end: true))
            connection.readToEnd()
        }
        try await withClient(of: server.url) { client in
            async let first = client.serverStream("ServerStream", [1]) { response in
                try await response.messages.reduce(into: [Int]()) { sizes, message in
                    sizes.append(message.count)
                    begin.yield()
                }
            }
            for await _ in begun { break }
            let other = try await client.serverStream("ServerStream", [1]) { response in
                try await response.messages.reduce(into: [Int]()) { $0.append($1.count) }
            }
            #expect(other == [1, 2])
            second.signal()
            #expect(try await first == [1, 2])
        }
    }

    // MARK: Deadlines and cancellation

    /// A server that never sends SETTINGS: the second call waits for a stream.
    @Test func aDeadlineEndsTheWaitForAConnection() async throws {
        let server = try FrameServer { connection, _ in connection.readToEnd() }
        try await withClient(of: server.url) { client in
            var options = CallOptions.defaults
            options.timeout = .milliseconds(50)
            let limited = options
            for isTyped in [true, false] {
                let calls = (0..<2).map { _ in
                    Task {
                        await failure {
                            _ = try await client.unary("Unary", options: limited, isTyped: isTyped).message
                        }
                    }
                }
                for call in calls { #expect(await call.value?.code == .deadlineExceeded) }
            }
        }
    }

    @Test func cancellingAWriterThatWaitsResetsItsStream() async throws {
        let (resets, reset) = AsyncStream.makeStream(of: [UInt8].self)
        let (fillings, filling) = AsyncStream.makeStream(of: Void.self)
        let server = try FrameServer { connection, _ in
            connection.send(.settings())
            // Reads, and opens no window: the client can send 65,535 bytes.
            var received = 0
            while let frame = connection.next() {
                if frame.type == 0 { received += frame.payload.count }
                if received == 65_535 { filling.yield() }
                if frame.type == 3 { reset.yield(frame.payload) }
            }
            filling.finish()
            reset.finish()
        }
        try await withClient(of: server.url) { client in
            let call = Task {
                try await client.clientStream("ClientStream") { writer in
                    for _ in 0..<10_000 { try await writer.write(message(size: 65_536)) }
                }.message
            }
            for await _ in fillings { break }
            call.cancel()
            let error = await failure { _ = try await call.value }
            #expect(error?.code == .cancelled, "\(String(describing: error))")
            var code: [UInt8]?
            for await payload in resets {
                code = payload
                break
            }
            #expect(code == [0, 0, 0, 8])
        }
    }

    @Test func aServerThatClosesIsUnavailable() async throws {
        let server = try FrameServer { _, _ in }
        try await withClient(of: server.url) { client in
            let error = await failure { _ = try await client.unary("Unary").message }
            #expect(error?.code == .unavailable, "\(String(describing: error))")
        }
    }
}
#endif
