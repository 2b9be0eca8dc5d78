/// Bounds the work that a server can cause with cheap frames. It reads the headers of frames ahead of nghttp2, and
/// finds floods of PING, SETTINGS, RST_STREAM, WINDOW_UPDATE, CONTINUATION and empty frames (RFC 9113 §10.5), header
/// blocks that are too large, and pushes.
///
/// Each group of frames has a budget. A frame takes one token. Requests, data and time add tokens, so that no server
/// that does its work reaches the end of a budget.
struct HTTP2FrameGuard {
    /// The result for a piece of input.
    struct Verdict {
        /// The number of bytes before the frame header that is refused; all bytes if none is.
        var accepted: Int
        var refusal: Refusal?
    }

    /// The reason why a connection ends.
    struct Refusal: Equatable {
        var code: HTTP2ErrorCode
        var error: EngineError
    }

    /// The tokens of one group of frames.
    private struct Budget {
        /// The number of tokens at the start, and the number to which time adds.
        static let burst = 1_000
        var tokens = burst

        mutating func earn(_ count: Int) { tokens = min(tokens + count, 1 << 30) }

        mutating func rest(_ ticks: Int) {
            if tokens < Self.burst { tokens = min(Self.burst, tokens + ticks) }
        }

        mutating func spend() -> Bool {
            tokens -= 1
            return tokens >= 0
        }
    }

    /// The time that adds one token, in nanoseconds.
    private static let tick: UInt64 = 10_000_000
    /// A padded DATA frame up to this length can be empty.
    private static let padding = 256

    /// The number of bytes of one encoded header block.
    private let blockLimit: Int
    /// The number of CONTINUATION frames of one header block: enough for frames of 16 KiB, which servers send by
    /// default.
    let continuations: Int
    private var control = Budget()
    private var resets = Budget()
    private var windows = Budget()
    private var empties = Budget()
    private var heads = Budget()
    private var lastTick: UInt64?

    /// The number of bytes of the frame header so far.
    private var position = 0
    private var length = 0
    private var type: UInt8 = 0
    private var flags: UInt8 = 0
    private var stream: UInt32 = 0
    /// The number of bytes of the payload that are still to come.
    private var remaining = 0
    /// Whether no frame has begun.
    private var isFirst = true
    private var blockSize = 0
    private var blockFrames = 0

    init(headLimit: Int) {
        // Names, values and 4 bytes a field are within the limit. An encoded field can have some bytes more.
        blockLimit = min(max(headLimit, 0), 1 << 28) * 2 + (64 << 10)
        continuations = max(64, blockLimit >> 14)
    }

    mutating func requestSubmitted() {
        // A response can have 100 interim heads, its own and trailers.
        heads.earn(102)
        resets.earn(1)
        windows.earn(2)
        empties.earn(1)
    }

    mutating func pingSent() { control.earn(1) }

    mutating func dataSent() {
        // A server can update the windows of the stream and of the connection for each KiB of the frame, as one does
        // that reads in small pieces, and measure the round trip.
        windows.earn(34)
        control.earn(1)
    }

    mutating func scan(_ bytes: UnsafeRawBufferPointer, at now: UInt64) -> Verdict {
        addTime(now)
        var index = 0
        while index < bytes.count {
            if remaining > 0 {
                let step = min(remaining, bytes.count - index)
                remaining -= step
                index += step
                continue
            }
            let byte = unsafe bytes[index]
            switch position {
            case 0...2: length = length << 8 | Int(byte)
            case 3: type = byte
            case 4: flags = byte
            default: stream = stream << 8 | UInt32(byte)
            }
            // The type and the flags decide, so a frame is refused at its flags in every split of the input. One for a
            // stream that is not there is refused at the end of its header.
            if position == 4, let refusal = refusalOfFrame() { return Verdict(accepted: index, refusal: refusal) }
            if position == 8, let refusal = refusalOfStream() { return Verdict(accepted: index, refusal: refusal) }
            index += 1
            position += 1
            if position == 9 {
                remaining = length
                position = 0
                length = 0
            }
        }
        return Verdict(accepted: index, refusal: nil)
    }

    private mutating func addTime(_ now: UInt64) {
        guard let last = lastTick else {
            lastTick = now
            return
        }
        guard now > last, now - last >= Self.tick else { return }
        let ticks = (now - last) / Self.tick
        lastTick = last + ticks * Self.tick
        let added = Int(min(ticks, UInt64(Budget.burst)))
        control.rest(added)
        resets.rest(added)
        windows.rest(added)
        empties.rest(added)
        heads.rest(added)
    }

    /// Counts a frame. Returns the reason why the connection ends, or nil.
    private mutating func refusalOfFrame() -> Refusal? {
        // "HTTP/", read as the header of a frame.
        if isFirst, length == 0x48_5454, type == 0x50, flags == 0x2F {
            return Refusal(
                code: .protocolError,
                error: .malformed("the server answers over HTTP/1: it does not speak HTTP/2 here (RFC 9113 §3.3)"))
        }
        isFirst = false
        switch type {
        case 0x0:
            let isEmpty = length == 0 || (flags & 0x8 != 0 && length <= Self.padding)
            if !isEmpty {
                control.earn(1)
                empties.earn(1)
                return nil
            }
            return empties.spend() ? nil : Self.flood("empty DATA")
        case 0x1:
            blockSize = 0
            blockFrames = 0
            return heads.spend() ? refusalOfBlock() : Self.flood("HEADERS")
        case 0x9:
            blockFrames += 1
            return refusalOfBlock()
        case 0x3:
            return resets.spend() ? nil : Self.flood("RST_STREAM")
        case 0x5:
            return Refusal(
                code: .protocolError,
                error: .malformed("the server pushed a response although the client forbids it (RFC 9113 §8.4)"))
        case 0x10:
            return Refusal(
                code: .protocolError,
                error: .malformed("the server sent PRIORITY_UPDATE, which is for clients (RFC 9218 §7.1)"))
        case 0x8:
            return windows.spend() ? nil : Self.flood("WINDOW_UPDATE")
        default:
            return control.spend() ? nil : Self.flood("PING, SETTINGS or other control")
        }
    }

    /// Returns the reason why the connection ends because of the stream of a frame; nil without one. nghttp2 checks the
    /// other frames; it does not look at PRIORITY, because the client states that it does not use the priorities of RFC
    /// 7540.
    private mutating func refusalOfStream() -> Refusal? {
        // The highest bit is reserved, and ignored (RFC 9113 §4.1).
        let isConnection = stream & 0x7FFF_FFFF == 0
        stream = 0
        guard type == 0x2, isConnection else { return nil }
        return Refusal(
            code: .protocolError, error: .malformed("the server sent PRIORITY for stream 0 (RFC 9113 §6.3)"))
    }

    private mutating func refusalOfBlock() -> Refusal? {
        blockSize += length
        guard blockSize <= blockLimit, blockFrames <= continuations else {
            return Refusal(
                code: .enhanceYourCalm,
                error: EngineError(
                    .tooLarge,
                    "a header block of the server exceeds \(blockLimit) bytes or \(continuations) CONTINUATION frames"))
        }
        return nil
    }

    private static func flood(_ frames: String) -> Refusal {
        Refusal(
            code: .enhanceYourCalm,
            error: .malformed("the server sent too many \(frames) frames (RFC 9113 §10.5)"))
    }
}
