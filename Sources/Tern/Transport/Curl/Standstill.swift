#if os(Linux)
import CTernCurl

/// Why no bytes of an attempt move, and what libcurl was told of it. Pure: the attempt makes the calls.
struct Standstill {
    /// The request has no body, and libcurl nothing to send once the head is out.
    let sendsNothing: Bool
    /// The task is paused.
    var isPaused = false
    /// The reader is behind.
    var isHeldUp = false
    /// The request's body has no bytes yet.
    var isStarved = false
    /// What libcurl was told to stop: bits of CURLPAUSE.
    private var stopped: Int32 = 0

    init(sendsNothing: Bool) { self.sendsNothing = sendsNothing }

    /// Whether bytes that libcurl brings are refused. libcurl then sets them aside, and is stopped.
    mutating func refusesBytes() -> Bool {
        // What comes after libcurl was told to stop is the rest of what it had read.
        guard isPaused || (isHeldUp && stopped & CURLPAUSE_RECV == 0) else { return false }
        stopped |= CURLPAUSE_RECV
        return true
    }

    /// libcurl was answered that no bytes are there to be sent, and is stopped.
    mutating func refusedToSend() { stopped |= CURLPAUSE_SEND }

    /// What libcurl is to be told at once when a reader falls behind; nil where the answer to its next bytes has to do.
    ///
    /// Told at once, it reads no further, and what it has read is taken all the same; the answer alone would make it copy
    /// that, up to the whole of its buffer, and hand it on later. Both directions: with one of them free it reads once
    /// more, and a request's body must not be held up by a reader. Over HTTP/2 only the answer closes the stream's window.
    func stopAtOnce(_ version: HTTPVersion) -> Int32? {
        let isAlone = version == .http11 || version == .http10
        return isHeldUp && isAlone && sendsNothing ? CURLPAUSE_ALL : nil
    }

    /// libcurl was told so.
    mutating func stoppedAtOnce(_ bits: Int32) { stopped = bits }

    /// What libcurl must be told; nil when it knows.
    mutating func settle() -> Int32? {
        var wanted: Int32 = 0
        if isPaused { wanted = CURLPAUSE_ALL }
        if isHeldUp { wanted |= sendsNothing ? stopped : stopped & CURLPAUSE_RECV }
        if isStarved { wanted |= stopped & CURLPAUSE_SEND }
        guard wanted != stopped else { return nil }
        stopped = wanted
        return wanted
    }

    /// The attempt is off the wire, and libcurl knows nothing of it.
    mutating func withdraw() { stopped = 0 }
}
#endif
