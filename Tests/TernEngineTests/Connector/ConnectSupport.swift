@testable import TernEngine

/// A generator of random numbers with a fixed seed.
struct ConnectRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// A handshake with a proxy as a test drives it: the bytes that were sent, and the last action.
struct DrivenHandshake {
    var handshake: ProxyHandshake
    private(set) var sent: [UInt8] = []
    private(set) var action = ProxyAction.needsInput

    /// Starts the handshake.
    init(_ handshake: ProxyHandshake) {
        self.handshake = handshake
        note(self.handshake.start())
    }

    var sentText: String { String(decoding: sent, as: UTF8.self) }

    var error: EngineError? {
        if case .failed(let error) = action { return error }
        return nil
    }

    mutating func restart() { note(handshake.start()) }

    mutating func end() { note(handshake.end()) }

    /// Hands over bytes, in two parts if they are split.
    mutating func receive(_ bytes: [UInt8], splitAt split: Int? = nil) {
        guard let split else {
            hand(bytes[...])
            return
        }
        hand(bytes[..<split])
        if isOpen { hand(bytes[split...]) }
    }

    /// Hands over messages one after the other, split once more at an index of all their bytes.
    mutating func receive(messages: [[UInt8]], splitAt split: Int? = nil) {
        var start = 0
        for message in messages where isOpen {
            let place = (split ?? 0) - start
            receive(message, splitAt: message.indices.contains(place) ? place : nil)
            start += message.count
        }
    }

    /// Hands over the bytes one by one.
    mutating func receiveSingly(_ bytes: [UInt8]) {
        for index in bytes.indices where isOpen { hand(bytes[index...index]) }
    }

    var isOpen: Bool {
        switch action {
        case .needsInput, .send: true
        case .reconnect, .established, .failed: false
        }
    }

    private mutating func hand(_ bytes: ArraySlice<UInt8>) {
        note(unsafe Array(bytes).withUnsafeBytes { unsafe handshake.receive($0) })
    }

    private mutating func note(_ action: ProxyAction) {
        if case .send(let bytes) = action { sent += bytes }
        self.action = action
    }
}

extension DrivenHandshake: Equatable {
    static func == (left: DrivenHandshake, right: DrivenHandshake) -> Bool {
        left.sent == right.sent && left.outcome == right.outcome
    }

    /// The last action. While the handshake goes on, it does not matter whether the last byte caused a message.
    private var outcome: ProxyAction {
        if case .send = action { return .needsInput }
        return action
    }
}
