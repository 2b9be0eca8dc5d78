#if os(Linux) && !TERN_URLSESSION
/// One way in which the HTTP/2 server of the chaos tests answers a request, or treats the connection that has it.
enum ChaosHTTP2Fault: String, CaseIterable, Sendable {
    // Whole responses.
    case whole, emptyEnd, noLength, trailers, noContent, interims, padded, trickle, continuation, strangeFrames, stall
    case earlyResponse, resetAfterEnd
    // Whole responses, and a change for the whole connection.
    case gracefulGoAway, noWindow, fewStreams, stallConnection, keyUpdate, closeAfterEnd, bareCloseAfterEnd
    case lateData, lateGarbage
    // Refusals: the request was not processed.
    case refused, refusedEarly, earlyGoAway
    // Whole responses that are errors.
    case serverError, earlyRefusal
    // No response, or a part of one.
    case cancelBeforeHead, errorBeforeHead, cancelInBody, errorInBody, refusedInBody, noErrorInBody
    case shortBody, longBody, badHead, stallBeforeHead, stallInBody
    // The end of the connection, with all of its streams.
    case closeBeforeHead, closeInBody, bareClose, resetConnection, cutFrame, cutRecord, resetInRecord, garbageRecord
    case garbageFrame, errorGoAway

    private static let wholeResponses: Set<ChaosHTTP2Fault> = [
        .whole, .emptyEnd, .noLength, .trailers, .noContent, .interims, .padded, .trickle, .continuation,
        .strangeFrames, .stall, .earlyResponse, .resetAfterEnd, .gracefulGoAway, .noWindow, .fewStreams,
        .stallConnection, .keyUpdate, .closeAfterEnd, .bareCloseAfterEnd, .lateData, .lateGarbage,
        // A request that is too late for the refusal is answered.
        .earlyGoAway,
    ]
    private static let connectionFaults: [ChaosHTTP2Fault] = [
        .gracefulGoAway, .stallConnection, .closeAfterEnd, .bareCloseAfterEnd, .lateData, .lateGarbage, .earlyGoAway,
        .earlyGoAway, .closeBeforeHead, .closeInBody, .bareClose, .resetConnection, .cutFrame, .cutRecord,
        .resetInRecord, .garbageRecord, .garbageFrame, .garbageFrame, .errorGoAway,
    ]
    private static let streamFaults = allCases.filter { !connectionFaults.contains($0) }

    /// Whether a client may report success.
    func allowsSuccess(isHead: Bool) -> Bool {
        switch self {
        // The client can regard the response to HEAD as whole after its head.
        case .cancelInBody, .errorInBody, .refusedInBody, .noErrorInBody, .stallInBody, .closeInBody, .cutFrame,
            .cutRecord, .resetInRecord, .shortBody:
            isHead
        default: Self.wholeResponses.contains(self)
        }
    }

    /// Whether a client must report success if the response was sent.
    var requiresSuccess: Bool { Self.wholeResponses.contains(self) }

    /// Draws an answer. Faults of a connection are rare, because they concern many requests.
    static func draw(_ random: inout ChaosRandom) -> ChaosHTTP2Fault {
        switch random.next(below: 100) {
        case ..<40: .whole
        case ..<95: streamFaults[random.next(below: streamFaults.count)]
        default: connectionFaults[random.next(below: connectionFaults.count)]
        }
    }
}
#endif
