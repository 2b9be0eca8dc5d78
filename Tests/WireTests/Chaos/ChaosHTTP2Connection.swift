#if os(Linux) && !TERN_URLSESSION
import Glibc
import Tern

/// A connection of the HTTP/2 server of the chaos tests, on a thread of its own. It keeps the rules of HTTP/2 as far as
/// the faults allow, and notes where the client does not keep them.
final class ChaosHTTP2Connection {
    /// The last stream of a GOAWAY.
    enum LastStream {
        /// A greater number than that of every stream: only an announcement.
        case announced
        /// The highest one, so that all requests are answered.
        case highest
        /// The highest one whose request the server has begun to process. The later ones are refused.
        case untouched
        /// The highest one, with an error.
        case failed
    }

    private let socket: ChaosSocket
    private let server: ChaosServer
    private let output: ChaosHTTP2Output
    private let decoder = ChaosFieldDecoder()
    private var random: ChaosRandom
    private var streams: [Int32: ChaosHTTP2Stream] = [:]
    private var highest: Int32 = 0
    private var lastStream: Int32?
    private var ending: ChaosHTTP2Output.End?

    // Input
    private var input: [UInt8] = []
    private var limits = ChaosHTTP2Limits()
    private var receiveWindow = 65_535
    private var heldWindow = 0
    private var isHolding = false

    // Output
    private var sendWindow = 65_535
    private var clientWindow = 65_535

    // Time
    private var holdingEnds: ContinuousClock.Instant?
    private var limitEnds: ContinuousClock.Instant?
    private var stallEnds: ContinuousClock.Instant?

    init(_ socket: ChaosSocket, server: ChaosServer) {
        self.socket = socket
        self.server = server
        random = ChaosRandom(seed: server.seed, socket.index, 2 << 20)
        output = ChaosHTTP2Output(
            socket, ledger: server.ledger, pieceSize: random.chance(30) ? 50 + random.next(below: 3_000) : .max,
            smallPieceSize: random.chance(30) ? 1 + random.next(below: 20) : .max)
    }

    /// Serves requests until the connection ends.
    func serve() {
        do {
            try begin()
            while ending == nil || !output.isEmpty {
                try receive()
                try advance()
                if stallEnds == nil { try output.flush() }
                if ending == nil || !output.isEmpty { try wait() }
            }
            try output.finish(ending, after: highest, &random)
        } catch {
            // The client has closed the connection.
        }
        socket.finish()
    }

