import Testing

@testable import TernEngine

@Suite struct SOCKSTests {
    private func proxy(
        _ kind: ProxyAddress.Kind = .socks5, user: String? = nil, password: String? = nil
    ) -> ProxyAddress {
        ProxyAddress(kind, host: "p", port: 1_080, user: user, password: password)
    }

    private func driven(
        _ proxy: ProxyAddress, host: String = "a.example", address: SocketAddress? = nil
    ) -> DrivenHandshake {
        DrivenHandshake(ProxyHandshake(proxy, host: host, port: 443, address: address, authorize: { _, _ in nil }))
    }

    private func failure(_ reason: String) -> ProxyAction {
        .failed(EngineError(.proxy, "the proxy p:1080 made no connection to a.example:443: \(reason)"))
    }

    private static let name: [UInt8] = [3, 9] + Array("a.example".utf8) + [1, 0xBB]
    private static let reply: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]

    // MARK: - SOCKS 5

    @Test(arguments: [
        reply, [5, 0, 0, 4] + [UInt8](repeating: 9, count: 18), [5, 0, 0, 3, 0, 1, 2], [5, 0, 7, 3, 2, 65, 66, 1, 2],
        [5, 0, 0, 3, 255] + [UInt8](repeating: 1, count: 257),
    ])
    func eachFormOfTheReplyEndsAtItsLastByte(reply: [UInt8]) {
        let bytes = [5, 0] + reply
        for split in bytes.indices {
            var driven = driven(proxy())
            driven.receive(messages: [[5, 0], reply], splitAt: split)
            #expect(driven.action == .established)
            #expect(driven.sent == [5, 1, 0, 5, 1, 0] + Self.name)
        }
        var single = driven(proxy())
        single.receiveSingly(bytes.dropLast())
        #expect(single.isOpen)
        single.receive(Array(bytes.suffix(1)))
        #expect(single.action == .established)
        var long = driven(proxy())
        long.receive(messages: [[5, 0], reply + [0]])
        #expect(long.action == failure("it sent bytes before the client used the connection"))
    }

    @Test func theUserNameAndThePasswordAreSentWhenTheProxyChoosesThem() {
        for split in 0..<14 {
            var driven = driven(proxy(user: "me", password: "pass"))
            driven.receive(messages: [[5, 2], [1, 0], Self.reply], splitAt: split)
            #expect(driven.action == .established)
            let credentials = [1, 2] + Array("me".utf8) + [4] + Array("pass".utf8)
            #expect(driven.sent == [5, 2, 0, 2] + credentials + [5, 1, 0] + Self.name)
        }
    }

    @Test func credentialsAreNotSentToAProxyThatDoesNotAskForThem() {
        var driven = driven(proxy(user: "me", password: "pass"))
        driven.receive(messages: [[5, 0], Self.reply])
        #expect(driven.action == .established)
        #expect(driven.sent == [5, 2, 0, 2, 5, 1, 0] + Self.name)
    }

    @Test(arguments: [
        ("", "x"), ("", ""), (String(repeating: "u", count: 256), "x"), ("x", String(repeating: "p", count: 256)),
    ])
    func credentialsOfAnotherLengthAreRefused(user: String, password: String) {
        let driven = driven(proxy(user: user, password: password))
        #expect(driven.error?.kind == .invalidRequest)
        #expect(driven.sent.isEmpty)
    }

    @Test(arguments: ["", nil]) func anEmptyPasswordIsSent(password: String?) {
        var driven = driven(proxy(user: "me", password: password))
        driven.receive(messages: [[5, 2], [1, 0], Self.reply])
        #expect(driven.action == .established)
        #expect(driven.sent == [5, 2, 0, 2] + [1, 2] + Array("me".utf8) + [0] + [5, 1, 0] + Self.name)
    }

    @Test func theLongestCredentialsAndNamesAreSent() {
        let text = String(repeating: "x", count: 255)
        var driven = driven(proxy(user: text, password: text), host: text)
        driven.receive(messages: [[5, 2], [1, 0]])
        #expect(driven.sent.count == 4 + 513 + 3 + 2 + 255 + 2)
    }

    @Test(arguments: ["", String(repeating: "x", count: 256)])
    func aNameOfAnotherLengthIsRefused(host: String) {
        #expect(driven(proxy(), host: host).error?.kind == .invalidRequest)
        #expect(driven(proxy(.socks4a), host: host).error?.kind == .invalidRequest)
    }

    @Test(
        arguments: [
            ("192.0.2.1", nil, [1, 192, 0, 2, 1]),
            ("2001:db8::1", nil, [4, 0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("a.example", "192.0.2.9", [1, 192, 0, 2, 9]),
        ] as [(String, String?, [UInt8])])
    func addressesAreSentAsAddresses(host: String, address: String?, bytes: [UInt8]) {
        var driven = driven(
            proxy(.socks5WithLocalNames), host: host,
            address: address.flatMap { SocketAddress(numeric: $0, port: 1) })
        driven.receive([5, 0])
        #expect(driven.sent == [5, 1, 0, 5, 1, 0] + bytes + [1, 0xBB])
    }

    @Test(arguments: 1...255 as ClosedRange<UInt8>)
    func eachReplyCodeFailsAsSoonAsItArrives(code: UInt8) {
        var driven = driven(proxy())
        driven.receive(messages: [[5, 0], [5, code]])
        #expect(driven.error?.kind == .proxy)
        var other = self.driven(proxy())
        other.receiveSingly([5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0])
        #expect(other == driven)
    }

    @Test(
        arguments: [
            (1, "general failure of the SOCKS server"), (2, "the rules of the proxy forbid the connection"),
            (3, "the network is unreachable"), (4, "the host is unreachable"), (5, "the host refused the connection"),
            (6, "the time to live expired"), (7, "the proxy does not support the command"),
            (8, "the proxy does not support the type of address"), (9, "it answered with the unknown code 9"),
        ] as [(UInt8, String)])
    func replyCodesHaveTexts(code: UInt8, text: String) {
        var driven = driven(proxy())
        driven.receive(messages: [[5, 0], [5, code]])
        #expect(driven.action == failure(text))
    }

    @Test(
        arguments: [
            ([4], "its answer is not SOCKS 5 (RFC 1928 §3)"),
            ([0x48], "its answer is not SOCKS 5 (RFC 1928 §3)"),
            ([5, 0xFF], "it accepts no connection without authentication (RFC 1928 §3)"),
            ([5, 1], "it chose an authentication that was not offered (RFC 1928 §3)"),
            ([5, 2], "it chose an authentication that was not offered (RFC 1928 §3)"),
            ([5, 0, 4], "its answer is not SOCKS 5 (RFC 1928 §6)"),
            ([5, 0, 5, 0, 0, 0], "its answer has an unknown type of address (RFC 1928 §6)"),
            ([5, 0, 5, 0, 0, 2], "its answer has an unknown type of address (RFC 1928 §6)"),
        ] as [([UInt8], String)])
    func malformedAnswersAreRefused(bytes: [UInt8], reason: String) {
        let messages = [Array(bytes.prefix(2)), Array(bytes.dropFirst(2))]
        for split in bytes.indices {
            var driven = driven(proxy())
            driven.receive(messages: messages, splitAt: split)
            #expect(driven.action == failure(reason))
        }
    }

    @Test(
        arguments: [
            ([5, 0xFF], "it accepts no offered authentication (RFC 1928 §3)"),
            ([5, 2, 5], "its answer to the password is malformed (RFC 1929 §2)"),
            ([5, 2, 1, 1], "it refused the user name and the password (RFC 1929 §2)"),
            ([5, 2, 1, 255], "it refused the user name and the password (RFC 1929 §2)"),
        ] as [([UInt8], String)])
    func refusedCredentialsAreAFailure(bytes: [UInt8], reason: String) {
        var driven = driven(proxy(user: "me", password: "pass"))
        driven.receive(messages: [Array(bytes.prefix(2)), Array(bytes.dropFirst(2))])
        #expect(driven.action == failure(reason))
    }

    @Test func anAnswerBeforeTheRequestIsRefused() {
        var early = driven(proxy())
        early.receive([5, 0] + Self.reply)
        #expect(early.action == failure("it sent bytes before the request"))
        #expect(early.sent == [5, 1, 0])
    }

    // MARK: - SOCKS 4

    private static let reply4: [UInt8] = [0, 90, 1, 2, 3, 4, 5, 6]

    @Test func version4SendsAnAddressAndTheUser() {
        let address = SocketAddress(numeric: "192.0.2.1", port: 9)
        var driven = driven(proxy(.socks4, user: "me"), address: address)
        #expect(driven.sent == [4, 1, 1, 0xBB, 192, 0, 2, 1, 109, 101, 0])
        driven.receive(Self.reply4)
        #expect(driven.action == .established)
    }

    @Test func version4aSendsANameAfterTheUser() {
        let start: [UInt8] = [4, 1, 1, 0xBB, 0, 0, 0, 1, 0]
        for split in Self.reply4.indices {
            var driven = driven(proxy(.socks4a))
            #expect(driven.sent == start + Array("a.example".utf8) + [0])
            driven.receive(Self.reply4, splitAt: split)
            #expect(driven.action == .established)
        }
    }

    @Test func version4HasNoAddressOfVersion6() {
        for kind in [ProxyAddress.Kind.socks4, .socks4a] {
            let address = SocketAddress(numeric: "::1", port: 1)
            #expect(driven(proxy(kind), address: address).action == failure("SOCKS 4 needs an IPv4 address"))
        }
        #expect(driven(proxy(.socks4)).action == failure("SOCKS 4 needs an IPv4 address"))
    }

    @Test func aUserNameBeyond255BytesIsRefused() {
        let driven = driven(proxy(.socks4a, user: String(repeating: "u", count: 256)))
        #expect(driven.error?.kind == .invalidRequest)
    }

    @Test(
        arguments: [
            ([4], "its answer is not SOCKS 4"), ([0, 91], "the request was rejected or failed"),
            ([0, 92], "the proxy could not reach the identification service of this machine"),
            ([0, 93], "the identification service of this machine reports another user"),
            ([0, 0], "it answered with the unknown code 0"), ([0, 94], "it answered with the unknown code 94"),
            (reply4 + [0], "it sent bytes before the client used the connection"),
        ] as [([UInt8], String)])
    func otherRepliesOfVersion4AreRefused(bytes: [UInt8], reason: String) {
        var driven = driven(proxy(.socks4a))
        driven.receive(bytes)
        #expect(driven.action == failure(reason))
    }

    // MARK: - Any bytes

    @Test(arguments: [ProxyAddress.Kind.socks4a, .socks5])
    func anEndWithinTheHandshakeIsAFailure(kind: ProxyAddress.Kind) {
        let bytes = kind == .socks5 ? [5, 0] + Self.reply : Self.reply4
        for count in bytes.indices {
            var driven = driven(proxy(kind))
            driven.receiveSingly(Array(bytes[..<count]))
            driven.end()
            #expect(driven.error?.reason.contains("it closed the connection within the handshake") == true)
        }
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func changedAnswersEndTheSameAtEachSplit(seed: UInt64) {
        var random = ConnectRandom(state: seed)
        let samples: [(ProxyAddress, [UInt8])] = [
            (proxy(), [5, 0] + Self.reply), (proxy(), [5, 0, 5, 0, 0, 3, 4, 1, 2, 3, 4, 5, 6]),
            (proxy(user: "me", password: "pass"), [5, 2, 1, 0] + Self.reply), (proxy(.socks4a), Self.reply4),
        ]
        guard let sample = samples.randomElement(using: &random) else { return }
        var bytes = sample.1
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let place = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...6, using: &random)
            case 1: bytes.remove(at: place)
            default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
            }
        }
        var whole = driven(sample.0)
        whole.receiveSingly(bytes)
        for split in bytes.indices {
            var other = driven(sample.0)
            other.receive(bytes, splitAt: split)
            // Bytes after the end of a message are seen only if they arrive with it.
            if let reason = other.error?.reason, reason.contains(": it sent bytes before ") { continue }
            #expect(other == whole)
        }
    }
}
