import Testing

@testable import TernEngine

@Suite struct HTTP1ConnectionTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private func request(
        _ method: String = "GET", fields: [(String, String)] = [], hasBody: Bool = false, upgrade: String? = nil
    ) throws -> HTTP1Connection.Request {
        var all = RequestFields()
        for (name, value) in fields { try all.append(name: name, value: value) }
        return HTTP1Connection.Request(
            method: method, fields: all, hasBody: hasBody, limits: HeadLimits(bytes: 4_096), upgrade: upgrade)
    }

    /// Feeds a text, and returns the last event that is not `.needsInput`, and the number of bytes that are left.
    @discardableResult
    private func feed(_ connection: inout HTTP1Connection, _ text: String) -> (HTTP1Connection.Event, left: Int) {
        let bytes = Array(text.utf8)
        var position = 0
        var last = HTTP1Connection.Event.needsInput
        unsafe bytes.withUnsafeBytes { input in
            while true {
                let event = unsafe connection.receive(input, from: &position)
                if event == .needsInput { return }
                last = event
                switch event {
                case .end, .upgraded, .failure, .unsolicited: return
                default: break
                }
            }
        }
        return (last, bytes.count - position)
    }

    private func used() throws -> HTTP1Connection {
        var connection = HTTP1Connection()
        connection.start(try request())
        feed(&connection, Self.ok)
        return connection
    }

    @Test func aConnectionCarriesOneRequestAfterAnother() throws {
        var connection = HTTP1Connection()
        for number in 1...5 {
            #expect(connection.isIdle && !connection.mustClose)
            connection.start(try request())
            #expect(!connection.isIdle && connection.exchanges == number && connection.sending == .complete)
            #expect(feed(&connection, Self.ok).0 == .end(isReusable: true))
        }
    }

    @Test func bytesThatAreReadInPlaceCountTowardsTheBody() throws {
        var connection = HTTP1Connection()
        #expect(connection.missingLength == nil)
        connection.start(try request())
        #expect(connection.missingLength == nil)
        #expect(feed(&connection, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab").0 == .body(39..<41))
        #expect(connection.missingLength == 8)
        connection.receivedInPlace(3)
        #expect(connection.missingLength == 5 && connection.receivedLength == 5)
        #expect(feed(&connection, "").0 == .needsInput)
        connection.receivedInPlace(5)
        #expect(connection.missingLength == nil && connection.receivedLength == 10)
        #expect(feed(&connection, "").0 == .end(isReusable: true))
        #expect(connection.isIdle && connection.missingLength == nil)
    }

    @Test(arguments: ["Transfer-Encoding: chunked\r\n\r\n8\r\nabcd", "\r\nabcd", "Content-Length: 0\r\n\r\n"])
    func onlyABodyWithAStatedLengthIsReadInPlace(rest: String) throws {
        var connection = HTTP1Connection()
        connection.start(try request())
        feed(&connection, "HTTP/1.1 200 OK\r\n" + rest)
        #expect(connection.missingLength == nil)
    }

    @Test(arguments: ["x", "HTTP/1.1 200 OK\r\n\r\n", "\r\n", "\0"])
    func leftOverBytesCloseTheConnection(rest: String) throws {
        var connection = HTTP1Connection()
        connection.start(try request())
        #expect(feed(&connection, Self.ok + rest) == (.end(isReusable: false), left: rest.utf8.count))
        #expect(connection.mustClose && !connection.isIdle)
    }

    @Test(arguments: [
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", "H", "\r\n", "HTTP/1.1 103 Hints\r\n\r\n", Self.ok,
    ])
    func bytesOnAnIdleConnectionCloseIt(text: String) throws {
        var connection = try used()
        #expect(feed(&connection, "").0 == .needsInput && connection.isIdle)
        #expect(feed(&connection, text).0 == .unsolicited && connection.mustClose)
        #expect(feed(&connection, text).0 == .unsolicited)
    }

    @Test func theEndOfAnIdleConnectionClosesIt() throws {
        var connection = try used()
        #expect(connection.endOfInput(isCut: false) == .unsolicited && connection.mustClose)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", []),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", []),
        (ok, [("Connection", "close")]), (ok, [("Connection", "x, Close")]),
    ])
    func closeIsKept(text: String, fields: [(String, String)]) throws {
        var connection = HTTP1Connection()
        connection.start(try request(fields: fields))
        #expect(feed(&connection, text).0 == .end(isReusable: false) && connection.mustClose)
    }

    @Test func aBodyUntilTheEndIsCompleteAtTheEnd() throws {
        var connection = HTTP1Connection()
        connection.start(try request())
        feed(&connection, "HTTP/1.1 200 OK\r\n\r\nabc")
        var cut = connection
        #expect(connection.endOfInput(isCut: false) == .end(isReusable: false) && connection.mustClose)
        guard case .failure(let error) = cut.endOfInput(isCut: true) else { return #expect(Bool(false)) }
        #expect(error.kind == .truncatedBody && cut.mustClose)
    }

    // MARK: Dead connections

    @Test func onlyAnOpenConnectionWithoutAResponseWasDead() throws {
        var fresh = HTTP1Connection()
        fresh.start(try request())
        #expect(!fresh.isDeadPooledConnection)
        var unused = HTTP1Connection()
        unused.start(try request(), wasWaiting: true)
        #expect(unused.isDeadPooledConnection)
        var reused = try used()
        reused.start(try request())
        #expect(reused.isDeadPooledConnection && !reused.hasResponse)
        var ended = reused
        guard case .failure(let error) = ended.endOfInput(isCut: false) else { return #expect(Bool(false)) }
        #expect(error.kind == .connectionLost && ended.isDeadPooledConnection && ended.mustClose)
        for text in ["H", "x", "HTTP/1.1 100 Continue\r\n\r\n"] {
            var begun = reused
            feed(&begun, text)
            #expect(!begun.isDeadPooledConnection && begun.hasResponse, "\(text)")
        }
    }

    @Test func aLateTimeoutIsNoted() throws {
        let text = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        var reused = try used()
        reused.start(try request())
        feed(&reused, text)
        #expect(reused.isLateTimeout)
        var fresh = HTTP1Connection()
        fresh.start(try request())
        feed(&fresh, text)
        #expect(!fresh.isLateTimeout)
        var unused = HTTP1Connection()
        unused.start(try request(), wasWaiting: true)
        feed(&unused, text)
        #expect(unused.isLateTimeout)
        var open = try used()
        open.start(try request())
        feed(&open, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        #expect(!open.isLateTimeout && open.isIdle)
    }

    // MARK: The body of the request

    @Test func aSentBodyKeepsTheConnection() throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", hasBody: true))
        #expect(connection.sending == .open)
        connection.bodyEnded()
        #expect(connection.sending == .complete)
        #expect(feed(&connection, Self.ok).0 == .end(isReusable: true))
    }

    @Test func aBodyMayEndWithinTheResponse() throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", hasBody: true))
        feed(&connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        #expect(connection.sending == .open)
        connection.bodyEnded()
        #expect(feed(&connection, "k").0 == .end(isReusable: true))
    }

    @Test func anEarlyResponseStopsTheBody() throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", hasBody: true))
        #expect(feed(&connection, Self.ok).0 == .end(isReusable: false))
        #expect(connection.sending == .stopped && connection.mustClose)
    }

    @Test(arguments: [300, 401, 413, 500, 999]) func anEarlyErrorStopsTheBodyAtItsHead(status: Int) throws {
        for fields in [[], [("Expect", "100-continue")]] {
            var connection = HTTP1Connection()
            connection.start(try request("POST", fields: fields, hasBody: true), continueDeadline: 10)
            feed(&connection, "HTTP/1.1 \(status) No\r\nContent-Length: 2\r\n\r\n")
            #expect(connection.sending == .stopped)
            connection.bodyEnded()
            #expect(!connection.checkDeadline(now: 20) && connection.sending == .stopped)
            #expect(feed(&connection, "no").0 == .end(isReusable: false))
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 100 Continue\r\n\r\n", true), ("HTTP/1.1 103 Hints\r\n\r\n", false),
        ("HTTP/1.1 102 Processing\r\n\r\n", false),
        ("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", true), ("HTTP/1.1 100 Continue\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true),
    ])
    func aBodyWaitsForItsPermission(text: String, isOpen: Bool) throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", fields: [("Expect", "100-continue")], hasBody: true), continueDeadline: 10)
        #expect(connection.sending == .waits(until: 10) && !connection.checkDeadline(now: 9))
        connection.bodyEnded()
        feed(&connection, text)
        #expect(connection.sending == (isOpen ? .open : .waits(until: 10)))
        #expect(connection.checkDeadline(now: 10) && connection.sending == .open)
    }

    @Test func anExpectationWithoutABodyDoesNotWait() throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", fields: [("Expect", "100-continue")]), continueDeadline: 10)
        #expect(connection.sending == .complete && !connection.checkDeadline(now: 20))
    }

    // MARK: Other protocols

    @Test func anUpgradeHandsTheConnectionOver() throws {
        let text = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"
        var connection = HTTP1Connection()
        connection.start(try request(upgrade: "x"))
        #expect(feed(&connection, text + "bytes") == (.upgraded, left: 5))
        #expect(!connection.isIdle && !connection.mustClose)
        #expect(feed(&connection, "more") == (.upgraded, left: 4))
        #expect(connection.endOfInput(isCut: false) == .upgraded)
        var unasked = HTTP1Connection()
        unasked.start(try request())
        guard case .failure(let error) = feed(&unasked, text).0 else { return #expect(Bool(false)) }
        #expect(error.kind == .malformedResponse && unasked.mustClose)
    }

    @Test(arguments: [
        ("websocket", true), ("WebSocket", true), (" websocket\t", true), ("x", false), ("websocket, x", false),
        ("", false), ("websocket,", false), ("websocket\r\nUpgrade: x", false), ("websocketx", false),
        ("websocket/13", false),
    ])
    func anUpgradeNamesTheProtocolThatWasAskedFor(value: String, isAccepted: Bool) throws {
        for name in ["Upgrade", "upgrade"] {
            var connection = HTTP1Connection()
            connection.start(try request(upgrade: "websocket"))
            let event = feed(&connection, "HTTP/1.1 101 S\r\nConnection: upgrade\r\n\(name):\(value)\r\n\r\n").0
            if isAccepted {
                #expect(event == .upgraded)
            } else if case .failure(let error) = event {
                #expect(error.kind == .malformedResponse && connection.mustClose)
            } else {
                Issue.record("\(event)")
            }
        }
        var connection = HTTP1Connection()
        connection.start(try request(upgrade: "websocket"))
        guard case .failure = feed(&connection, "HTTP/1.1 101 S\r\n\r\n").0 else { return #expect(Bool(false)) }
    }

    /// The fields of a response, the nanoseconds for which the connection may be idle, and whether it may be used at
    /// all.
    @Test(
        arguments: [
            ("", nil, true), ("Keep-Alive: timeout=5", 4_000_000_000, true),
            ("keep-alive:TimeOut = 5 ,x", 4_000_000_000, true),
            ("Keep-Alive: timeout=5\r\nKeep-Alive: timeout=3", 2_000_000_000, true),
            ("Keep-Alive: timeout=\"5\"", 4_000_000_000, true), ("Keep-Alive: timeout=\"\"", nil, true),
            ("Keep-Alive: timeout=\"5", nil, true),
            ("Keep-Alive: timeout=1", 0, false), ("Keep-Alive: timeout=0", 0, false),
            ("Keep-Alive: timeout=99999999999999999999999", .max, true), ("Keep-Alive: timeout=-5", nil, true),
            ("Keep-Alive: timeout=, max=", nil, true), ("Keep-Alive: timeout=5s, 300", nil, true),
            ("Keep-Alive: max=0", nil, false), ("Keep-Alive: max=1, timeout=2", 1_000_000_000, true),
            ("Connection: close\r\nKeep-Alive: timeout=5", 4_000_000_000, false),
        ] as [(String, UInt64?, Bool)])
    func thePromiseOfTheServerLimitsTheUseOfTheConnection(fields: String, time: UInt64?, isReusable: Bool) throws {
        var connection = HTTP1Connection()
        connection.start(try request())
        let lines = fields.isEmpty ? "" : fields + "\r\n"
        let end = feed(&connection, "HTTP/1.1 200 OK\r\n\(lines)Content-Length: 2\r\n\r\nok").0
        #expect(end == .end(isReusable: isReusable))
        #expect(connection.usableTime == time)
    }

    @Test func thePromisedRequestsAreCounted() throws {
        var connection = HTTP1Connection()
        connection.start(try request())
        let promise = "HTTP/1.1 200 OK\r\nKeep-Alive: max=2\r\nContent-Length: 2\r\n\r\nok"
        #expect(feed(&connection, promise).0 == .end(isReusable: true))
        connection.start(try request())
        #expect(feed(&connection, Self.ok).0 == .end(isReusable: true))
        connection.start(try request())
        #expect(feed(&connection, Self.ok).0 == .end(isReusable: false))
    }

    @Test func aTunnelHandsTheConnectionOver() throws {
        var connection = HTTP1Connection()
        connection.start(try request("CONNECT"))
        #expect(feed(&connection, "HTTP/1.1 200 OK\r\n\r\n").0 == .upgraded)
    }

    @Test func aMethodDeterminesTheBodyOfItsResponse() throws {
        var connection = try used()
        connection.start(try request("HEAD"))
        #expect(feed(&connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").0 == .end(isReusable: true))
        connection.start(try request())
        #expect(feed(&connection, Self.ok).0 == .end(isReusable: true))
    }

    @Test func aFailureClosesTheConnection() throws {
        var connection = HTTP1Connection()
        connection.start(try request("POST", hasBody: true))
        guard case .failure = feed(&connection, "garbage").0 else { return #expect(Bool(false)) }
        #expect(connection.mustClose && connection.sending == .stopped)
        var closed = HTTP1Connection()
        closed.start(try request())
        closed.close()
        #expect(closed.mustClose && feed(&closed, Self.ok).0 == .unsolicited)
    }
}
