#if os(Linux)
import CTernCurl

/// The reasons why no bytes of an attempt move, and the directions that are paused in libcurl. Pure: the attempt makes
/// the calls.
struct PauseState {
    /// A Boolean value that indicates whether the request has no body, so that libcurl sends nothing after the head.
    let sendsNothing: Bool
    /// A Boolean value that indicates whether the task is paused.
    var isPaused = false
    /// A Boolean value that indicates whether the reader is behind.
    var isHeldUp = false
    /// A Boolean value that indicates whether the request's body has no bytes yet.
    var isStarved = false
    /// The directions that are paused in libcurl, as bits of CURLPAUSE.
    private var stopped: Int32 = 0

    init(sendsNothing: Bool) { self.sendsNothing = sendsNothing }

    /// Returns whether to refuse the bytes that libcurl delivers. libcurl then keeps them, and is paused.
    mutating func refusesBytes() -> Bool {
        // Bytes that arrive after libcurl is paused are the rest of those that it has already read.
        guard isPaused || (isHeldUp && stopped & CURLPAUSE_RECV == 0) else { return false }
        stopped |= CURLPAUSE_RECV
        return true
    }

    /// Records that libcurl got no bytes to send, and is paused.
    mutating func refusedToSend() { stopped |= CURLPAUSE_SEND }

    /// Returns the directions to pause at once when a reader falls behind; nil if refusing the next bytes must suffice.
    ///
    /// If paused at once, libcurl reads no further, and the bytes that it has read are still accepted. If the bytes are
    /// refused instead, libcurl copies them, up to the whole of its buffer, and delivers them later. Both directions
    /// are paused, because libcurl reads once more if one of them is free. A reader must not hold up a request's body.
    /// Over HTTP/2, only refusing bytes closes the stream's window.
    func stopAtOnce(_ version: HTTPVersion) -> Int32? {
        let isAlone = version == .http11 || version == .http10
        return isHeldUp && isAlone && sendsNothing ? CURLPAUSE_ALL : nil
    }

    /// Records that libcurl was paused as `stopAtOnce` returned.
    mutating func stoppedAtOnce(_ bits: Int32) { stopped = bits }

    /// Returns the directions to pause in libcurl; nil if nothing has changed.
    mutating func settle() -> Int32? {
        var wanted: Int32 = 0
        if isPaused { wanted = CURLPAUSE_ALL }
        if isHeldUp { wanted |= sendsNothing ? stopped : stopped & CURLPAUSE_RECV }
        if isStarved { wanted |= stopped & CURLPAUSE_SEND }
        guard wanted != stopped else { return nil }
        stopped = wanted
        return wanted
    }

    /// Resets the state when the attempt is off the wire and libcurl no longer has it.
    mutating func withdraw() { stopped = 0 }
}
#endif
