import Foundation
import TernTesting

@testable import TernStreaming

/// The events of an assembler for bytes in pieces, without a socket.
enum ReceivedFrames {
    static func events(
        _ bytes: [UInt8], pieces: [Int]? = nil, frameSize: Int = 1 << 20, messageSize: Int = 1 << 20,
        inflater: MessageInflater? = nil
    ) -> [MessageAssembler.Event] {
        var assembler = MessageAssembler(
            maximumFrameSize: frameSize, maximumMessageSize: messageSize, inflater: inflater)
        var events: [MessageAssembler.Event] = []
        var start = 0
        for end in (pieces ?? [bytes.count]) {
            let piece = Array(bytes[start..<end])
            start = end
            var position = 0
            unsafe piece.withUnsafeBytes { piece in
                while let event = unsafe assembler.next(piece, from: &position) {
                    events.append(event)
                    if case .failure = event { return }
                }
            }
            if case .failure? = events.last { return events }
        }
        return events
    }

    static func events(_ frames: [LoopbackServer.WebSocketFrame], pieces: [Int]? = nil) -> [MessageAssembler.Event] {
        events(frames.flatMap(\.bytes), pieces: pieces)
    }
}
