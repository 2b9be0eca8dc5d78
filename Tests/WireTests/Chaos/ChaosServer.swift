#if os(Linux) && !TERN_URLSESSION
import TernTesting

/// Answers requests for `/NUMBER`, and breaks many of the answers as the seed says.
struct ChaosServer: Sendable {
    let seed: UInt64
    let ledger: ChaosLedger

    func answer(_ exchange: some ChaosExchange) throws {
        guard let number = Int(exchange.path.dropFirst()) else { return exchange.close() }
        var random = ChaosRandom(seed: seed, number, 16 + ledger.receivedCount(of: number))
        let fault = ChaosFault.draw(&random, isSecure: exchange.socket != nil)
        let answer = ChaosLedger.Answer(fault, isHead: exchange.method == "HEAD")
        let id = ledger.noteReceived(number, method: exchange.method, answer: answer)
        var respondent = ChaosAnswer(exchange: exchange, number: number, id: id, ledger: ledger, random: random)
        try respondent.perform(fault)
    }

    /// Serves a connection of TLS, whose handshake fails now and then.
    func serve(_ socket: ChaosSocket, _ serve: () -> Void) {
        var random = ChaosRandom(seed: seed, socket.index, 1 << 20)
        switch random.next(below: 100) {
        case 0: return socket.finish()
        case 1: return socket.reset()
        case 2:
            socket.sendGarbage(&random)
            return socket.finish()
        case 3:
            socket.beginHandshake(limit: random.next(below: 1_000))
            return socket.finish()
        default: break
        }
        // `try?`: the client gives a connection up whose handshake it has no request for any more.
        guard (try? socket.handshake()) != nil else { return socket.finish() }
        serve()
    }
}

/// One answer of the server.
private struct ChaosAnswer<Exchange: ChaosExchange> {
    let exchange: Exchange
    let number: Int
    let id: ChaosLedger.AnswerID
    let ledger: ChaosLedger
    var random: ChaosRandom

    private var isHead: Bool { exchange.method == "HEAD" }
    private var body: [UInt8] { ChaosBody.response(to: number) }

    mutating func perform(_ fault: ChaosFault) throws {
        switch fault {
        case .earlyResponse:
            try write(head(200, length: body.count) + payload)
            ledger.noteSent(id)
            return try readBody()
        case .earlyRefusal:
            try write(head(413, ["Connection: close"], length: body.count) + payload)
            return exchange.close()
        case .closeBeforeHead, .resetBeforeHead, .stallBeforeHead:
            if random.chance(60) { try readBody() }
        default: try readBody()
        }
        try respond(fault)
    }

    private mutating func respond(_ fault: ChaosFault) throws {
        switch fault {
        case .closeBeforeHead: exchange.close()
        case .resetBeforeHead: exchange.reset()
        case .stallBeforeHead: try exchange.waitForClientToClose()
        case .closeInHead, .resetInHead, .badHead, .twoLengths: try respondWithPartOfHead(fault)
        case .closeInBody, .resetInBody, .stallInBody, .closeInChunk, .missingLastChunk, .resetUntilClose, .badChunk,
            .untilBareClose, .bareCloseInBody, .cutRecord, .resetInRecord, .garbageInBody:
            try respondWithPartOfBody(fault)
        default:
            try respondInFull(fault)
            ledger.noteSent(id)
            try follow(fault)
        }
    }

    private mutating func respondInFull(_ fault: ChaosFault) throws {
        switch fault {
        case .chunked: try writeInPieces(head(200, ["Transfer-Encoding: chunked"]) + chunks())
        case .untilClose:
            try writeInPieces(head(200) + payload)
            exchange.close()
        case .noContent: try write(head(204))
        case .keyUpdate:
            let response = head(200, length: body.count) + payload
            try write(response.prefix(response.count / 2))
            exchange.socket?.updateKeys()
            try write(response.dropFirst(response.count / 2))
            exchange.socket?.updateKeys()
        case .notModified: try write(head(304, length: body.count))
        case .announcedClose:
            try writeInPieces(head(200, ["Connection: close"], length: body.count) + payload)
            exchange.close()
        case .trickle:
            for byte in head(200, length: body.count) { try write([byte]) }
            let start = payload.prefix(64)
            for byte in start { try write([byte]) }
            try write(payload.dropFirst(64))
        case .interims:
            for index in 0..<(1 + random.next(below: 20)) {
                let code = index % 3 == 0 ? 100 : 103
                try write(Array("HTTP/1.1 \(code) Later\r\nLink: </\(index)>\r\n\r\n".utf8))
            }
            try writeInPieces(head(200, length: body.count) + payload)
        case .extraBytes: try write(head(200, length: body.count) + payload + Array("extra".utf8))
        case .secondResponse:
            try write(head(200, length: body.count) + payload + Array(head(200, length: 5)) + Array("wrong".utf8))
        case .serverError: try writeInPieces(head(500 + random.next(below: 5), length: body.count) + payload)
        default: try writeInPieces(head(200, length: body.count) + payload)
        }
    }

