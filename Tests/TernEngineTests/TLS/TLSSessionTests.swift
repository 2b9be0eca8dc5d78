#if os(Linux)
import CTernTestTLS
import Glibc
import TernEngine
import Testing

@Suite struct TLSSessionTests {
    /// Returns a policy without anchors, and a connection whose handshake is done.
    private func connect(version: Int32 = 0) throws -> TestConnection {
        let connection = try TestConnection(Self.unverified, TestServer(TestIdentity(), version: version))
        #expect(connection.handshake() == .done)
        return connection
    }

    private static var unverified: TLSPolicy {
        var options = TLSOptions()
        options.anchors = .none
        return TLSPolicy(options)
    }

    @Test(arguments: [12, 13] as [Int32]) func bytesTravelBothWays(version: Int32) throws {
        let connection = try connect(version: version)
        #expect(connection.read() == ([], .wouldBlock))
        #expect(connection.write(Array("hello".utf8)) == .bytes(5))
        #expect(connection.serverRead().bytes == Array("hello".utf8))
        #expect(connection.serverWrite(Array("world!".utf8)) == 6)
        #expect(connection.read(5).bytes == Array("world".utf8))
        #expect(connection.client.hasPending)
        let rest = connection.read()
        #expect(rest.bytes == Array("!".utf8) && rest.last == .wouldBlock)
        #expect(!connection.client.hasPending && connection.client.isDrained)
        #expect(connection.write([]) == .bytes(0))
    }

    @Test func manyRecordsAreReadAtOnce() throws {
        let connection = try connect()
        var expected: [UInt8] = []
        for number in 0..<100 {
            let record = Array(repeating: UInt8(number), count: 100)
            #expect(connection.serverWrite(record) == 100)
            expected += record
        }
        var buffer: [UInt8] = Array(repeating: 0, count: 1 << 16)
        let result = unsafe buffer.withUnsafeMutableBytes { unsafe connection.client.read(into: $0) }
        #expect(result == .bytes(10_000))
        #expect(Array(buffer.prefix(10_000)) == expected)
        #expect(connection.client.isDrained)
    }

    @Test func aWriteWaitsForTheRestOfATicket() throws {
        let connection = try connect(version: 13)
        #expect(connection.read() == ([], .wouldBlock))
        #expect(connection.serverSendsTicketInPart())
        #expect(connection.read() == ([], .wouldBlock))
        #expect(connection.client.hasIncompleteHandshakeMessage)
        #expect(connection.write([1]) == .wantsRead)
        #expect(!connection.client.endWriting())
        #expect(connection.serverSendsRest())
        #expect(connection.write([1]) == .bytes(1))
        #expect(!connection.client.hasIncompleteHandshakeMessage)
        #expect(connection.serverRead().bytes == [1])
    }

    @Test func aWriteFailsWhenTheConnectionEndsWithinATicket() throws {
        let connection = try connect(version: 13)
        #expect(connection.serverSendsTicketInPart())
        #expect(connection.read() == ([], .wouldBlock))
        #expect(connection.write([1]) == .wantsRead)
        connection.closeServerSocket()
        guard case .failed(let error) = connection.write([1]) else {
            Issue.record("the write does not fail")
            return
        }
        #expect(error.kind == .connectionLost)
        #expect(error.reason == "the connection to localhost:443 was lost: the server ended it")
    }

    @Test func anEndWaitsForTheRestOfATicket() throws {
        let connection = try connect(version: 13)
        #expect(connection.serverSendsTicketInPart())
        #expect(connection.read() == ([], .wouldBlock))
        #expect(!connection.client.endWriting())
        #expect(connection.serverSendsRest())
        #expect(connection.client.endWriting())
        #expect(connection.serverRead().result == -2)
    }

    @Test(arguments: [12, 13] as [Int32]) func aMutualEndIsClean(version: Int32) throws {
        let connection = try connect(version: version)
        #expect(connection.serverWrite([1, 2, 3]) == 3)
        connection.closeServer()
        connection.closeServerSocket()
        let end = connection.read()
        #expect(end.bytes == [1, 2, 3] && end.last == .end(isClean: true))
        #expect(connection.read().last == .end(isClean: true))
    }

    @Test(arguments: [12, 13] as [Int32]) func anEndWithoutCloseNotifyIsNotClean(version: Int32) throws {
        let connection = try connect(version: version)
        #expect(connection.serverWrite([1, 2, 3]) == 3)
        connection.closeServerSocket()
        let end = connection.read()
        #expect(end.bytes == [1, 2, 3] && end.last == .end(isClean: false))
        #expect(connection.read().last == .end(isClean: false))
    }

