#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency

/// Brings what a server of aioquic has written about its requests into a ledger.
final class ChaosHTTP3Log: Sendable {
    private struct State {
        /// The number of lines that were read.
        var count = 0
        var answers: [Int: [ChaosLedger.AnswerID]] = [:]
    }

    private let peer: AioQUICPeer
    private let ledger: ChaosLedger
    private let state = Lock(State())

    init(_ peer: AioQUICPeer, ledger: ChaosLedger) {
        self.peer = peer
        self.ledger = ledger
    }

    /// Reads the lines that are new. The server writes each before it sends the datagram that it is about.
    func read() throws {
        let lines = try peer.lines()
        state.withLock { state in
            for line in lines.dropFirst(state.count) { take(line, &state) }
            state.count = lines.count
        }
    }

    private func take(_ line: String, _ state: inout State) {
        let words = line.split(separator: " ").map(String.init)
        if words.first == "defect" || line.contains("Traceback") { ledger.defect("the server: \(line)") }
        guard words.count >= 2, let number = Int(words[1]) else { return }
        switch words[0] {
        case "received" where words.count == 4:
            let answer = ChaosLedger.Answer(ofHTTP3: words[3], isHead: words[2] == "HEAD")
            state.answers[number, default: []].append(
                ledger.noteReceived(number, method: words[2], answer: answer))
        case "processed": ledger.noteProcessed(number)
        case "refused", "done":
            guard words.count == 3, let index = Int(words[2]), let answers = state.answers[number],
                answers.indices.contains(index)
            else { return }
            if words[0] == "done" { ledger.noteSent(answers[index]) } else { ledger.noteRefused(answers[index]) }
        default: break
        }
    }
}
#endif
