#if os(Linux) && !TERN_URLSESSION
/// One request to the HTTP/2 server of the chaos tests, and the steps that are left of its answer.
final class ChaosHTTP2Stream {
    enum Step {
        case pause(Duration)
        /// Waits for the end of the request, and processes it.
        case awaitRequest
        case frames([ChaosFrame])
        /// Sends DATA as the windows allow.
        case data(ArraySlice<UInt8>, piece: Int = 16_384, padding: Int? = nil, isLast: Bool)
        /// Notes that the whole response was sent.
        case sent
        case act(Action)
        case stall
    }

    enum Action {
        case reset(UInt32)
        /// States that this request was not processed.
        case refuse
        case goAway(ChaosHTTP2Connection.LastStream)
        /// Closes the windows of all streams for a time.
        case holdWindows(Duration)
        case limitStreams(Int, Duration)
        /// Stops the connection in both directions for a time.
        case stallConnection(Duration)
        case updateKeys
        case end(ChaosHTTP2Output.End)
    }

    let id: Int32
    let number: Int
    let answer: ChaosLedger.AnswerID
    let method: String
    /// The length that the request states.
    let statedLength: Int?
    var body: [UInt8] = []
    var hasWholeRequest: Bool
    /// Whether END_STREAM was sent.
    var hasEnded = false
    /// Whether the server has begun to process the request.
    var isTouched = false
    var sendWindow: Int
    var receiveWindow: Int
    /// The bytes of the body that the server has not returned to the window yet.
    var heldWindow = 0
    /// The steps in reverse order.
    var steps: [Step] = []
    var wake: ContinuousClock.Instant?

    init(
        id: Int32, answer: ChaosLedger.AnswerID, fields: [String: String], isWhole: Bool,
        windows: (send: Int, receive: Int)
    ) {
        self.id = id
        number = answer.number
        self.answer = answer
        method = fields[":method"] ?? ""
        statedLength = fields["content-length"].flatMap { Int($0) }
        hasWholeRequest = isWhole
        (sendWindow, receiveWindow) = windows
    }

    /// Whether the stream counts for the limit of streams.
    var isOpen: Bool { !hasEnded || !hasWholeRequest }
}

/// Makes the steps of an answer.
struct ChaosHTTP2Answer {
    typealias Step = ChaosHTTP2Stream.Step

    let stream: Int32
    let number: Int
    let isHead: Bool
    let body: [UInt8]
    var random: ChaosRandom

    init(stream: Int32, number: Int, isHead: Bool, random: ChaosRandom) {
        (self.stream, self.number, self.isHead, self.random) = (stream, number, isHead, random)
        body = ChaosBody.response(to: number)
    }

    mutating func steps(for fault: ChaosHTTP2Fault) -> [Step] {
        var start: [Step] = random.chance(50) ? [.pause(.microseconds(random.next(below: 2_000)))] : []
        let moment = Duration.milliseconds(5 + random.next(below: 60))
        switch fault {
        case .refusedEarly: return [.act(.refuse)]
        case .refused: return [.pause(.microseconds(random.next(below: 3_000))), .act(.refuse)]
        case .earlyGoAway:
            start = [.pause(.microseconds(random.next(below: 3_000))), .act(.goAway(.untouched)), .awaitRequest]
        case .earlyResponse, .earlyRefusal: break
        case .noWindow: start += [.act(.holdWindows(moment)), .awaitRequest]
        case .fewStreams: start += [.act(.limitStreams(random.next(below: 3), moment)), .awaitRequest]
        case .gracefulGoAway:
            let isAnnounced = random.chance(50)
            if isAnnounced { start += [.act(.goAway(.announced)), .pause(.milliseconds(random.next(below: 5)))] }
            start += [.act(.goAway(.highest)), .awaitRequest]
        case .closeBeforeHead, .resetConnection, .garbageRecord, .garbageFrame, .cancelBeforeHead, .errorBeforeHead,
            .errorGoAway, .bareClose, .stallBeforeHead:
            if random.chance(60) { start.append(.awaitRequest) }
        default: start.append(.awaitRequest)
        }
        return start + response(fault, moment)
    }

    private mutating func response(_ fault: ChaosHTTP2Fault, _ moment: Duration) -> [Step] {
        switch fault {
        case .cancelBeforeHead: [.act(.reset(ChaosFrame.cancel))]
        case .errorBeforeHead: [.act(.reset(ChaosFrame.internalError))]
        case .cancelInBody: part() + [.act(.reset(ChaosFrame.cancel))]
        case .errorInBody: part() + [.act(.reset(ChaosFrame.internalError))]
        case .refusedInBody: part() + [.act(.reset(ChaosFrame.refusedStream))]
        case .noErrorInBody: part() + [.act(.reset(ChaosFrame.noError))]
        case .stallBeforeHead: [.stall]
        case .stallInBody: part() + [.stall]
        case .closeBeforeHead: [.act(.end(.close))]
        case .resetConnection: (random.chance(50) ? part() : []) + [.act(.end(.reset))]
        case .closeInBody: part() + [.act(.end(.close))]
        case .bareClose: (random.chance(50) ? part() : []) + [.act(.end(.bareClose))]
        case .cutFrame: part() + [.act(.end(.cutFrame))]
        case .cutRecord: part() + [.act(.end(.cutRecord))]
        case .resetInRecord: part() + [.act(.end(.resetInRecord))]
        case .garbageRecord: [.act(.end(.garbage))]
        case .garbageFrame: [.act(.end(.garbageFrame))]
        case .errorGoAway: [.act(.goAway(.failed)), .act(.end(.close))]
        case .badHead: [.frames([badHead()])]
        case .shortBody:
            [.frames([head(200, length: body.count + 1, isLast: isHead)])] + (isHead ? [] : [data(isLast: true)])
        case .longBody:
            [.frames([head(200, length: body.count)]), .data((isHead ? [] : body) + [0], isLast: true)]
        default: whole(fault, moment)
        }
    }

