import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The connection of a socket: the Swift tasks that move its bytes, the frames of the server, the closing and the end.
extension WebSocket {
    func start() {
        // Owned here. It holds the socket only while it processes bytes, so that a socket can be released. The bytes
        // that follow are dropped then, until the end of the connection. Decompression does not run on the loop.
        let executor = isCompressed ? nil : stream.loopExecutor
        reader = Task(executorPreference: executor) { [weak self, stream] in
            while let chunks = await stream.chunks() {
                var room = await self?.receive(chunks)
                while let waiter = room {
                    await waiter.wait(onCancel: { waiter.resume() })
                    room = await self?.receiveRest()
                }
            }
            await self?.inputEnded()
            let end = await stream.outcome()
            if let self { return await connectionEnded(end.failure) }
            stream.finish(stream.error(FailureCause(.cancelled, "the socket was released without a close")))
        }
        stream.whenCancelled { [signal = inbox.signal] in signal.open() }
        startKeeper()
    }

    /// Sends Pings to a silent server.
    private func startKeeper() {
        guard let interval = options.pingInterval, interval > .zero else { return }
        liveness = PeerLiveness(interval: interval, timeout: options.pingTimeout, now: time.elapsed())
        let clock = stream.clock
        // Owned here, and ends with the connection. A look before the deadline finds bytes that have arrived meanwhile,
        // and waits for the rest of the time.
        keeper = Task { [weak self] in
            while !Task.isCancelled {
                guard let wait = await self?.checkLiveness() else { return }
                // An error means that the task is cancelled.
                guard (try? await clock.sleepWithoutDescriptor(for: wait)) != nil else { return }
            }
        }
    }

    /// Returns the time of the next check; nil at the end.
    private func checkLiveness() -> Duration? {
        guard !hasEnded, closing.isOpen else { return nil }
        let isPaused = stream.task.state == .suspended
        // A Ping is behind the messages that are not sent yet, and the bytes that the server takes show that it is
        // there.
        let sent = stream.byteCounts.sent
        let isTakingBytes = (sender != nil || !stream.pipe.isEmpty) && sent != sentAtCheck
        sentAtCheck = sent
        let isHeldUp = inbox.isHeldUp || isPaused || isTakingBytes
        switch liveness?.next(at: time.elapsed(), isHeldUp: isHeldUp) {
        case nil: return nil
        case .wait(let time): return time
        case .ping(let time):
            sendControl(.ping, [])
            return time
        case .dead:
            let reason = "the server was silent for \(options.pingTimeout) after a Ping"
            cut(FailureCause(.idleTimedOut, reason))
            return nil
        }
    }

    /// Ends the connection without a Close frame.
    private func cut(_ failure: FailureCause?) {
        ending = ending ?? failure
        isCut = true
        inbox.signal.open()
        stream.disconnect()
    }

    /// Processes bytes of the server. Returns a waiter if unread messages leave no room; `receiveRest()` follows then.
    private func receive(_ chunks: [Data]) -> Waiter<Void>? {
        liveness?.received(at: time.elapsed())
        inbox.add(chunks)
        return receiveRest()
    }

    private func receiveRest() -> Waiter<Void>? {
        while deferred == nil, closing.takesInput, !isCut, !stream.isCancelled {
            switch inbox.next() {
            case .event(let event): handle(event)
            case .needsInput: return nil
            case .isFull(let waiter): return waiter
            }
        }
        // Bytes after a Close frame have no meaning (RFC 6455 §5.5.1).
        inbox.dropInput()
        return nil
    }

    private func handle(_ event: MessageAssembler.Event) {
        switch event {
        case .message(let message):
            counts.receivedMessages += 1
            counts.receivedMessageBytes += Int64(message.byteCount)
            inbox.store(message)
        case .ping(let payload): sendControl(.pong, payload)
        case .pong(let payload):
            counts.receivedPongs += 1
            // A Pong answers all Pings up to its own (RFC 6455 §5.5.3).
            guard let index = pings.firstIndex(where: { $0.payload == payload }) else { return }
            let answered = pings[...index]
            pings.removeSubrange(...index)
            for ping in answered { ping.waiter.resume(returning: .answered) }
        case .close, .failure:
            deferred = event
            // A closing that this side has begun has its limit already.
            if inbox.isHandled || !closing.isOpen { performDeferred() } else { startCloseTimer(after: Self.answerTime) }
        }
    }

    /// The longest time for which the answer to a Close frame waits for the reader of the messages before it.
    private static let answerTime = Duration.seconds(1)

    func performDeferred() {
        switch deferred.take() {
        case .close(let code, let reason)?: perform(closing.receive(code, reason: reason))
        case .failure(let failure)?: perform(closing.fail(failure))
        default: return
        }
    }