    private func begin() throws {
        while input.count < 24 { guard try socket.receive(into: &input) else { throw ChaosSocket.Lost() } }
        if Array(input.prefix(24)) != Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) { defect("sent no preface") }
        input.removeFirst(24)
        switch random.next(below: 50) {
        case 0: ending = .close
        case 1:
            output.append(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8))
            ending = .garbageFrame
        case 2...10: try socket.pause(for: .milliseconds(random.next(below: 8)))
        default: break
        }
        announce(
            window: [nil, 1 << 20, 20_000][random.next(below: 3)], streams: [100, 8, 128, 30][random.next(below: 4)])
        if random.chance(50) { returnWindow(1 << 20, to: 0) }
    }

    private func defect(_ text: String) { server.ledger.defect("connection \(socket.index): the client \(text)") }

    // MARK: Time

    private func wait() throws {
        let now = ContinuousClock.now
        let moments = streams.values.map(\.wake) + [holdingEnds, limitEnds]
        let next = stallEnds ?? moments.compactMap { $0 }.min()
        let time = next.map { max(0, Int(($0 - now) / .milliseconds(1)) + 1) } ?? 30_000
        var events = stallEnds == nil ? Int32(POLLIN) : 0
        if !output.isEmpty, stallEnds == nil { events |= Int32(POLLOUT) }
        let found = try socket.wait(for: events, milliseconds: time)
        if stallEnds != nil, found != 0 { throw ChaosSocket.Lost() }
        if next == nil, found == 0, !streams.isEmpty {
            defect("was silent for 30 seconds with \(streams.count) streams")
            throw ChaosSocket.Lost()
        }
    }

    private func advance() throws {
        let now = ContinuousClock.now
        if let stallEnds {
            if now < stallEnds { return }
            self.stallEnds = nil
        }
        if let holdingEnds, now >= holdingEnds { releaseWindows() }
        if let limitEnds, now >= limitEnds {
            self.limitEnds = nil
            announce(streams: 100)
        }
        for id in streams.keys.sorted() {
            guard let stream = streams[id] else { continue }
            try advance(stream, at: now)
            if ending != nil || stallEnds != nil { return }
        }
        // After GOAWAY, the last response ends the connection.
        if lastStream != nil, streams.isEmpty { ending = .close }
    }

    private func advance(_ stream: ChaosHTTP2Stream, at now: ContinuousClock.Instant) throws {
        while streams[stream.id] != nil, ending == nil, stallEnds == nil, let step = stream.steps.last {
            if let wake = stream.wake {
                if now < wake { return }
                stream.wake = nil
            }
            switch step {
            case .pause(let time): stream.wake = now + time
            case .awaitRequest:
                guard stream.hasWholeRequest else { return }
                process(stream)
            case .frames(let frames):
                stream.isTouched = true
                for frame in frames { queue(frame) }
            case .data(let bytes, let piece, let padding, let isLast):
                let rest = sendData(bytes, piece: piece, padding: padding, isLast: isLast, of: stream)
                if let rest {
                    stream.steps[stream.steps.count - 1] = .data(rest, piece: piece, padding: padding, isLast: isLast)
                    return
                }
            case .sent: output.noteEnd(of: stream.answer)
            case .stall: return
            case .act(let action): perform(action, stream)
            }
            if !stream.steps.isEmpty { stream.steps.removeLast() }
        }
        if !stream.isOpen, stream.steps.isEmpty { streams[stream.id] = nil }
    }

    private func process(_ stream: ChaosHTTP2Stream) {
        stream.isTouched = true
        if let length = stream.statedLength, length != stream.body.count {
            defect("stated \(length) bytes and sent \(stream.body.count)")
        }
        guard ["POST", "PUT"].contains(stream.method) else { return }
        if stream.body != ChaosBody.request(stream.number) { defect("sent a wrong body of request \(stream.number)") }
        server.ledger.noteProcessed(stream.number)
    }

    private func perform(_ action: ChaosHTTP2Stream.Action, _ stream: ChaosHTTP2Stream) {
        switch action {
        case .reset(let code):
            // A request that has ended meanwhile needs no reset after the whole response.
            if stream.isOpen { queue(.reset(stream.id, code)) }
            streams[stream.id] = nil
        case .refuse:
            queue(.reset(stream.id, ChaosFrame.refusedStream))
            refuse(stream)
        case .goAway(let last): goAway(last)
        case .holdWindows(let time):
            if isHolding { return }
            isHolding = true
            holdingEnds = .now + time
            announce(window: 0)
        case .limitStreams(let count, let time):
            if limitEnds != nil { return }
            limitEnds = .now + time
            announce(streams: count)
        case .stallConnection(let time): stallEnds = .now + time
        case .updateKeys: socket.updateKeys()
        case .end(let end): ending = end
        }
    }

    private func refuse(_ stream: ChaosHTTP2Stream) {
        server.ledger.noteRefused(stream.answer)
        streams[stream.id] = nil
    }

    private func goAway(_ last: LastStream) {
        switch last {
        // The last stream of a later GOAWAY must not be higher (RFC 9113 §6.8).
        case .announced: return lastStream == nil ? queue(.goAway(last: .max, ChaosFrame.noError)) : ()
        case .failed:
            let last = min(lastStream ?? .max, highest)
            lastStream = last
            return queue(.goAway(last: last, ChaosFrame.internalError))
        case .highest: lastStream = lastStream ?? highest
        case .untouched:
            // Streams that are gone have been answered.
            let untouched = streams.values.filter { !$0.isTouched }.map(\.id)
            var first = highest + 2
            while untouched.contains(first - 2) { first -= 2 }
            lastStream = min(lastStream ?? .max, max(0, first - 2))
        }
        guard let last = lastStream else { return }
        queue(.goAway(last: last, ChaosFrame.noError))
        for stream in streams.values where stream.id > last { refuse(stream) }
    }

    // MARK: Output

    private func queue(_ frame: ChaosFrame) {
        if frame.endsStream, frame.kind == .headers || frame.kind == .data { streams[frame.stream]?.hasEnded = true }
        if frame.kind == .window {
            if frame.stream == 0 { receiveWindow += frame.lastNumber }
            streams[frame.stream]?.receiveWindow += frame.lastNumber
        }
        output.append(frame.bytes)
    }

    /// Sends DATA as the windows allow. Returns the rest; nil if nothing is left.
    private func sendData(
        _ bytes: ArraySlice<UInt8>, piece: Int, padding: Int?, isLast: Bool, of stream: ChaosHTTP2Stream
    ) -> ArraySlice<UInt8>? {
        stream.isTouched = true
        var rest = bytes
        let overhead = padding.map { $0 + 1 } ?? 0
        repeat {
            let room = min(sendWindow, stream.sendWindow, 16_384) - overhead
            if room <= 0, !rest.isEmpty { return rest }
            // An empty frame without padding needs no window.
            let part = rest.prefix(min(max(room, 0), piece))
            let used = part.isEmpty ? nil : padding
            rest = rest.dropFirst(part.count)
            queue(.data(stream.id, part, padding: used, isLast: isLast && rest.isEmpty))
            let count = part.count + (used.map { $0 + 1 } ?? 0)
            sendWindow -= count
            stream.sendWindow -= count
        } while !rest.isEmpty
        return nil
    }

    // MARK: Settings and windows

    private func announce(window: Int? = nil, streams count: Int? = nil) {
        let growth = limits.announce(window: window, streams: count)
        for stream in streams.values { stream.receiveWindow += growth }
        var entries: [(ChaosFrame.Setting, Int)] = []
        if let window { entries.append((.initialWindow, window)) }
        if let count { entries.append((.maximumStreams, count)) }
        queue(.settings(entries))
    }

    private func returnWindow(_ count: Int, to stream: Int32) {
        if count > 0 { queue(.window(stream, count)) }
    }

    private func releaseWindows() {
        (holdingEnds, isHolding) = (nil, false)
        announce(window: 65_535)
        returnWindow(heldWindow, to: 0)
        heldWindow = 0
        for stream in streams.values {
            if !stream.hasWholeRequest { returnWindow(stream.heldWindow, to: stream.id) }
            stream.heldWindow = 0
        }
    }

    // MARK: Input

    private func receive() throws {
        if stallEnds != nil || ending != nil { return }
        while let count = try socket.receiveAvailable(into: &input) {
            while let frame = ChaosFrame(from: &input) { try receive(frame) }
            if count == 0 { return }
        }
        throw ChaosSocket.Lost()
    }

    private func receive(_ frame: ChaosFrame) throws {
        switch frame.kind {
        case .headers: receiveHeaders(frame)
        case .data: receiveData(frame)
        case .reset: streams[frame.stream] = nil
        case .settings where frame.isAnswer:
            guard let shrinkage = limits.acknowledge() else { return defect("answered SETTINGS that were not sent") }
            for stream in streams.values { stream.receiveWindow -= shrinkage }
        case .settings:
            for (setting, value) in frame.entries where setting == .initialWindow {
                for stream in streams.values { stream.sendWindow += value - clientWindow }
                clientWindow = value
            }
            queue(.settingsAnswer)
        case .ping where !frame.isAnswer: queue(ChaosFrame(.ping, flags: 1, frame.payload))
        case .window:
            if frame.stream == 0 { sendWindow += frame.lastNumber }
            streams[frame.stream]?.sendWindow += frame.lastNumber
        case .push, .continuation: defect("sent a frame of type \(frame.type)")
        default: break
        }
    }

    private func receiveHeaders(_ frame: ChaosFrame) {
        // The requests of these tests fit into one frame.
        guard frame.endsHeaders, let fields = decoder.fields(of: Array(frame.content)) else {
            return defect("sent a header block that is not valid")
        }
        if let stream = streams[frame.stream] {
            stream.hasWholeRequest = true
            return
        }
        guard frame.stream % 2 == 1, frame.stream > highest else {
            return defect("used stream \(frame.stream) after \(highest)")
        }
        highest = frame.stream
        let count = streams.values.count { $0.isOpen } + 1
        if count > limits.maximumStreams { defect("opened \(count) of \(limits.maximumStreams) streams") }
        guard let number = fields[":path"].flatMap({ Int($0.dropFirst()) }), let method = fields[":method"] else {
            return queue(.reset(frame.stream, ChaosFrame.internalError))
        }
        var random = ChaosRandom(seed: server.seed, number, 16 + server.ledger.receivedCount(of: number))
        let isLate = lastStream.map { frame.stream > $0 } ?? false
        let fault = isLate ? .refused : ChaosHTTP2Fault.draw(&random)
        let answer = ChaosLedger.Answer(fault, isHead: method == "HEAD")
        let id = server.ledger.noteReceived(number, method: method, answer: answer)
        // GOAWAY has said already that this stream is not processed.
        if isLate { return server.ledger.noteRefused(id) }
        let stream = ChaosHTTP2Stream(
            id: frame.stream, answer: id, fields: fields, isWhole: frame.endsStream,
            windows: (clientWindow, limits.initialWindow))
        streams[frame.stream] = stream
        var steps = ChaosHTTP2Answer(stream: frame.stream, number: number, isHead: method == "HEAD", random: random)
        stream.steps = steps.steps(for: fault).reversed()
    }

    private func receiveData(_ frame: ChaosFrame) {
        let count = frame.payload.count
        receiveWindow -= count
        if receiveWindow < 0 { defect("exceeded the window of the connection") }
        if isHolding { heldWindow += count } else { returnWindow(count, to: 0) }
        // A stream that was reset.
        guard let stream = streams[frame.stream] else { return }
        stream.receiveWindow -= count
        if count > 0, stream.receiveWindow < 0 { defect("exceeded the window of stream \(stream.id)") }
        if stream.hasWholeRequest { defect("sent DATA after the end of stream \(stream.id)") }
        stream.body += frame.content
        if frame.endsStream {
            stream.hasWholeRequest = true
        } else if isHolding {
            stream.heldWindow += count
        } else {
            returnWindow(count, to: stream.id)
        }
    }
}
#endif
