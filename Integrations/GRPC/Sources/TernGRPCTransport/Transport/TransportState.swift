/// The life of a transport, and its calls. Pure; `TernGRPCTransport` performs what the methods return.
struct TransportState<Call> {
    private enum Phase {
        case idle
        /// `connect()` waits for the end.
        case connected
        /// No call begins any more; those that run go on.
        case closing
        case closed
    }

    /// The refusal of a call or of a second connection.
    enum Refusal: Error, Equatable {
        case isClosing
        case isConnected
    }

    private var phase = Phase.idle
    private var isWaitedFor = false
    private(set) var calls: [UInt64: Call] = [:]
    private var lastNumber: UInt64 = 0

    /// Whether no call runs and none begins any more.
    var isClosed: Bool { if case .closed = phase { true } else { false } }

    /// Begins a call. Returns its number.
    mutating func begin(_ call: Call) throws(Refusal) -> UInt64 {
        switch phase {
        case .idle, .connected: break
        case .closing, .closed: throw .isClosing
        }
        lastNumber += 1
        calls[lastNumber] = call
        return lastNumber
    }

    /// Ends a call. Returns whether `connect()` returns now.
    mutating func end(_ number: UInt64) -> Bool {
        calls[number] = nil
        return finishIfDone()
    }

    /// Begins to wait for the end. Returns whether it has come already.
    mutating func connect() throws(Refusal) -> Bool {
        if isWaitedFor { throw .isConnected }
        isWaitedFor = true
        if case .idle = phase { phase = .connected }
        return finishIfDone()
    }

    /// No call begins any more. Returns whether `connect()` returns now.
    mutating func close() -> Bool {
        switch phase {
        case .idle, .connected: phase = .closing
        case .closing, .closed: return false
        }
        return finishIfDone()
    }

    private mutating func finishIfDone() -> Bool {
        switch phase {
        case .closing where calls.isEmpty && isWaitedFor:
            phase = .closed
            return true
        case .idle, .connected, .closing, .closed: return false
        }
    }
}
