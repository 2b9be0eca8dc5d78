import Foundation
import Tern
import Testing

@testable import TernStreaming

@Suite("WebSocket: decisions of the handshakes")
struct HandshakeTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let valid: Headers = [
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    ]

    private func agreement(
        _ change: (inout Headers) -> Void = { _ in }, protocols: [String] = [],
        compression: WebSocket.Compression? = nil
    ) throws(ProtocolFailure) -> Handshake.Agreement {
        let handshake = Handshake(protocols: protocols, compression: compression)
        var fields = Self.valid
        change(&fields)
        return try handshake.agreement(with: fields, for: handshake.fields(key: Self.key))
    }

    @Test func theHashIsTheOneOfTheStandard() {
        func hex(_ text: String) -> String {
            SHA1.hash(Array(text.utf8)).map { String(Int($0) + 256, radix: 16).dropFirst() }.joined()
        }
        #expect(hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        #expect(hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "84983e441c3bd26ebaae4aa1f95129e5e54670f1")
        // The example of RFC 6455 §1.3.
        #expect(SHA1.webSocketAccept(for: Self.key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test func theFieldsHaveAKeyOfTheirOwn() throws {
        let handshake = Handshake(protocols: ["chat", "v2.chat"], compression: nil)
        let (first, second) = (handshake.fields(), handshake.fields())
        let key = try #require(first["Sec-WebSocket-Key"])
        #expect(Data(base64Encoded: key)?.count == 16)
        #expect(key != second["Sec-WebSocket-Key"])
        #expect(first["Sec-WebSocket-Version"] == "13")
        #expect(first["Sec-WebSocket-Protocol"] == "chat, v2.chat")
        #expect(first["Sec-WebSocket-Extensions"] == nil)
    }

    @Test func subprotocolsAreTokensAndDistinct() {
        #expect(Handshake(protocols: ["a", "b.c"], compression: nil).problem() == nil)
        for protocols in [["a b"], [""], ["a,b"], ["a", "a"], ["é"]] {
            #expect(Handshake(protocols: protocols, compression: nil).problem() != nil, "\(protocols)")
        }
    }

    /// Texts that are equal by canonical equivalence are different values.
    @Test func valuesAreComparedByTheirBytes() {
        let accept = "s3pPLMBiTxaQ9kYGzzhZRb\u{212A}+xOo="
        #expect(throws: ProtocolFailure.self) { try agreement { $0["Sec-WebSocket-Accept"] = accept } }
        #expect(throws: ProtocolFailure.self) {
            try agreement({ $0["Sec-WebSocket-Protocol"] = "\u{212A}" }, protocols: ["K"])
        }
    }

    @Test func aValidResponseIsAccepted() throws {
        #expect(try agreement() == Handshake.Agreement())
        #expect(try agreement { $0["Connection"] = "keep-alive, UPGRADE" } == Handshake.Agreement())
        #expect(try agreement { $0["Upgrade"] = "WebSocket" } == Handshake.Agreement())
        let chosen = try agreement({ $0["Sec-WebSocket-Protocol"] = "b" }, protocols: ["a", "b"])
        #expect(chosen.subprotocol == "b")
        let compressed = try agreement(
            { $0["Sec-WebSocket-Extensions"] = "permessage-deflate" }, compression: WebSocket.Compression())
        #expect(compressed.compression == PerMessageDeflate())
        #expect(try agreement(protocols: ["a"], compression: WebSocket.Compression()) == Handshake.Agreement())
    }

    private static let refused: [(name: String, value: String?)] = [
        ("Sec-WebSocket-Accept", nil), ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="),
        ("Sec-WebSocket-Accept", "S3PPLMBITXAQ9KYGZZHZRBK+XOO="), ("Connection", nil), ("Connection", "keep-alive"),
        ("Upgrade", nil), ("Upgrade", "websocket2"), ("Sec-WebSocket-Protocol", "chat"),
        ("Sec-WebSocket-Extensions", "permessage-deflate"), ("Sec-WebSocket-Extensions", "x-other"),
        ("Sec-WebSocket-Extensions", "a b"),
    ]

    @Test(arguments: refused.indices) func aResponseThatDoesNotAgreeIsRefused(index: Int) {
        let (name, value) = Self.refused[index]
        #expect(throws: ProtocolFailure.self) { try agreement { $0[name] = value } }
    }

    @Test func aRepeatedFieldIsRefused() {
        #expect(throws: ProtocolFailure.self) {
            try agreement { $0.append(name: "Sec-WebSocket-Accept", value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") }
        }
        #expect(throws: ProtocolFailure.self) {
            try agreement(
                {
                    $0.append(name: "Sec-WebSocket-Protocol", value: "a")
                    $0.append(name: "Sec-WebSocket-Protocol", value: "b")
                }, protocols: ["a", "b"])
        }
        #expect(throws: ProtocolFailure.self) {
            try agreement(
                { $0["Sec-WebSocket-Extensions"] = "permessage-deflate, permessage-deflate" },
                compression: WebSocket.Compression())
        }
    }

    // MARK: The closing handshake

    @Test func theServersCodeIsSentBack() {
        var closing = CloseHandshake()
        #expect(closing.receive(CloseHandshakeCodes.app, reason: "r") == .answer([0x0F, 0xA0]))
        #expect(!closing.isOpen && !closing.isSettled)
        #expect(closing.closure == WebSocket.Closure(code: CloseHandshakeCodes.app, reason: "r", isClean: false))
        closing.closeFrameLeft()
        #expect(closing.isSettled)
        #expect(closing.closure == WebSocket.Closure(code: CloseHandshakeCodes.app, reason: "r", isClean: true))
        #expect(closing.receive(.normalClosure, reason: "") == .none)
        #expect(closing.close(.normalClosure, reason: "") == .none)
    }

    @Test func aCloseFrameWithoutACodeIsAnsweredWithout() {
        var closing = CloseHandshake()
        #expect(closing.receive(nil, reason: "") == .answer([]))
        #expect(closing.closure.code == .noStatus)
    }

    @Test func theOwnCloseComesFirst() {
        var closing = CloseHandshake()
        #expect(closing.close(.goingAway, reason: "é") == .sendAfterMessages([0x03, 0xE9, 0xC3, 0xA9]))
        #expect(closing.takesInput)
        #expect(closing.closure == WebSocket.Closure(code: .abnormalClosure, isClean: false))
        #expect(closing.close(.goingAway, reason: "") == .none)
        #expect(closing.receive(.goingAway, reason: "") == .awaitEnd)
        #expect(!closing.closure.isClean, "the own frame waits behind messages")
        closing.closeFrameLeft()
        #expect(closing.closure.isClean)
    }

    @Test func aFrameThatWasNeverSentHasNotLeft() {
        var closing = CloseHandshake()
        closing.closeFrameLeft()
        #expect(!closing.hasLeft)
        _ = closing.fail(ProtocolFailure(.protocolError, "x"))
        #expect(!closing.isSettled)
        closing.closeFrameLeft()
        #expect(closing.isSettled && !closing.closure.isClean)
    }

    @Test func aFailureSendsItsCodeOnce() {
        var closing = CloseHandshake()
        #expect(closing.fail(ProtocolFailure(.protocolError, "x")) == .fail([0x03, 0xEA]))
        #expect(closing.fail(ProtocolFailure(.messageTooBig, "y")) == .none)
        #expect(closing.receive(.normalClosure, reason: "") == .none)
        #expect(closing.closure == WebSocket.Closure(code: .protocolError, isClean: false))
        var closed = CloseHandshake()
        _ = closed.close(.normalClosure, reason: "")
        #expect(closed.fail(ProtocolFailure(.protocolError, "x")) == .awaitEnd)
    }

    @Test func valuesBeyondTheirRangesCountAsTheNearest() {
        var compression = WebSocket.Compression()
        (compression.level, compression.clientMaxWindowBits, compression.serverMaxWindowBits) = (.max, 8, 99)
        #expect(compression.level == 9 && compression.clientMaxWindowBits == 9)
        #expect(compression.serverMaxWindowBits == 15)
        (compression.level, compression.clientMaxWindowBits) = (.min, .max)
        #expect(compression.level == 1 && compression.clientMaxWindowBits == 15)
    }

    // MARK: Silence

    @Test func silenceAfterAPingIsTheEnd() {
        var liveness = PeerLiveness(interval: .seconds(30), timeout: .seconds(5), now: .seconds(100))
        #expect(liveness.next(at: .seconds(100), isHeldUp: false) == .wait(.seconds(30)))
        liveness.received(at: .seconds(125))
        // The look that was planned before comes 5 seconds after the last byte.
        #expect(liveness.next(at: .seconds(130), isHeldUp: false) == .wait(.seconds(25)))
        #expect(liveness.next(at: .seconds(155), isHeldUp: false) == .ping(thenWait: .seconds(5)))
        liveness.received(at: .seconds(156))
        #expect(liveness.next(at: .seconds(160), isHeldUp: false) == .wait(.seconds(26)))
        #expect(liveness.next(at: .seconds(186), isHeldUp: false) == .ping(thenWait: .seconds(5)))
        #expect(liveness.next(at: .seconds(188), isHeldUp: false) == .wait(.seconds(3)))
        // While this side does not read, silence proves nothing.
        #expect(liveness.next(at: .seconds(191), isHeldUp: true) == .wait(.seconds(30)))
        #expect(liveness.next(at: .seconds(221), isHeldUp: false) == .ping(thenWait: .seconds(5)))
        #expect(liveness.next(at: .seconds(226), isHeldUp: false) == .dead)
    }
}

private enum CloseHandshakeCodes {
    static let app = WebSocket.CloseCode(rawValue: 4000)
}