    /// Returns a whole response, and what follows it.
    private mutating func whole(_ fault: ChaosHTTP2Fault, _ moment: Duration) -> [Step] {
        switch fault {
        case .serverError: return full(head(500 + random.next(below: 5), length: body.count, isLast: isHead))
        case .earlyRefusal: return full(head(413, length: body.count, isLast: isHead)) + early()
        case .earlyResponse: return full() + early()
        case .noContent: return [.frames([head(204, isLast: true)]), .sent]
        case .noLength: return full(head(200, isLast: isHead))
        case .interims:
            let interims = (0...random.next(below: 20)).map { index in
                ChaosFrame.headers(stream, [(":status", "103"), ("link", "</\(index)>")], isLast: false)
            }
            return [.frames(interims)] + full()
        case .strangeFrames: return [.frames(strangeFrames())] + full()
        case .resetAfterEnd:
            let code = random.chance(50) ? ChaosFrame.noError : ChaosFrame.cancel
            return full() + [.frames([.window(stream, 10), .reset(stream, code)])]
        case .closeAfterEnd: return full() + [.act(.end(.close))]
        case .bareCloseAfterEnd: return full() + [.act(.end(.bareClose))]
        case .lateGarbage: return full() + [.act(.end(.garbage))]
        case .lateData: return full() + [.frames([.data(stream, [1, 2, 3], isLast: false)]), .act(.end(.close))]
        default: break
        }
        if isHead { return full() }
        let middle = random.next(below: body.count + 1)
        let (first, second) = (body[..<middle], body[middle...])
        let start = Step.frames([head(200, length: body.count)])
        switch fault {
        case .emptyEnd: return [start, data(isLast: false), .data([], isLast: true), .sent]
        case .trailers:
            let trailers = ChaosFrame.headers(stream, [("checked", "yes")], isLast: true)
            return [start, data(isLast: false), .frames([trailers]), .sent]
        case .padded:
            return [start, .data(body[...], piece: 3_000, padding: random.next(below: 256), isLast: true), .sent]
        case .trickle:
            return [
                start, .data(body.prefix(64), piece: 1, isLast: false), .data(body.dropFirst(64), isLast: true), .sent,
            ]
        case .continuation: return [.frames(splitHead()), data(isLast: true), .sent]
        case .stall: return [start, .data(first, isLast: false), .pause(moment), .data(second, isLast: true), .sent]
        case .stallConnection:
            let time = Duration.milliseconds(20 + random.next(below: 500))
            return [
                start, .data(first, isLast: false), .act(.stallConnection(time)), .data(second, isLast: true), .sent,
            ]
        case .keyUpdate:
            return [start, .data(first, isLast: false), .act(.updateKeys), .data(second, isLast: true), .sent]
        default: return [start, data(isLast: true), .sent]
        }
    }

    private mutating func early() -> [Step] {
        random.chance(50) ? [.act(.reset(ChaosFrame.noError))] : [.awaitRequest]
    }

    private func full(_ head: ChaosFrame? = nil) -> [Step] {
        let start = Step.frames([head ?? self.head(200, length: body.count, isLast: isHead)])
        return isHead ? [start, .sent] : [start, data(isLast: true), .sent]
    }

    /// Returns the head and a part of the body.
    private mutating func part() -> [Step] {
        let part = isHead ? [] : body.prefix(random.next(below: body.count + 1))
        return [.frames([head(200, length: body.count + 1)])] + (part.isEmpty ? [] : [.data(part, isLast: false)])
    }

    private func data(isLast: Bool) -> Step { .data(body[...], isLast: isLast) }

    private func head(_ status: Int, length: Int? = nil, isLast: Bool = false) -> ChaosFrame {
        var fields = [(":status", "\(status)"), ("number", "\(number)")]
        if let length { fields.append(("content-length", "\(length)")) }
        return .headers(stream, fields, isLast: isLast)
    }

    private mutating func splitHead() -> [ChaosFrame] {
        let whole = head(200, length: body.count)
        var rest = whole.payload[...]
        var frames: [ChaosFrame] = []
        while !rest.isEmpty || frames.isEmpty {
            let piece = rest.prefix(1 + random.next(below: 12))
            rest = rest.dropFirst(piece.count)
            let flags: UInt8 = rest.isEmpty ? 4 : 0
            frames.append(
                ChaosFrame(frames.isEmpty ? .headers : .continuation, flags: flags, stream: stream, Array(piece)))
        }
        return frames
    }

    private func strangeFrames() -> [ChaosFrame] {
        [
            ChaosFrame(type: 0xF0, flags: 0xFF, stream: 0, [1, 2, 3]), ChaosFrame(type: 0xF1, stream: stream, []),
            ChaosFrame(.ping, Array(1...8)), .window(stream, 1), .window(0, 1),
            ChaosFrame(.priority, stream: stream, [0, 0, 0, 0, 16]),
        ]
    }

    private mutating func badHead() -> ChaosFrame {
        let number = ("number", "\(number)")
        let fields: [(String, String)] =
            switch random.next(below: 7) {
            case 0: [number]
            case 1: [(":status", "2O0"), number]
            case 2: [(":status", "200"), (":status", "200"), number]
            case 3: [(":status", "200"), ("Number", "1")]
            case 4: [(":status", "200"), number, ("connection", "close")]
            case 5: [number, (":status", "200")]
            default: [(":status", "200"), number, ("content-length", "x")]
            }
        return .headers(stream, fields, isLast: true)
    }
}
#endif
