/// A reason why a response over HTTP/1 is refused.
enum HTTP1Violation: Error, Sendable, Equatable {
    case blankFirstLine
    case statusLine
    case version
    case firstFieldIsFolded
    case framingFieldIsFolded
    case notAField
    case bareCarriageReturn
    case controlInValue
    case contentLength
    case transferCoding
    case transferEncodingInHTTP10
    case unaskedUpgrade
    case chunkSize
    case chunkLineEnd
    case chunkExtension
    case chunkDataEnd
    case chunkLineTooLong
    case chunkExtensionsTooLong
    case headTooLarge(Int)
    case trailersTooLarge(Int)
    case tooManyFields(Int)
    case tooManyInterims(Int)

    /// The error for the exchange.
    var error: EngineError {
        switch self {
        case .headTooLarge(let limit):
            EngineError(.tooLarge, "the head of the response has more than \(limit) bytes")
        case .trailersTooLarge(let limit):
            EngineError(.tooLarge, "the trailers of the response have more than \(limit) bytes")
        case .tooManyFields(let limit):
            EngineError(.tooLarge, "the head of the response has more than \(limit) fields")
        case .tooManyInterims(let limit):
            EngineError(.tooLarge, "more than \(limit) interim responses came before the response")
        case .chunkLineTooLong:
            EngineError(
                .tooLarge, "a chunk size line of the response has more than \(HTTP1ChunkReader.lineLimit) bytes")
        case .chunkExtensionsTooLong:
            EngineError(
                .tooLarge,
                "the chunk extensions of the response have more than \(HTTP1ChunkReader.extensionLimit) bytes")
        default:
            EngineError(.malformedResponse, "\(sentence)")
        }
    }

    private var sentence: StaticString {
        switch self {
        case .blankFirstLine: "the response begins with a blank line (RFC 9112 §2.2)"
        case .statusLine: "the response's status line is malformed (RFC 9112 §4)"
        case .version:
            "the response's status line names no version of HTTP that was asked for (RFC 9112 §2.3)"
        case .firstFieldIsFolded: "the response's first header field begins with a blank (RFC 9112 §2.2)"
        case .framingFieldIsFolded:
            "the response's Content-Length or Transfer-Encoding is folded, which a server must not do (RFC 9112 §5.2)"
        case .notAField:
            "a line of the response's header or trailer is not a name, a colon and a value (RFC 9112 §5.1)"
        case .bareCarriageReturn:
            "a line of the response's header or trailer contains a CR without an LF (RFC 9112 §2.2)"
        case .controlInValue: "a field of the response has a control character in its value (RFC 9110 §5.5)"
        case .contentLength: "the response's Content-Length is not one number (RFC 9112 §6.3)"
        case .transferCoding: "the response has a transfer coding that was not asked for (RFC 9112 §7.4)"
        case .transferEncodingInHTTP10: "the response is HTTP/1.0 and has a Transfer-Encoding (RFC 9112 §6.1)"
        case .unaskedUpgrade:
            "the server switched to another protocol without being asked (RFC 9110 §15.2.2)"
        case .chunkSize:
            "a chunk of the response does not begin with a hexadecimal number of at most 15 digits (RFC 9112 §7.1)"
        case .chunkLineEnd: "a chunk size line of the response does not end in CRLF (RFC 9112 §7.1)"
        case .chunkExtension: "a chunk extension of the response is malformed (RFC 9112 §7.1.1)"
        case .chunkDataEnd: "the data of a chunk does not end where its size says (RFC 9112 §7.1)"
        case .headTooLarge, .trailersTooLarge, .tooManyFields, .tooManyInterims, .chunkLineTooLong,
            .chunkExtensionsTooLong:
            "a part of the response is too large"
        }
    }
}
