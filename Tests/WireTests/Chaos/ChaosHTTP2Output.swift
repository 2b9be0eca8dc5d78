#if os(Linux) && !TERN_URLSESSION
import Glibc

/// The bytes of a `ChaosHTTP2Connection` on their way to the client, and the end of the connection after them.
final class ChaosHTTP2Output {
    /// The way in which a connection ends after the bytes so far.
    enum End {
        case close, bareClose, reset, cutFrame, cutRecord, resetInRecord, garbage, garbageFrame
    }

    private let socket: ChaosSocket
    private let ledger: ChaosLedger
    /// The number of bytes that are written at once: of much output, and of less than 200 bytes.
    private let pieceSize: Int
    private let smallPieceSize: Int
    private var bytes: [UInt8] = []
    private var start = 0
    private var queuedCount = 0
    private var writtenCount = 0
    /// The responses that are whole at a count of bytes, and those that have been written.
    private var unwritten: [(end: Int, id: ChaosLedger.AnswerID)] = []
    private var written: [ChaosLedger.AnswerID] = []

    init(_ socket: ChaosSocket, ledger: ChaosLedger, pieceSize: Int, smallPieceSize: Int) {
        self.socket = socket
        self.ledger = ledger
        self.pieceSize = pieceSize
        self.smallPieceSize = smallPieceSize
    }

    var isEmpty: Bool { bytes.isEmpty }

    func append(_ new: [UInt8]) {
        bytes += new
        queuedCount += new.count
    }

    /// Notes that a response is whole with the bytes so far.
    func noteEnd(of answer: ChaosLedger.AnswerID) { unwritten.append((queuedCount, answer)) }

    /// Writes as many bytes as the socket takes.
    func flush() throws {
        while start < bytes.count {
            let size = bytes.count - start < 200 ? smallPieceSize : pieceSize
            let sent = try socket.send(bytes[start...].prefix(size))
            if sent == 0 { return }
            start += sent
            writtenCount += sent
            while let first = unwritten.first, first.end <= writtenCount {
                unwritten.removeFirst()
                written.append(first.id)
                ledger.noteSent(first.id)
            }
        }
        bytes.removeAll(keepingCapacity: true)
        start = 0
    }

    /// Ends the connection.
    ///
    /// - Parameter highest: The highest stream that the client has opened.
    func finish(_ end: End?, after highest: Int32, _ random: inout ChaosRandom) throws {
        // Clients ignore frames of this type. They pass on the received part of a DATA frame, and its stream could be
        // open.
        let garbage = ChaosFrame(type: 0xF0, [UInt8](repeating: 0xEE, count: 5_000)).bytes
        switch end {
        case nil, .close: break
        case .bareClose: socket.endWriting(isBare: true)
        case .reset: reset()
        case .cutFrame: _ = try socket.send(garbage.prefix(1 + random.next(below: 5_000)))
        case .cutRecord, .resetInRecord:
            try socket.sendPartOfRecord(of: garbage, count: 1 + random.next(below: 5_000))
            if end == .cutRecord { socket.endWriting(isBare: true) } else { reset() }
        case .garbage:
            socket.sendGarbage(&random)
            try socket.waitForClientToClose()
        case .garbageFrame:
            try socket.sendAll(Self.garbageFrame(after: highest, &random).bytes)
            try socket.waitForClientToClose()
        }
    }

    /// Resets the connection, which discards bytes that are on their way.
    private func reset() {
        for id in written { ledger.noteSent(id, false) }
        socket.reset()
    }

    /// Returns a frame that ends a connection (RFC 9113 §5.4.1).
    private static func garbageFrame(after highest: Int32, _ random: inout ChaosRandom) -> ChaosFrame {
        // Far away: the client can be opening the next streams at this moment, and would take the frame for an answer.
        let unopened = highest + 20_000
        return switch random.next(below: 13) {
        case 0: .data(0, [1], isLast: false)
        case 1: .headers(2, [(":status", "200")], isLast: true)
        case 2: .headers(unopened, [(":status", "200")], isLast: true)
        case 3: ChaosFrame(.settings, [0, 4, 0, 0, 0])
        case 4: ChaosFrame(.settings, flags: 1, [0, 4, 0, 0, 0, 0])
        case 5: .settings([(.initialWindow, 1 << 31)])
        case 6: .window(0, 0)
        case 7: .window(0, 0x7FFF_FFFF)
        case 8: .reset(unopened, 0)
        case 9: ChaosFrame(.push, flags: 4, stream: max(1, highest), [0, 0, 0, 2])
        case 10: ChaosFrame(.continuation, flags: 4, stream: max(1, highest), [])
        case 11: ChaosFrame(.ping, [1, 2, 3])
        default: ChaosFrame(.headers, flags: 5, stream: max(1, highest), [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])
        }
    }
}
#endif
