#if os(Linux)
import Glibc
import Testing

@testable import TernEngine

/// A stream over TLS on a loop, whose peer takes nothing and asks for new keys.
private final class StalledClient: LoopClient, SocketHandler {
    enum Operation: UInt64 {
        case start, count, release
    }

    private let log: ExchangeLog
    private let context: LoopContext
    private let id: UInt64
    private var connection: TestConnection?
    private var stream: ByteStream?
    private var eventCount = 0

    init(_ log: ExchangeLog, _ context: LoopContext, _ id: UInt64) {
        (self.log, self.context, self.id) = (log, context, id)
    }

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        switch Operation(rawValue: operation) {
        case .start:
            do { try start() } catch { log.add("\(error)") }
        case .count: log.add("events \(eventCount)")
        case .release: connection?.emptyServerSocket()
        case nil: break
        }
    }

    private func start() throws {
        let identity = try TestIdentity()
        let connection = try TestConnection(TLSPolicy(.only(identity)), TestServer(identity))
        self.connection = connection
        guard connection.handshake() == .done else { return log.add("no handshake") }
        connection.fillClientSocket()
        _ = connection.requestClientKeys()
        _ = connection.serverWrite([1])
        // Both the stream and the connection close their descriptor.
        let descriptor = dup(connection.clientSocket)
        guard let registration = context.watch(descriptor, for: .readable, handler: self) else { return }
        let stream = ByteStream(context, registration, watching: .readable)
        stream.secure(with: connection.client)
        self.stream = stream
        read()
        let writing = unsafe [2].withUnsafeBytes { unsafe stream.write($0) }
        _ = connection.serverWrite([3])
        if case .wouldBlock = writing { log.add("full") } else { log.add("written: \(writing)") }
    }

    private func read() {
        var byte: UInt8 = 0
        if case .bytes(1) = unsafe withUnsafeMutableBytes(of: &byte, { unsafe stream?.read(into: $0) }) {
            log.add("byte \(byte)")
        }
        stream?.watch(.readable, self)
    }

    func socketIsReady(_ events: SocketEvents) {
        eventCount += 1
        if stream?.canRead(after: events) == true { read() }
    }

    func close() {
        stream = nil
        context.remove(id)
    }
}

@Suite(.timeLimit(.minutes(1))) struct ByteStreamTests {
    /// The loop would turn without end otherwise: the byte in the socket is reported again and again, and cannot be
    /// read.
    @Test func aReadThatNeedsRoomWaitsForRoom() async throws {
        final class Nothing: Sendable {}
        let log = ExchangeLog()
        let loop = EventLoop.shared
        try #require(loop.problem() == nil)
        let id = loop.open { context, id in StalledClient(log, context, id) }
        func perform(_ operation: StalledClient.Operation) {
            loop.post(to: id, operation: operation.rawValue, object: Nothing())
        }
        perform(.start)
        await log.wait(for: "full")
        // Each answer takes a turn of the loop.
        for turn in 1...20 {
            perform(.count)
            await log.wait(for: "events", count: turn)
        }
        perform(.release)
        await log.wait(for: "byte 3")
        #expect(log.entries.filter { !$0.hasPrefix("events") } == ["byte 1", "full", "byte 3"])
        // One for the byte that cannot be read.
        #expect(log.entries.last { $0.hasPrefix("events") } == "events 1")
        loop.close(id)
    }
}
#endif
