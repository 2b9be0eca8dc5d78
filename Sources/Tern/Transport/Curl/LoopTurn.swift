#if os(Linux)
/// The work that one turn of the loop collects. Callbacks of libcurl add to it, and the engine acts on it after the
/// sockets are served. Confined to the loop's thread.
@safe final class LoopTurn {
    /// The time in nanoseconds, read once per turn.
    var now: UInt64 = 0
    /// Readers and producers to be resumed at the end of the turn.
    var wakes: [Transfer.Wake] = unsafe []
    /// Transfers whose pause state differs from the one that libcurl has.
    var pausing: [CurlTransfer] = []
    /// Transfers with bytes or numbers that their session has not seen.
    var changed: [CurlTransfer] = []
    /// The earliest time limit that any transfer can reach.
    var nextDeadline = UInt64.max
    /// Transfers whose progress is watched and has changed, and when the first of them is due.
    private var unpublished: [CurlTransfer] = []
    private(set) var nextPublication = UInt64.max

    func wake(_ reader: Transfer.Wake?) {
        if let reader = unsafe reader { unsafe wakes.append(reader) }
    }

    func watch(_ clock: TransferClock) {
        nextDeadline = min(nextDeadline, clock.nextDeadline)
    }

    func publishLater(_ transfer: CurlTransfer) {
        unpublished.append(transfer)
        nextPublication = min(nextPublication, transfer.nextPublication)
    }

    func forget(_ transfer: CurlTransfer) { unpublished.removeAll { $0 === transfer } }

    /// Publishes the progress of the transfers whose time has come.
    func publishProgress() {
        guard nextPublication <= now else { return }
        nextPublication = .max
        unpublished.removeAll { transfer in
            if transfer.nextPublication <= now {
                transfer.publishProgress()
                return true
            }
            nextPublication = min(nextPublication, transfer.nextPublication)
            return false
        }
    }

    /// Resumes the readers and producers of the turn. Called after all sockets are served: a task that runs at once on
    /// another thread then delays none of them, and a reader wakes once for everything that its transfer received.
    func resumeReaders() {
        guard unsafe !wakes.isEmpty else { return }
        for index in unsafe wakes.indices { unsafe wakes[index].resume() }
        unsafe wakes.removeAll(keepingCapacity: true)
    }
}
#endif
