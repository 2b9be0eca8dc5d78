#if os(Linux)
// MARK: The request

extension HTTP1Carrier {
    /// The number of bytes of a buffer that are kept for the framing of a chunk.
    private static let framingRoom = 32
    /// The maximum number of bytes that the system sends out of a file at once.
    private static let filePieceSize = 1 << 20

    func start(_ exchange: HTTPExchange) {
        if context.now >= usableUntil || mustLookBeforeUse(by: exchange) && stream.hasStrayInput() {
            // The server has announced that it closes the connection about now. Bytes that arrive before the request
            // can only belong to an answer that nobody asked for, and an end means that the request would be lost.
            // Nothing was sent, so the exchange goes to another connection. The system is asked each time: the loop can
            // have polled the socket before the bytes arrived, or serve other sockets first.
            closeIdle()
            return pool.returned(exchange)
        }
        self.exchange = exchange
        exchange.connection = self
        exchange.handler.didConnect(info)
        switch exchange.body {
        case .none: missingBody = 0
        case .length(let count): missingBody = count
        case .stream: missingBody = nil
        }
        // The head of a usual request is written into the memory that it is sent from.
        let usualCount = outputOffset == output.count ? writeUsualHead(of: exchange) : nil
        do {
            if usualCount == nil { try writeHead(of: exchange) }
        } catch {
            self.exchange = nil
            exchange.connection = nil
            pool.finished(self, isReusable: true)
            return exchange.handler.didEnd(error, isDeadConnection: false)
        }
        // A refused head leaves the connection as it was.
        if !info.isReused { info = info.reused() }
        let request = HTTP1Connection.Request(
            method: exchange.method, fields: exchange.fields, hasBody: missingBody != 0, limits: exchange.limits,
            upgrade: exchange.upgrade)
        let deadline = context.now.addingReportingOverflow(exchange.continueWait)
        connection.start(
            request, wasWaiting: !exchange.startsAtOpening,
            continueDeadline: deadline.overflow ? .max : deadline.partialValue)
        watchPath()
        isStarved = false
        hasMoreBody = connection.sending == .open
        if case .waits(let deadline) = connection.sending { scheduleContinueTimer(at: deadline) }
        guard let usualCount, isWriting else { return send() }
        _ = sendBuffer(usualCount)
        updateEvents()
    }

    /// Writes the head of a usual request to the start of the send buffer. Returns the number of bytes; nil for any
    /// other.
    private func writeUsualHead(of exchange: HTTPExchange) -> Int? {
        guard exchange.body == .none, !exchange.hasUpgrade else { return nil }
        return unsafe HTTP1RequestHead.writeUsual(
            method: exchange.method, target: exchange.url, from: exchange.pathStart,
            authority: exchange.destination.authority, isSendable: exchange.destination.hasSendableAuthority,
            exchange.fields, into: context.sendBuffer)
    }

    /// Appends the head of a request to the output.
    private func writeHead(of exchange: HTTPExchange) throws(EngineError) {
        let framing: HTTP1RequestHead.Framing =
            switch exchange.body {
            case .none: .none
            case .length(let count): .length(count)
            case .stream: .chunked
            }
        let head = HTTP1RequestHead(
            method: exchange.method, target: exchange.url, targetStart: exchange.pathStart,
            authority: exchange.destination.authority, framing: framing,
            dropsProxyAuthorization: !exchange.destination.isForwarded, upgrade: exchange.upgrade)
        try head.write(exchange.fields, into: &output)
    }

    /// Returns whether the exchange may only be sent while no byte waits. That does not hold for the first exchange of
    /// a connection that was opened for it, or after another new connection: a server that speaks first would cost one
    /// connection after the other, and its reason would never be read.
    private func mustLookBeforeUse(by exchange: HTTPExchange) -> Bool {
        connection.exchanges > 0 || !exchange.startsAtOpening && exchange.newConnectionsLost == 0
    }

    func bodyIsReady(_ exchange: HTTPExchange) {
        isStarved = false
        if connection.sending == .open { hasMoreBody = true }
        send()
    }

    /// Sends the waiting bytes, and as much of the body as the socket takes.
    func send() {
        guard isWriting else { return }
        var rounds = 0
        while rounds < Self.roundsPerEvent {
            rounds += 1
            guard let exchange else { break }
            let canRead = hasMoreBody && exchange.isSending && connection.sending == .open
            // Bytes that wait go together with the next piece of the body, in one call.
            guard canRead, output.count - outputOffset < LoopContext.receiveCapacity / 4 else {
                if outputOffset == output.count { break }
                if !sendOutput() { break }
                if !canRead { break }
                continue
            }
            if let goesOn = sendFilePiece(of: exchange) {
                if goesOn { continue } else { break }
            }
            guard sendPiece(of: exchange) else { break }
        }
        updateEvents()
    }