    func perform(_ action: CloseHandshake.Action) {
        switch action {
        case .none: return
        case .sendAfterMessages(let payload):
            outbox.close(payload, over: stream.pipe, drops: false, ends: false)
            // Unread messages no longer stop the socket: the server's Close frame is behind them.
            inbox.signal.open()
        case .answer(let payload): outbox.close(payload, over: stream.pipe, drops: true, ends: false)
        case .fail(let payload): outbox.close(payload, over: stream.pipe, drops: true, ends: true)
        case .awaitEnd:
            // A stream over HTTP/2 is no TCP connection that the server had to end first (RFC 6455 §7.1.1, RFC 8441
            // §5).
            guard stream.isMultiplexed else { break }
            // This side's Close frame can still wait behind messages. A stream that is done is reset: servers such as
            // hypercorn end the whole connection when END_STREAM arrives on one that they have forgotten.
            let isDone = !outbox.isSending && stream.pipe.isEmpty
            if closing.failure == nil, !isDone { outbox.end(stream.pipe) } else { cut(nil) }
        }
        if outbox.isStarved { stream.pipeIsReady() }
        stateValue.update { $0 == .open ? .closing : nil }
        // The sender also waits until the Close frame has left.
        if action != .awaitEnd { startSender() }
        settle()
        // The limit of a closing that this side began goes on.
        if action == .awaitEnd, closeTimer != nil { return }
        startCloseTimer(after: options.closeTimeout)
    }

    /// Publishes the end and wakes the readers, once it is known.
    private func settle() {
        guard closing.isSettled, knownClosure.withLock({ $0 == nil }) else { return }
        knownClosure.withLock { $0 = closing.closure }
        inbox.wakeReaders()
    }

    /// Replaces the time limit of the closing. Until then, a socket that was released goes on with the closing
    /// handshake.
    private func startCloseTimer(after limit: Duration) {
        closeTimer?.cancel()
        let clock = stream.clock
        // Owned here, and cancelled at the end of the connection. It holds the socket, so that the Close frame leaves
        // and the end of the connection is awaited although nobody else holds it.
        closeTimer = Task {
            // An error means that the connection has ended in time.
            guard (try? await clock.sleepWithoutDescriptor(for: limit)) != nil else { return }
            closeTimeReached()
        }
    }

    private func closeTimeReached() {
        // After this side's Close frame, nothing is sent in answer any more.
        if deferred == nil || !closing.isOpen { cut(nil) } else { performDeferred() }
    }

    func sendControl(_ opcode: FrameOpcode, _ payload: [UInt8]) {
        guard closing.takesInput, !hasEnded else { return }
        if outbox.sendControl(opcode, payload, over: stream.pipe) { startSender() }
        if outbox.isStarved { stream.pipeIsReady() }
    }

    /// The next step of the sender.
    private enum SenderStep {
        case push(Data)
        /// Waits until the connection has taken all bytes, the Close frame among them.
        case drain
    }

    /// Sends the messages and frames that wait for room, and waits until the Close frame has left.
    func startSender() {
        guard sender == nil else { return }
        // Owned here, and ends when nothing waits. It holds the socket only while it takes the next frame.
        sender = Task { [weak self, stream] in
            while let step = await self?.nextSenderStep() {
                switch step {
                case .push(let frame):
                    let push = await stream.pipe.push(frame)
                    if push.isStarved { stream.pipeIsReady() }
                    guard push.accepted else {
                        await self?.senderFailed()
                        return
                    }
                case .drain:
                    guard await stream.pipe.drained() else {
                        await self?.senderFailed()
                        return
                    }
                    await self?.closeFrameLeft()
                }
            }
        }
    }

    private func nextSenderStep() -> SenderStep? {
        if let frame = outbox.nextFrame() { return .push(frame) }
        if outbox.endsPipe, stream.pipe.end() { stream.pipeIsReady() }
        if outbox.isCloseHandedOver, !closing.hasLeft { return .drain }
        sender = nil
        return nil
    }

    private func closeFrameLeft() {
        closing.closeFrameLeft()
        settle()
    }

    private func senderFailed() {
        sender = nil
        outbox.dropAll()
    }

    /// Handles the end of the server's direction. The accepted messages still leave, and an answer to its Close frame.
    private func inputEnded() {
        // The end of the whole connection follows at once.
        guard !hasEnded, !stream.hasEnded else { return }
        performDeferred()
        if closing.takesInput, !closing.hasClosed {
            ending = ending ?? FailureCause(.connectionLost, Self.noCloseFrame)
        }
        outbox.end(stream.pipe)
        if outbox.isStarved { stream.pipeIsReady() }
        // A server that does not read cannot hold the end up.
        if closeTimer == nil { startCloseTimer(after: options.closeTimeout) }
    }

    private static let noCloseFrame = "the server ended the connection without a Close frame"

    /// Handles the end of the connection.
    private func connectionEnded(_ failure: NetworkError?) {
        guard !hasEnded else { return }
        hasEnded = true
        keeper?.cancel()
        closeTimer?.cancel()
        switch deferred.take() {
        case .close(let code, let reason)?: _ = closing.receive(code, reason: reason)
        case .failure(let failure)?: _ = closing.fail(failure)
        default: break
        }
        if outbox.isCloseHandedOver, stream.pipe.isDrained { closing.closeFrameLeft() }
        let closure = closing.closure
        if stream.isCancelled, !closing.hasReceived {
            inbox.clear()
            endError = cancelled("the socket was cancelled")
        } else if let failure = closing.failure {
            endError = stream.error(FailureCause(Self.kind(failure), failure.reason))
        } else if closing.hasReceived || closing.hasClosed {
            endError = nil
        } else if let ending {
            endError = stream.error(ending)
        } else if let failure {
            endError = failure
        } else {
            endError = stream.error(FailureCause(.connectionLost, Self.noCloseFrame))
        }
        outbox.dropAll()
        stateValue.finish { _ in .closed(closure) }
        stream.finish(endError)
        for ping in pings { ping.waiter.resume(returning: .ended) }
        inbox.wakeReaders()
        for waiter in endWaiters.removeAll() { waiter.resume() }
    }
}
