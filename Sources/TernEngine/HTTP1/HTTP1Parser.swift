/// Parses the responses of one connection over HTTP/1 (RFC 9112), one after another, from any split of the input.
///
/// It is strict: a response whose end two recipients could see at different places is refused, or its connection is not
/// used again. The table of `HTTP1ParserTests` lists the accepted and the refused forms.
///
/// Call `begin` for each request, and `next` with each piece of input until it returns `.needsInput`, `.end`,
/// `.upgraded` or `.failure`.
@safe package struct HTTP1Parser: Sendable {
    /// The properties of a request that determine how its response ends.
    package struct Request: Sendable, Equatable {
        /// Whether the method is HEAD.
        package var isHead = false
        /// Whether the method is CONNECT.
        package var isConnect = false
        /// Whether the request has an Upgrade field, and 101 is a valid response.
        package var allowsUpgrade = false
        package var limits: HeadLimits
    }

    /// The next part of a response.
    package enum Event: Sendable, Equatable {
        /// All input is consumed, and the response is not complete.
        case needsInput
        /// The head of an interim response (1xx except 101). More follows.
        case interim(ReceivedHead)
        /// The head of the response. More follows, at least `.end` or `.upgraded`.
        case head(ReceivedHead)
        /// A part of the body, as a range of the input. It is not empty.
        case body(Range<Int>)
        /// The field lines of the trailers, each with CRLF, without the empty line after them. Fields that have no
        /// meaning in trailers are left out (RFC 9110 §6.5.1).
        case trailers([UInt8])
        /// The response is complete. Input from `position` on does not belong to it.
        case end
        /// The connection carries another protocol from `position` on: after 101, and after 2xx to CONNECT.
        case upgraded
        /// The response is refused, or was cut off. The connection cannot be used again.
        case failure(EngineError)
    }

    private enum State: Sendable, Equatable {
        /// No request is outstanding.
        case idle
        case head
        /// A body with a stated length, and the number of bytes that are missing.
        case fixed(Int64)
        case chunks
        case trailers
        case untilEnd
        /// All parts are returned except `.end`.
        case complete
        case upgraded
        case failed(EngineError)
    }

    private var state = State.idle
    private var request = Request(limits: HeadLimits(bytes: 0))
    private var reader = HTTP1HeadReader(limits: HeadLimits(bytes: 0))
    private var chunks = HTTP1ChunkReader()
    private var interims = 0
    /// Whether the head of an interim response announced a body.
    private var interimStatesBody = false
    private var statedLength: Int64?
    /// Whether any byte has arrived since `begin`.
    package private(set) var hasBegun = false
    /// The number of bytes of the body so far.
    package private(set) var receivedLength: Int64 = 0
    /// Whether the connection may carry another request after `.end`: the version and Connection allow it (RFC 9112
    /// §9.3), and the end of the response is certain. Valid from `.head` on.
    package private(set) var isReusable = false
    /// The promise of the response about its connection. Valid from `.head` on.
    var keepAlive: HTTP1KeepAlive { reader.summary.keepAlive }

    package init() {}

    /// Prepares for the response to a request.
    package mutating func begin(_ request: Request) {
        self.request = request
        reader = HTTP1HeadReader(limits: request.limits, isConnect: request.isConnect)
        state = .head
        interims = 0
        interimStatesBody = false
        statedLength = nil
        hasBegun = false
        receivedLength = 0
        isReusable = false
    }

    /// Returns the next part of the response, and moves `position` behind it.
    @unsafe
    package mutating func next(_ input: UnsafeRawBufferPointer, from position: inout Int) -> Event {
        switch state {
        case .complete:
            state = .idle
            return .end
        case .upgraded: return .upgraded
        case .failed(let error): return .failure(error)
        case .idle: return .needsInput
        case .head, .fixed, .chunks, .trailers, .untilEnd: break
        }
        guard position < input.count else { return .needsInput }
        hasBegun = true
        do throws(HTTP1Violation) {
            switch state {
            case .fixed(let missing):
                let count = Int(min(missing, Int64(input.count - position)))
                state = missing == Int64(count) ? .complete : .fixed(missing - Int64(count))
                return takeBody(count, &position)
            case .chunks: return try unsafe nextOfChunks(input, &position)
            case .trailers: return try unsafe nextOfTrailers(input, &position)
            case .untilEnd: return takeBody(input.count - position, &position)
            default:
                guard try unsafe reader.read(input, from: &position) else { return .needsInput }
                return try endHead()
            }
        } catch {
            return fail(error.error)
        }
    }

    /// Returns the event for the end of the connection. Call `next` until it needs input first.
    ///
    /// - Parameter isCut: Whether TLS ended without close_notify. A body that only the end of the connection delimits
    ///   is then truncated.
    package mutating func endOfInput(isCut: Bool) -> Event {
        switch state {
        case .idle, .complete:
            state = .idle
            return .end
        case .upgraded: return .upgraded
        case .failed(let error): return .failure(error)
        case .head:
            let reason = hasBegun ? "the head is not whole" : "the connection ended without a response"
            return fail(EngineError(.connectionLost, reason))
        case .fixed:
            let total = statedLength ?? 0
            return fail(EngineError(.truncatedBody, "the body ended after \(receivedLength) of \(total) bytes"))
        case .chunks, .trailers:
            let reason = "the body ended after \(receivedLength) bytes, before its last chunk (RFC 9112 §8)"
            return fail(EngineError(.truncatedBody, reason))
        case .untilEnd:
            if isCut {
                let reason = "the connection was cut after \(receivedLength) bytes of the body (RFC 9112 §8, §9.8)"
                return fail(EngineError(.truncatedBody, reason))
            }
            state = .idle
            return .end
        }
    }

    private mutating func fail(_ error: EngineError) -> Event {
        state = .failed(error)
        isReusable = false
        return .failure(error)
    }

    // MARK: The head

    private mutating func endHead() throws(HTTP1Violation) -> Event {
        let summary = reader.summary
        if !request.isHead {
            guard !summary.hasTransferEncoding || !summary.isHTTP10 else { throw .transferEncodingInHTTP10 }
            guard !summary.hasForeignTransferCoding else { throw .transferCoding }
        }
        var head = ReceivedHead(
            status: summary.status, version: summary.isHTTP10 ? .http10 : .http11, bytes: reader.takeOutput())
        head.setsCookies = summary.setsCookies
        head.isEncoded = summary.isEncoded
        head.contentLength = summary.isChunked ? nil : summary.contentLength
        if summary.status < 200 {
            if summary.status != 101 { return try endInterim(head) }
            guard request.allowsUpgrade else { throw .unaskedUpgrade }
            state = .upgraded
            return .head(head)
        }
        begin(bodyOf: summary)
        return .head(head)
    }

    private mutating func endInterim(_ head: ReceivedHead) throws(HTTP1Violation) -> Event {
        interims += 1
        guard interims <= request.limits.interimResponses else {
            throw .tooManyInterims(request.limits.interimResponses)
        }
        if reader.summary.statesBody { interimStatesBody = true }
        reader.startOver()
        return .interim(head)
    }

    /// Determines the length of the body (RFC 9112 §6.3).
    private mutating func begin(bodyOf summary: HTTP1HeadSummary) {
        isReusable = !summary.asksToClose && (!summary.isHTTP10 || summary.keepsAlive)
        // The bytes after such a response are not reliable (RFC 9112 §6.1).
        if summary.hasTransferEncoding && summary.contentLength != nil { isReusable = false }
        // A server that states a body where none can be (1xx and 204: RFC 9110 §8.6, RFC 9112 §6.1) can send it later.
        if interimStatesBody || summary.status == 204 && summary.statesBody { isReusable = false }
        if request.isConnect, 200..<300 ~= summary.status {
            state = .upgraded
            isReusable = false
        } else if request.isHead || summary.status == 204 || summary.status == 304 {
            state = .complete
        } else if summary.isChunked {
            chunks = HTTP1ChunkReader()
            state = .chunks
        } else if let length = summary.contentLength {
            statedLength = length
            state = length == 0 ? .complete : .fixed(length)
        } else if summary.status == 205 {
            // It has no content (RFC 9110 §15.3.6), and should have said so.
            state = .complete
            isReusable = false
        } else {
            state = .untilEnd
            isReusable = false
        }
    }

    /// Whether a head, or the rest of one, comes next.
    package var expectsHead: Bool { if case .head = state { true } else { false } }

    // MARK: The body

    /// The number of bytes that are missing of a body with a stated length; nil while anything else is expected.
    package var missingLength: Int64? {
        if case .fixed(let missing) = state { missing } else { nil }
    }

    /// Takes account of bytes of a body with a stated length that were received without `next`: at most as many as are
    /// missing.
    package mutating func receivedInPlace(_ count: Int) {
        guard case .fixed(let missing) = state else { return }
        precondition(count <= missing, "more bytes than the body has")
        receivedLength += Int64(count)
        state = missing == Int64(count) ? .complete : .fixed(missing - Int64(count))
    }

    private mutating func takeBody(_ count: Int, _ position: inout Int) -> Event {
        let range = position..<(position + count)
        position += count
        receivedLength += Int64(count)
        return .body(range)
    }

    private mutating func nextOfChunks(
        _ input: UnsafeRawBufferPointer, _ position: inout Int
    ) throws(HTTP1Violation) -> Event {
        switch try unsafe chunks.next(input, from: &position) {
        case .needsInput: return .needsInput
        case .data(let range):
            // A sum of chunks beyond 63 bits cannot arrive.
            receivedLength &+= Int64(range.count)
            return .body(range)
        case .trailers:
            reader.beginTrailers()
            state = .trailers
            return try unsafe nextOfTrailers(input, &position)
        }
    }

    private mutating func nextOfTrailers(
        _ input: UnsafeRawBufferPointer, _ position: inout Int
    ) throws(HTTP1Violation) -> Event {
        guard try unsafe reader.read(input, from: &position) else { return .needsInput }
        let bytes = reader.takeOutput()
        if bytes.isEmpty {
            state = .idle
            return .end
        }
        state = .complete
        return .trailers(bytes)
    }
}

extension HTTP1Parser.Request {
    package init(limits: HeadLimits) { self.init(isHead: false, limits: limits) }
}