    /// Lets the system send the next bytes of a body with a stated length out of their file, which saves a copy.
    /// Returns whether more can be sent; nil if the bytes must be copied, because they are not in a file, or follow
    /// bytes that wait.
    private func sendFilePiece(of exchange: HTTPExchange) -> Bool? {
        guard outputOffset == output.count, stream.isPlain, let missing = missingBody else { return nil }
        // The end of the body is copied, because it ends the request.
        let limit = min(Self.filePieceSize, Int(clamping: missing - 1))
        guard limit > 0, let file = exchange.handler.fileOfBody(upTo: limit) else { return nil }
        switch stream.write(file) {
        case .bytes(0):
            // The file is shorter than before: reading it tells so.
            return nil
        case .bytes(let count):
            missingBody = missing - Int64(count)
            exchange.handler.didSendFile(count)
            exchange.handler.didSend(count)
            return true
        case .wouldBlock:
            return false
        case .failed(let error):
            writeFailure = error
            return false
        }
    }

    /// Sends the waiting bytes and one piece of the body. Returns whether more can be sent.
    private func sendPiece(of exchange: HTTPExchange) -> Bool {
        let buffer = unsafe context.sendBuffer
        var filled = output.count - outputOffset
        unsafe output.withUnsafeBytes { waiting in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: waiting[outputOffset...])
            unsafe buffer.copyMemory(from: rest)
        }
        output.removeAll(keepingCapacity: true)
        outputOffset = 0
        let isChunked = missingBody == nil
        let front = isChunked ? Self.framingRoom : 0
        var room = buffer.count - filled - 2 * Self.framingRoom
        if let missingBody { room = Int(min(Int64(room), missingBody)) }
        guard room > 0 else { return finishBody(filled) }
        let start = filled + front
        let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + room)])
        switch unsafe exchange.handler.readBody(into: piece) {
        case .bytes(let count):
            if isChunked {
                var frame: [UInt8] = []
                HTTP1ChunkFraming.appendSizeLine(of: count, to: &frame)
                copy(frame, to: filled)
                // The size line is shorter than its room: the bytes move up to it.
                let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[(filled + frame.count)...])
                unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece[..<count]))
                filled += frame.count + count
                copy(HTTP1ChunkFraming.dataEnd, to: filled)
                filled += 2
            } else {
                filled += count
                missingBody = (missingBody ?? 0) - Int64(count)
                if missingBody == 0 { return finishBody(filled) }
            }
            return sendBuffer(filled)
        case .wait:
            isStarved = true
            hasMoreBody = false
            _ = sendBuffer(filled)
            return false
        case .end:
            if let missingBody, missingBody > 0 {
                fail(EngineError(.invalidRequest, "the body of the request ended \(missingBody) bytes early"))
                return false
            }
            return finishBody(filled)
        case .failed:
            fail(EngineError(.cancelled, "the body of the request failed"))
            return false
        }
    }

    private func copy(_ bytes: [UInt8], to offset: Int) {
        for (index, byte) in bytes.enumerated() { unsafe context.sendBuffer[offset + index] = byte }
    }

    /// Sends the last bytes of the body, and the last chunk with the trailers (RFC 9112 §7.1).
    private func finishBody(_ count: Int) -> Bool {
        var filled = count
        var end: [UInt8] = []
        if missingBody == nil, let exchange {
            HTTP1ChunkFraming.appendEnd(trailerLines: exchange.handler.requestTrailers(), to: &end)
        }
        hasMoreBody = false
        connection.bodyEnded()
        if unsafe end.count <= context.sendBuffer.count - filled {
            copy(end, to: filled)
            filled += end.count
            _ = sendBuffer(filled)
        } else if sendBuffer(filled) || writeFailure == nil {
            output.append(contentsOf: end)
            _ = sendOutput()
        }
        return false
    }

    /// Sends the first bytes of the send buffer, and keeps those that the socket does not take. Returns whether it took
    /// all of them.
    private func sendBuffer(_ count: Int) -> Bool {
        if count == 0 { return true }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: context.sendBuffer[..<count])
        var sent = 0
        while sent < count {
            switch unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .bytes(let taken):
                sent += taken
                exchange?.handler.didSend(taken)
            case .wouldBlock:
                unsafe output.append(contentsOf: bytes[sent...])
                return false
            case .failed(let error):
                writeFailure = error
                return false
            }
        }
        return true
    }

    /// Sends the waiting bytes. Returns whether the socket took all of them.
    private func sendOutput() -> Bool {
        while outputOffset < output.count {
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count):
                outputOffset += count
                exchange?.handler.didSend(count)
            case .wouldBlock: return false
            case .failed(let error):
                writeFailure = error
                return false
            }
        }
        output.removeAll(keepingCapacity: output.capacity <= 64 << 10)
        outputOffset = 0
        return true
    }
}
#endif