    /// Goes on after a whole response.
    private mutating func follow(_ fault: ChaosFault) throws {
        switch fault {
        case .silentClose: exchange.close()
        case .bareClose: exchange.socket?.endWriting(isBare: true)
        case .lateGarbage:
            if random.chance(50) { try waitShortly() }
            exchange.socket?.sendGarbage(&random)
            try exchange.waitForClientToClose()
        case .halfClose:
            exchange.close()
            try exchange.waitForClientToClose()
        case .extraBytes, .secondResponse: try exchange.waitForClientToClose()
        case .lateTimeout:
            try waitShortly()
            let head = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            try write(Array(head.utf8))
            exchange.close()
        case .lateBytes:
            try waitShortly()
            try write(Array("late".utf8))
            try exchange.waitForClientToClose()
        case .lateReset:
            try waitShortly()
            exchange.reset()
        default: break
        }
    }

    private mutating func waitShortly() throws {
        try exchange.waitUntilReceived()
        try exchange.pause(for: .microseconds(random.next(below: 3_000)))
    }

    private mutating func respondWithPartOfHead(_ fault: ChaosFault) throws {
        switch fault {
        case .badHead: try write(Array("HTTP/1.1 2O0 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
        case .twoLengths: try write(head(200, ["Content-Length: 3"], length: 4) + Array("body".utf8))
        default:
            let head = head(200, length: body.count)
            try write(head.prefix(1 + random.next(below: head.count - 2)))
        }
        if fault == .resetInHead { exchange.reset() } else { exchange.close() }
    }

    private mutating func respondWithPartOfBody(_ fault: ChaosFault) throws {
        // An empty body has no part to cut off: the announced length is greater than that of the body.
        let part = payload.prefix(random.next(below: body.count + 1))
        switch fault {
        // The end of the body is that of the connection, which another could have cut off.
        case .untilBareClose: try writeInPieces(head(200) + payload)
        case .closeInBody, .resetInBody, .stallInBody, .bareCloseInBody, .cutRecord, .resetInRecord, .garbageInBody:
            try writeInPieces(head(200, length: body.count + 1) + part)
        case .resetUntilClose: try writeInPieces(head(200) + part)
        default:
            var bytes = head(200, ["Transfer-Encoding: chunked"])
            if !isHead {
                if !part.isEmpty { bytes += Array("\(String(part.count, radix: 16))\r\n".utf8) + part + [13, 10] }
                // The size of a chunk that is cut off after the next bytes of the body.
                if fault == .closeInChunk {
                    bytes += Array("\(String(body.count + 1, radix: 16))\r\n".utf8)
                    bytes += body.dropFirst(part.count).prefix(100)
                }
                if fault == .badChunk { bytes += Array("2x\r\nab\r\n0\r\n\r\n".utf8) }
            }
            try writeInPieces(bytes)
        }
        switch fault {
        case .resetInBody, .resetUntilClose:
            // A reset discards bytes that are on their way.
            if random.chance(50) { try exchange.waitUntilReceived() }
            exchange.reset()
        // The response to HEAD is whole: the client keeps the connection, and the next request must be read.
        case .stallInBody: if !isHead { try exchange.waitForClientToClose() }
        case .untilBareClose, .bareCloseInBody: exchange.socket?.endWriting(isBare: true)
        case .cutRecord, .resetInRecord:
            let rest = Array(body.dropFirst(part.count)) + [0]
            try exchange.socket?.sendPartOfRecord(of: rest, count: random.next(below: rest.count + 5))
            if random.chance(50) { try waitShortly() }
            if fault == .cutRecord { exchange.socket?.endWriting(isBare: true) } else { exchange.reset() }
        case .garbageInBody:
            exchange.socket?.sendGarbage(&random)
            try exchange.waitForClientToClose()
        default: exchange.close()
        }
    }

    // MARK: Bytes

    private var payload: [UInt8] { isHead ? [] : body }

    private func head(_ status: Int, _ fields: [String] = [], length: Int? = nil) -> [UInt8] {
        var lines = ["HTTP/1.1 \(status) Chaos", "Number: \(number)"] + fields
        if let length { lines.append("Content-Length: \(length)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private mutating func chunks() -> [UInt8] {
        if isHead { return [] }
        var bytes: [UInt8] = []
        var rest = body[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(1 + random.next(below: random.chance(50) ? 100_000 : 3_000))
            rest = rest.dropFirst(chunk.count)
            bytes += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
        }
        return bytes + Array((random.chance(30) ? "0\r\nChecked: yes\r\n\r\n" : "0\r\n\r\n").utf8)
    }

    private func write(_ bytes: some Collection<UInt8>) throws { try exchange.write(bytes) }

    /// Writes bytes in up to four pieces at any place.
    private mutating func writeInPieces(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        for _ in 0..<random.next(below: 4) {
            let piece = rest.prefix(random.next(below: rest.count + 1))
            rest = rest.dropFirst(piece.count)
            if piece.isEmpty { continue }
            try write(piece)
            if random.chance(20) { try exchange.waitUntilReceived() }
        }
        if !rest.isEmpty { try write(rest) }
    }

    /// Reads the body of the request and compares it.
    private func readBody() throws {
        let body = try exchange.wholeBody()
        guard ["POST", "PUT"].contains(exchange.method) else { return }
        if body != ChaosBody.request(number) { ledger.defect("request \(number) arrived with a wrong body") }
        ledger.noteProcessed(number)
    }
}
#endif