    @Test func anEndWithinARecordIsNotClean() throws {
        let connection = try connect()
        #expect(connection.read().last == .wouldBlock)
        let header: [UInt8] = [0x17, 3, 3, 0, 100, 1, 2]
        #expect(unsafe send(connection.serverSocket, header, header.count, 0) == header.count)
        #expect(connection.read().last == .wouldBlock)
        #expect(connection.client.hasPending)
        connection.closeServerSocket()
        #expect(connection.read().last == .end(isClean: false))
    }

    @Test func closingSendsCloseNotify() throws {
        let connection = try connect()
        connection.client.close()
        #expect(connection.serverRead().result == -2)
        // Before the handshake nothing is sent.
        let early = try TestConnection(Self.unverified, TestServer(TestIdentity()))
        early.client.close()
        #expect(early.serverRead().result == 0)
    }

    @Test func bytesThatAreNotTLSAreAnError() throws {
        let connection = try TestConnection(Self.unverified, TestServer(TestIdentity()))
        #expect(connection.client.handshake() == .wantsRead)
        let text = "HTTP/1.1 400 Bad Request\r\n\r\n"
        #expect(unsafe send(connection.serverSocket, text, text.utf8.count, 0) == text.utf8.count)
        let error = connection.client.handshake().error
        #expect(
            error?.kind == .tls
                && error?.reason
                    == "TLS with localhost:443 failed: the server answered without TLS, as on a port for plain HTTP "
                    + "(wrong version number)"
        )
        #expect(connection.client.handshake().error == error)
        // A broken record after the handshake.
        let other = try connect()
        let record: [UInt8] = [0x17, 3, 3, 0, 32] + Array(repeating: 7, count: 32)
        #expect(unsafe send(other.serverSocket, record, record.count, 0) == record.count)
        guard case .failed(let broken) = other.read().last else { return #expect(Bool(false)) }
        #expect(broken.kind == .tls)
        guard case .failed = other.read().last, case .failed = other.write([1]) else { return #expect(Bool(false)) }
        other.client.close()
    }

    @Test func anEndWithinTheHandshakeIsAnError() throws {
        let connection = try TestConnection(Self.unverified, TestServer(TestIdentity()))
        #expect(connection.client.handshake() == .wantsRead)
        // A socket with unread bytes would be reset.
        var hello: [UInt8] = Array(repeating: 0, count: 1 << 14)
        #expect(unsafe recv(connection.serverSocket, &hello, hello.count, 0) > 0)
        connection.closeServerSocket()
        let error = connection.client.handshake().error
        #expect(error?.kind == .tls && error?.reason.contains("ended within the handshake") == true)
    }

    /// The default action of SIGPIPE would end the process.
    @Test(arguments: [false, true]) func writingToAPeerThatIsGoneIsAnError(isDone: Bool) throws {
        let connection = isDone ? try connect() : try TestConnection(Self.unverified, TestServer(TestIdentity()))
        connection.closeServerSocket()
        guard isDone else {
            let error = connection.client.handshake().error
            #expect(error?.kind == .tls && error?.code == EPIPE)
            return
        }
        guard case .failed(let error) = connection.write([1]) else { return #expect(Bool(false)) }
        #expect(error.kind == .connectionLost && error.code == EPIPE)
        #expect(error.reason.hasPrefix("the connection to localhost:443 was lost: "))
        connection.client.close()
    }

    @Test func aResponseCanBeReadAfterAFailedWrite() throws {
        let connection = try connect()
        #expect(connection.serverWrite(Array("413".utf8)) == 3)
        connection.closeServer()
        connection.closeServerSocket()
        guard case .failed = connection.write([1]), case .failed = connection.write([1]) else {
            return #expect(Bool(false))
        }
        let response = connection.read()
        #expect(response.bytes == Array("413".utf8) && response.last == .end(isClean: true))
    }

    @Test(arguments: [12, 13] as [Int32]) func bigWritesProgressInParts(version: Int32) throws {
        let connection = try connect(version: version)
        let sent = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var (offset, writes) = (0, 0)
        var received: [UInt8] = []
        received.reserveCapacity(sent.count)
        while received.count < sent.count {
            if offset < sent.count {
                // The bytes lie at another address each time.
                writes += 1
                switch connection.write(sent[offset...]) {
                case .bytes(let count): offset += count
                case .wouldBlock, .wantsRead: break
                case .failed(let error): throw error
                }
            }
            while true {
                let part = connection.serverRead()
                guard part.result > 0 else { break }
                received += part.bytes
            }
        }
        #expect(writes > 1 && offset == sent.count)
        #expect(received == sent)
    }

    /// A server that asks for new keys, and takes nothing from the socket, stops the client's reads: they wait for
    /// room.
    @Test func aReadWaitsForRoomForItsAnswer() throws {
        let connection = try connect(version: 13)
        connection.fillClientSocket()
        #expect(connection.requestClientKeys() && connection.serverWrite([1]) == 1)
        #expect(connection.read(1).bytes == [1])
        // The answer to the request comes first, and there is no room for it.
        #expect(connection.write([2]) == .wouldBlock)
        #expect(connection.serverWrite([3]) == 1)
        #expect(connection.read(1).last == .wantsWrite)
        connection.emptyServerSocket()
        #expect(connection.read(1).bytes == [3])
    }

    @Test func protocolsAreNegotiated() throws {
        func result(_ offered: [String], _ choice: String?, forced: Bool = false) throws -> (EngineError?, String?) {
            let server = try TestServer(TestIdentity(), choosing: choice, forcesProtocol: forced)
            let connection = try TestConnection(Self.unverified, server, protocols: offered)
            let result = connection.handshake()
            return (result.error, connection.client.negotiatedProtocol)
        }
        #expect(try result(["h2", "http/1.1"], "h2") == (nil, "h2"))
        #expect(try result(["h2", "http/1.1"], "http/1.1") == (nil, "http/1.1"))
        #expect(try result(["http/1.1"], "h2") == (nil, nil))
        #expect(try result(["http/1.1"], nil) == (nil, nil))
        #expect(try result([], "h2") == (nil, nil))
        #expect(try result(["http/1.1"], "h2", forced: true).0?.kind == .tls)
        for name in ["", String(repeating: "a", count: 256)] {
            #expect(throws: EngineError.self) { try result([name], nil) }
        }
    }

    @Test func recordsWithoutDataAreSkipped() throws {
        let connection = try connect(version: 13)
        for _ in 0..<20 {
            for _ in 0..<50 { #expect(connection.updateServerKeys()) }
            #expect(connection.read().last == .wouldBlock)
        }
        #expect(connection.serverWrite([1]) == 1)
        #expect(connection.read().bytes == [1])
    }

    /// Changes one byte of the server's flight. Every place ends in an error, or in a wait for more bytes.
    @Test func changedHandshakesFail() throws {
        let server = try TestServer(TestIdentity(), version: 13)
        let policy = Self.unverified
        for place in stride(from: 0, to: 1_000, by: 3) {
            let connection = try TestConnection(policy, server)
            #expect(connection.client.handshake() == .wantsRead)
            #expect(unsafe tern_test_server_handshake(connection.server) == 0)
            var bytes: [UInt8] = Array(repeating: 0, count: 1 << 16)
            let count = unsafe recv(connection.clientSocket, &bytes, bytes.count, 0)
            try #require(count > 5)
            // The versions in the headers of the two records that are not encrypted, ServerHello and
            // ChangeCipherSpec, have no meaning (RFC 8446 §5.1).
            let second = 5 + (Int(bytes[3]) << 8 | Int(bytes[4]))
            guard place < count, ![1, 2, second + 1, second + 2].contains(place) else { continue }
            bytes[place] ^= 0x41
            #expect(unsafe send(connection.serverSocket, bytes, count, 0) == count)
            #expect(connection.client.handshake() != .done, "place \(place) of \(count)")
        }
    }

    @Test func everySplitOfAHandshakeIsTheSame() throws {
        let server = try TestServer(TestIdentity())
        let policy = Self.unverified
        for step in [1, 2, 5, 7, 100, 599] {
            let connection = try TestConnection(policy, server)
            #expect(connection.client.handshake() == .wantsRead)
            #expect(unsafe tern_test_server_handshake(connection.server) == 0)
            var bytes: [UInt8] = Array(repeating: 0, count: 1 << 16)
            let count = unsafe recv(connection.clientSocket, &bytes, bytes.count, 0)
            #expect(count > 0)
            var result = TLSHandshakeResult.wantsRead
            for start in stride(from: 0, to: count, by: step) {
                #expect(result == .wantsRead)
                let part = Array(bytes[start..<min(count, start + step)])
                #expect(unsafe send(connection.serverSocket, part, part.count, 0) == part.count)
                result = connection.client.handshake()
            }
            #expect(result == .done)
        }
    }
}
#endif
