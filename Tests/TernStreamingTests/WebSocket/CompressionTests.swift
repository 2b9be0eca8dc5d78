import Foundation
import Tern
import TernTesting
import Testing

@testable import TernStreaming

@Suite("WebSocket: compression")
struct CompressionTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    private func parameters(_ text: String) throws -> [HandshakeExtension.Parameter] {
        try #require(HandshakeExtension.list("permessage-deflate" + text)?.first).parameters
    }

    private func compressed(_ bytes: [UInt8], with deflater: MessageDeflater) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe deflater.deflate($0) }
    }

    // MARK: The agreement

    @Test func theOfferHasTheParameters() {
        #expect(PerMessageDeflate.offer(WebSocket.Compression()) == "permessage-deflate; client_max_window_bits")
        let all = WebSocket.Compression(
            serverNoContextTakeover: true, clientNoContextTakeover: true, serverMaxWindowBits: 10,
            clientMaxWindowBits: 9)
        #expect(
            PerMessageDeflate.offer(all)
                == "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10; "
                + "client_max_window_bits=9")
    }

    @Test func theResponseSetsTheParameters() throws {
        let offer = WebSocket.Compression()
        let plain = try PerMessageDeflate(parameters(""), to: offer)
        #expect(plain == PerMessageDeflate())
        let text =
            "; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=8; client_max_window_bits=\"11\""
        let all = try PerMessageDeflate(parameters(text), to: offer)
        #expect(all.serverNoContextTakeover && all.clientNoContextTakeover)
        #expect((all.serverMaxWindowBits, all.clientMaxWindowBits) == (8, 11))
    }

    @Test(arguments: [
        "; unknown", "; server_no_context_takeover=1", "; client_no_context_takeover=0", "; server_max_window_bits",
        "; client_max_window_bits", "; server_max_window_bits=7", "; server_max_window_bits=16",
        "; server_max_window_bits=010", "; client_max_window_bits=+9",
        "; client_max_window_bits=15; client_max_window_bits=15",
    ]) func aResponseThatIsNoAnswerIsRefused(text: String) throws {
        let parameters = try parameters(text)
        #expect(throws: ProtocolFailure.self) { try PerMessageDeflate(parameters, to: WebSocket.Compression()) }
    }

    @Test(arguments: [
        ("", WebSocket.Compression(serverNoContextTakeover: true)),
        ("", WebSocket.Compression(serverMaxWindowBits: 10)),
        ("; server_max_window_bits=11", WebSocket.Compression(serverMaxWindowBits: 10)),
        ("; client_max_window_bits=11", WebSocket.Compression(clientMaxWindowBits: 10)),
    ]) func aServerMustAcceptTheLimitsThatWereAskedFor(text: String, offer: WebSocket.Compression) throws {
        let parameters = try parameters(text)
        #expect(throws: ProtocolFailure.self) { try PerMessageDeflate(parameters, to: offer) }
    }

    @Test func listsAreReadOrRefused() {
        #expect(HandshakeExtension.list("") == [])
        #expect(HandshakeExtension.list(" A ; b=\"c\" , d")?.map(\.name) == ["a", "d"])
        for text in ["a; ", "; b", "a;b=", "a;b=\"x y\"", "a b", "a;=c"] {
            #expect(HandshakeExtension.list(text) == nil, "\(text)")
        }
    }

    // MARK: Messages

    @Test(arguments: [9, 12, 15], [false, true]) func messagesComeBack(bits: Int, resets: Bool) throws {
        let deflater = try #require(MessageDeflater(windowBits: bits, level: 6, resets: resets))
        let inflater = try #require(MessageInflater(windowBits: bits, resets: resets))
        let texts = ["", "a", "hello hello hello", String(repeating: "tern ", count: 20_000), "hello hello hello"]
        var bytes: [UInt8] = []
        var sizes: [Int] = []
        for text in texts {
            let payload = compressed(Array(text.utf8), with: deflater)
            sizes.append(payload.count)
            let half = payload.count / 2
            bytes += Frame(opcode: 1, payload: Array(payload[..<half]), isFinal: false, reservedBits: 4).bytes
            bytes += Frame.ping().bytes + Frame.continuation(Array(payload[half...])).bytes
        }
        let expected = texts.flatMap { [MessageAssembler.Event.ping([]), .message(.text($0))] }
        let pieces = Array(stride(from: 11, to: bytes.count, by: 11)) + [bytes.count]
        #expect(ReceivedFrames.events(bytes, pieces: pieces, inflater: inflater) == expected)
        // With the window of the messages before, the same text is shorter.
        #expect(resets ? sizes[4] == sizes[2] : sizes[4] < sizes[2])
    }

    /// All windows that zlib has for a raw stream, with sizes around theirs, and bytes that repeat and that do not.
    @Test(arguments: Array(9...15), [false, true]) func messagesOfAllSizesComeBack(bits: Int, resets: Bool) throws {
        let deflater = try #require(MessageDeflater(windowBits: bits, level: 6, resets: resets))
        let inflater = try #require(MessageInflater(windowBits: bits, resets: resets))
        var state = UInt64(bits)
        func nextByte() -> UInt8 {
            // xorshift64, the same in every run.
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
        var (bytes, messages): ([UInt8], [[UInt8]]) = ([], [])
        for size in [1, 64, 256, 1 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10] {
            let word = (0..<37).map { _ in nextByte() }
            let random = (0..<size).map { _ in nextByte() }
            for message in [(0..<size).map { word[$0 % word.count] }, random] {
                messages.append(message)
                let payload = compressed(message, with: deflater)
                // In fragments of different lengths, also empty ones.
                let cuts = [0, payload.count / 7, payload.count / 7, payload.count / 2, payload.count]
                for (index, (start, end)) in zip(cuts, cuts.dropFirst()).enumerated() {
                    bytes +=
                        Frame(
                            opcode: index == 0 ? 2 : 0, payload: Array(payload[start..<end]), isFinal: index == 3,
                            reservedBits: index == 0 ? 4 : 0
                        ).bytes
                }
            }
        }
        let events = ReceivedFrames.events(bytes, frameSize: 1 << 20, messageSize: 128 << 10, inflater: inflater)
        #expect(events == messages.map { .message(.binary(Data($0))) })
    }

    @Test func anUncompressedMessageIsAllowed() throws {
        let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
        #expect(ReceivedFrames.events(Frame.text("a").bytes, inflater: inflater) == [.message(.text("a"))])
    }

    @Test func theExamplesOfTheRFCAreRead() throws {
        // RFC 7692 §7.2.3: one block, with the window, stored, with BFINAL, two blocks.
        let payloads: [[UInt8]] = [
            [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00],
            [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
        ]
        let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
        let bytes = payloads.flatMap { Frame(opcode: 1, payload: $0, reservedBits: 4).bytes }
        let events = ReceivedFrames.events(bytes, inflater: inflater)
        #expect(events == Array(repeating: .message(.text("Hello")), count: 5))
    }

    @Test func aSmallMessageThatInflatesTooFarIsRefused() throws {
        let deflater = try #require(MessageDeflater(windowBits: 15, level: 9, resets: false))
        let payload = compressed([UInt8](repeating: 0, count: 10 << 20), with: deflater)
        #expect(payload.count < 20_000)
        for (limit, isAccepted) in [(10 << 20, true), ((10 << 20) - 1, false)] {
            let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
            let events = ReceivedFrames.events(
                Frame(opcode: 2, payload: payload, reservedBits: 4).bytes, frameSize: 1 << 20, messageSize: limit,
                inflater: inflater)
            if case .failure(let failure)? = events.last {
                #expect(!isAccepted)
                #expect(failure.code == .messageTooBig)
            } else {
                #expect(isAccepted)
            }
        }
    }

    /// Bytes that do not shrink are longer when they are compressed than the limit of their message.
    @Test func theLimitIsThatOfTheInflatedMessage() throws {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<4_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let deflater = try #require(MessageDeflater(windowBits: 15, level: 6, resets: false))
        let payload = compressed(bytes, with: deflater)
        #expect(payload.count > bytes.count)
        for (limit, isAccepted) in [(4_000, true), (3_999, false)] {
            let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
            let events = ReceivedFrames.events(
                Frame(opcode: 2, payload: payload, reservedBits: 4).bytes, messageSize: limit, inflater: inflater)
            if isAccepted {
                #expect(events == [.message(.binary(Data(bytes)))])
            } else {
                #expect(failure(in: events)?.code == .messageTooBig)
            }
        }
    }

    @Test func aMessageThatEndsWithinABlockIsRefused() throws {
        let deflater = try #require(MessageDeflater(windowBits: 15, level: 6, resets: false))
        let payload = compressed(Array("one two three four five six seven".utf8), with: deflater)
        for count in 1..<payload.count {
            let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
            let events = ReceivedFrames.events(
                Frame(opcode: 2, payload: Array(payload[..<count]), reservedBits: 4).bytes, inflater: inflater)
            #expect(failure(in: events)?.code == .invalidPayload, "the first \(count) bytes")
        }
    }

    /// The four bytes that end each message could otherwise be taken for those that are missing.
    @Test(arguments: 0...200) func aStoredBlockThatIsShortIsRefused(count: Int) throws {
        let start: [UInt8] = [0x00, 200, 0, 255 - 200, 255]
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
        let payload = start + bytes + (count == 200 ? [0x00] : [])
        let events = ReceivedFrames.events(
            Frame(opcode: 2, payload: payload, reservedBits: 4).bytes, inflater: inflater)
        if count == 200 {
            #expect(events == [.message(.binary(Data(bytes)))])
        } else {
            #expect(failure(in: events)?.code == .invalidPayload)
        }
    }

    /// Some senders leave the end of an empty message, and that of a message with a final block, away.
    @Test func aMessageWithoutABlockToCompleteIsRead() throws {
        let payloads: [[UInt8]] = [
            [], [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [], [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
        ]
        for resets in [false, true] {
            let inflater = try #require(MessageInflater(windowBits: 15, resets: resets))
            let bytes = payloads.flatMap { Frame(opcode: 1, payload: $0, reservedBits: 4).bytes }
            let events = ReceivedFrames.events(bytes, inflater: inflater)
            #expect(events == ["", "Hello", "", "Hello"].map { .message(.text($0)) })
        }
    }

    private func failure(in events: [MessageAssembler.Event]) -> ProtocolFailure? {
        guard case .failure(let failure)? = events.last else { return nil }
        return failure
    }

    @Test func bytesThatAreNotDeflateAreRefused() throws {
        let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
        let events = ReceivedFrames.events(
            Frame(opcode: 1, payload: [0xFF, 0xFF], reservedBits: 4).bytes, inflater: inflater)
        guard case .failure(let failure)? = events.last else {
            Issue.record("accepted")
            return
        }
        #expect(failure.code == .invalidPayload)
    }

    @Test func textIsCheckedAfterInflation() throws {
        let deflater = try #require(MessageDeflater(windowBits: 15, level: 6, resets: false))
        let payload = compressed([0x61, 0xFF], with: deflater)
        let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
        let events = ReceivedFrames.events(
            Frame(opcode: 1, payload: payload, reservedBits: 4).bytes, inflater: inflater)
        guard case .failure(let failure)? = events.last else {
            Issue.record("accepted")
            return
        }
        #expect(failure.code == .invalidPayload)
    }

    @Test func reservedBitsFollowTheRules() throws {
        let violations: [[UInt8]] = [
            Frame(opcode: 9, reservedBits: 4).bytes, Frame(opcode: 1, reservedBits: 2).bytes,
            Frame(opcode: 1, payload: [0], isFinal: false, reservedBits: 4).bytes
                + Frame(opcode: 0, reservedBits: 4).bytes,
        ]
        for bytes in violations {
            let inflater = try #require(MessageInflater(windowBits: 15, resets: false))
            guard case .failure(let failure)? = ReceivedFrames.events(bytes, inflater: inflater).last else {
                Issue.record("\(bytes) is accepted")
                continue
            }
            #expect(failure.code == .protocolError)
        }
    }
}
