#if os(Linux)
/// What one turn of the loop gathers: callbacks of libcurl add to it, the engine acts on it after the sockets are served.
/// Confined to the loop's thread.
@safe final class LoopTurn {
    /// Nanoseconds, read once per turn.
    var now: UInt64 = 0
    /// Readers and producers to be resumed at the end of the turn.
    var wakes: [Transfer.Wake] = unsafe []
    /// Transfers with bytes or numbers that their session has not seen.
    var changed: [CurlTransfer] = []
    /// The earliest time limit that any transfer can reach.
    var nextDeadline = UInt64.max

    func wake(_ reader: Transfer.Wake?) {
        if let reader = unsafe reader { unsafe wakes.append(reader) }
    }

    func watch(_ clock: TransferClock) {
        nextDeadline = min(nextDeadline, clock.nextDeadline)
    }

    func resumeReaders() {
        guard unsafe !wakes.isEmpty else { return }
        for index in unsafe wakes.indices { unsafe wakes[index].resume() }
        unsafe wakes.removeAll(keepingCapacity: true)
    }
}
#endif
