import Foundation
import GRPCCore
import Testing

@testable import TernGRPCTransport

@Suite("Calls: the messages on their way") struct OutboxStateTests {
    private struct Failure: Error {}

    private func bytes(_ read: OutboxState.Read) -> [UInt8]? {
        if case .bytes(let bytes) = read { Array(bytes) } else { nil }
    }

    private func isEnd(_ read: OutboxState.Read) -> Bool { if case .end = read { true } else { false } }
    private func isWait(_ read: OutboxState.Read) -> Bool { if case .wait = read { true } else { false } }
    private func isWritten(_ write: OutboxState.Write) -> Bool { if case .written = write { true } else { false } }

    @Test func smallMessagesAreJoined() {
        var state = OutboxState()
        for byte in 0..<5 as Range<UInt8> { #expect(isWritten(state.write([Data([byte])]))) }
        #expect(state.isReadable(by: 0) && state.waitingBytes == 5)
        #expect(bytes(state.take(by: 0)) == [0, 1, 2, 3, 4])
        #expect(isWait(state.take(by: 0)) && !state.isReadable(by: 0))
        state.end(.finished)
        #expect(isEnd(state.take(by: 0)) && state.isReadable(by: 0))
    }

    @Test func writersWaitForRoom() {
        var state = OutboxState()
        let piece = Data(count: OutboxState.capacity - 1)
        #expect(isWritten(state.write([piece])) && isWritten(state.write([Data([1]), piece])))
        #expect(!state.hasRoom)
        if case .wait = state.write([Data([2])]) {} else { Issue.record("has room") }
        while bytes(state.take(by: 0)) != nil {}
        #expect(state.hasRoom && state.waitingBytes == 0)
    }

    /// A writer that is always ahead of the reader.
    @Test func messagesKeepTheirOrderAndNothingIsKept() {
        var state = OutboxState()
        _ = state.write([Data(count: 20_000)])
        state.commit()
        var read: [UInt8] = []
        for byte in 0..<200 as Range<UInt8> {
            // A large piece after each, so that none are joined.
            _ = state.write([Data(repeating: byte, count: 20_000)])
            if let bytes = bytes(state.take(by: 0)) { read.append(bytes[0]) }
        }
        #expect(read == [0] + Array(0..<199))
        #expect(state.pieceCount <= 66 && state.waitingBytes == 20_000)
    }

    @Test func anotherAttemptReadsFromTheBeginning() {
        var state = OutboxState()
        _ = state.write([Data([1])])
        #expect(bytes(state.take(by: 0)) == [1])
        _ = state.write([Data([2])])
        #expect(state.restart() == 1)
        // The reader of the first attempt ends.
        #expect(isEnd(state.take(by: 0)) && state.isReadable(by: 0))
        var read: [UInt8] = []
        while let more = bytes(state.take(by: 1)) { read += more }
        #expect(read == [1, 2])
        state.end(.finished)
        #expect(state.restart() == 2)
        #expect(bytes(state.take(by: 2)) == [1, 2] || state.attempt == 2)
    }

    @Test func anAnswerOrManyBytesPreventAnotherAttempt() {
        var state = OutboxState()
        _ = state.write([Data([1])])
        _ = state.take(by: 0)
        state.commit()
        #expect(state.restart() == nil)

        state = OutboxState()
        var written = 0
        while written <= OutboxState.replayLimit {
            #expect(state.isReplayable)
            _ = state.write([Data(count: 32 << 10)])
            written += 32 << 10
            _ = state.take(by: 0)
        }
        #expect(!state.isReplayable && state.restart() == nil)
    }

    @Test func aClosedOutboxRefusesMessages() {
        var state = OutboxState()
        _ = state.write([Data([1])])
        state.close(Failure())
        #expect(state.hasRoom && isEnd(state.take(by: 0)) && state.restart() == nil)
        if case .refused(let error) = state.write([Data([2])]) {
            #expect(error is Failure)
        } else {
            Issue.record("not refused")
        }
    }

    /// The way in which the wait of a writer ends.
    enum End: CaseIterable { case cancelled, closed, read }

    @Test(arguments: End.allCases) func aWriterThatWaitsGoesOn(end: End) async throws {
        let outbox = Outbox()
        try await outbox.write([Data(count: OutboxState.capacity)])
        let writer = Task { try await outbox.write([Data([1])]) }
        while outbox.waitingWriters == 0 { await Task.yield() }
        switch end {
        case .cancelled: writer.cancel()
        case .closed: outbox.close(RPCError(code: .aborted, message: ""))
        case .read:
            var body = outbox.body.makeAsyncIterator()
            #expect(try await body.next()?.count == OutboxState.capacity)
        }
        let error = await failure { try await writer.value }
        #expect(error?.code == (end == .read ? nil : end == .cancelled ? .cancelled : .aborted))
    }

    @Test func aCancelledReaderEnds() async throws {
        let outbox = Outbox()
        let reader = Task {
            var body = outbox.body.makeAsyncIterator()
            return try await body.next()
        }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test func aFailureEndsTheBodyWithIt() {
        var state = OutboxState()
        _ = state.write([Data([1])])
        state.end(.failed(Failure()))
        state.end(.finished)
        if case .failed(let error) = state.take(by: 0) { #expect(error is Failure) } else { Issue.record("no failure") }
        if case .refused = state.write([Data([2])]) {} else { Issue.record("not refused") }
    }
}

@Suite("Calls: retries, addresses and the life of a transport") struct TransportStateTests {
    @Test func theEndWaitsForTheLastCall() throws {
        var state = TransportState<String>()
        let first = try state.begin("a")
        var ends = [try state.connect()]
        let second = try state.begin("b")
        ends.append(state.end(first))
        ends += [state.close(), state.close()]
        #expect(throws: TransportState<String>.Refusal.isClosing) { try state.begin("c") }
        #expect(Array(state.calls.values) == ["b"] && !state.isClosed)
        #expect(ends == [false, false, false, false])
        ends = [state.end(second), state.end(second)]
        #expect(ends == [true, false] && state.isClosed)
    }

    @Test func anEndBeforeTheConnectionIsKept() throws {
        var state = TransportState<String>()
        let isDone = state.close()
        #expect(!isDone)
        #expect(throws: TransportState<String>.Refusal.isClosing) { try state.begin("a") }
        let isConnected = try state.connect()
        #expect(isConnected)
        #expect(throws: TransportState<String>.Refusal.isConnected) { try state.connect() }
    }

    @Test func addressesTakeTurns() {
        var rotation = AddressRotation(count: 3, delays: .seconds(1) ... .seconds(10))
        #expect((0..<4).map { _ in rotation.next(at: .zero) } == [0, 1, 2, 0])
        var hasOther = rotation.failed(at: 1, now: .zero)
        #expect(hasOther)
        #expect((0..<3).map { _ in rotation.next(at: .milliseconds(999)) } == [2, 0, 2])
        #expect((0..<2).map { _ in rotation.next(at: .seconds(1)) } == [0, 1])
        // A second failure counts longer.
        hasOther = rotation.failed(at: 1, now: .seconds(1))
        #expect(hasOther)
        #expect((0..<3).map { _ in rotation.next(at: .milliseconds(2_500)) } == [2, 0, 2])
        rotation.succeeded(at: 1)
        #expect((0..<2).map { _ in rotation.next(at: .milliseconds(2_500)) } == [0, 1])
    }

    @Test func withoutAnAddressThatCanBeReachedAllTakeTurns() {
        var rotation = AddressRotation(count: 2, delays: .seconds(1) ... .seconds(10))
        let results = [rotation.failed(at: 0, now: .zero), rotation.failed(at: 1, now: .zero)]
        #expect(results == [true, false])
        #expect((0..<3).map { _ in rotation.next(at: .zero) } == [0, 1, 0])
    }

    @Test func unprocessedCallsAreMadeAgainFiveTimes() throws {
        var retries = CallRetries(.milliseconds(250) ... .seconds(30))
        let delays = (0..<7).map { _ in
            retries.delay(wasNotProcessed: true, isConnectFailure: false, waitsForReady: false)
        }
        #expect(delays[0] == .zero && delays[5] == nil && delays[6] == nil)
        for (delay, limit) in zip(delays[1..<5], [50, 100, 200, 400]) {
            let delay = try #require(delay)
            #expect(delay <= .milliseconds(limit) && delay >= .milliseconds(limit * 2 / 3 - 1))
        }
    }

    @Test func aCallWaitsForAConnectionIfItIsToldTo() {
        var retries = CallRetries(.milliseconds(250) ... .seconds(30))
        let impatient = retries.delay(wasNotProcessed: false, isConnectFailure: true, waitsForReady: false)
        #expect(impatient == nil)
        let delays = (0..<100).map { _ in
            retries.delay(wasNotProcessed: false, isConnectFailure: true, waitsForReady: true)
        }
        #expect(delays.allSatisfy { ($0 ?? .zero) >= .milliseconds(166) && ($0 ?? .seconds(99)) <= .seconds(30) })
        #expect((delays[99] ?? .zero) >= .seconds(20))
        let other = retries.delay(wasNotProcessed: false, isConnectFailure: false, waitsForReady: true)
        #expect(other == nil)
    }

    @Test func theNearestConfigurationOfAMethodApplies() throws {
        let json = """
            {"methodConfig": [
                {"name": [{}], "timeout": "1s"},
                {"name": [{"service": "a.B"}], "timeout": "2s"},
                {"name": [{"service": "a.B", "method": "C"}], "timeout": "3s"}
            ]}
            """
        let table = MethodConfigTable(try JSONDecoder().decode(ServiceConfig.self, from: Data(json.utf8)))
        let names = [("a.B", "C"), ("a.B", "D"), ("x.Y", "C")]
        let limits = names.map { table[MethodDescriptor(fullyQualifiedService: $0.0, method: $0.1)]?.timeout }
        #expect(limits == [.seconds(3), .seconds(2), .seconds(1)])
        #expect(MethodConfigTable(ServiceConfig())[MethodDescriptor(fullyQualifiedService: "a", method: "b")] == nil)
    }

    @Test(arguments: [
        ("https://a.example", "https://a.example", "dns:a.example:443"),
        ("http://127.0.0.1:50051/", "http://127.0.0.1:50051", "ipv4:127.0.0.1:50051"),
        ("http://[::1]:7", "http://[::1]:7", "ipv6:[::1]:7"),
        ("https://a.example/v1//", "https://a.example/v1", "dns:a.example:443"),
    ])
    func serversAreNamed(url: String, trimmed: String, peer: String) throws {
        let server = try TernGRPCTransport.server(of: url)
        #expect(server.url == trimmed && server.peer(unixSocketPath: nil) == peer)
        #expect(server.peer(unixSocketPath: "/s") == "unix:/s")
    }

    @Test(arguments: ["", "a.example", "ftp://a.example", "https://a.example/?q=1"]) func otherTextsAreRefused(
        url: String
    ) {
        #expect(throws: RPCError.self) { try TernGRPCTransport(url) }
    }

    @Test func settingsAreChecked() {
        var configuration = TernGRPCTransport.Configuration()
        configuration.addresses = ["no address"]
        #expect(throws: RPCError.self) { try TernGRPCTransport("http://a.example", configuration: configuration) }
    }
}
