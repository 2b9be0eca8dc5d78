@testable import TernEngine

/// The result of parsing one response, whatever the split of its bytes.
struct ParsedResponse: Equatable {
    enum End: Equatable {
        /// The input is consumed, and the response is not complete.
        case open
        case complete(isReusable: Bool)
        case upgraded
        case failed(EngineError)
    }

    var interims: [ReceivedHead] = []
    var head: ReceivedHead?
    var body: [UInt8] = []
    var trailers: [UInt8] = []
    var end = End.open
    /// The number of bytes that belong to the response; 0 after a failure.
    var consumed = 0

    var error: EngineError? { if case .failed(let error) = end { error } else { nil } }
    var text: String { String(decoding: body, as: UTF8.self) }
    var headText: String { String(decoding: head?.bytes ?? [], as: UTF8.self) }

    /// Parses bytes that arrive in pieces, which end at the splits.
    init(
        _ bytes: [UInt8], splits: [Int] = [], request: HTTP1Parser.Request = .test(), ends: Bool = false,
        isCut: Bool = false
    ) {
        var parser = HTTP1Parser()
        parser.begin(request)
        var start = 0
        for next in splits + [bytes.count] where end == .open {
            let piece = Array(bytes[start..<next])
            var position = 0
            unsafe piece.withUnsafeBytes { input in
                while end == .open {
                    let event = unsafe parser.next(input, from: &position)
                    if event == .needsInput { break }
                    take(event, input: piece, parser: parser)
                }
            }
            consumed = error == nil ? start + position : 0
            start = next
        }
        if ends, end == .open { take(parser.endOfInput(isCut: isCut), input: [], parser: parser) }
        if error != nil { consumed = 0 }
    }

    private mutating func take(_ event: HTTP1Parser.Event, input: [UInt8], parser: HTTP1Parser) {
        switch event {
        case .needsInput: break
        case .interim(let head): interims.append(head)
        case .head(let head): self.head = head
        case .body(let range): body += input[range]
        case .trailers(let bytes): trailers = bytes
        case .end: end = .complete(isReusable: parser.isReusable)
        case .upgraded: end = .upgraded
        case .failure(let error): end = .failed(error)
        }
    }

    /// Parses bytes whole, byte by byte and at every split, and returns the result, or the first that differs from the
    /// result of the whole input.
    static func everySplit(
        _ bytes: [UInt8], request: HTTP1Parser.Request = .test(), ends: Bool = false, isCut: Bool = false
    ) -> (whole: ParsedResponse, different: ParsedResponse?) {
        let whole = ParsedResponse(bytes, request: request, ends: ends, isCut: isCut)
        let splits = [Array(1..<max(1, bytes.count))] + (1..<max(1, bytes.count)).map { [$0] }
        for split in splits {
            let other = ParsedResponse(bytes, splits: split, request: request, ends: ends, isCut: isCut)
            if other != whole { return (whole, other) }
        }
        return (whole, nil)
    }
}

extension HTTP1Parser.Request {
    static func test(
        isHead: Bool = false, isConnect: Bool = false, allowsUpgrade: Bool = false, headLimit: Int = 64 << 10
    ) -> HTTP1Parser.Request {
        var request = HTTP1Parser.Request(limits: HeadLimits(bytes: headLimit))
        request.isHead = isHead
        request.isConnect = isConnect
        request.allowsUpgrade = allowsUpgrade
        return request
    }
}

extension [UInt8] {
    /// The bytes of a text in ISO-8859-1.
    init(latin text: String) { self = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }
}
