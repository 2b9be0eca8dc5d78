import Testing

@testable import TernEngine

@Suite struct SocketAddressTests {
    @Test(arguments: [
        "127.0.0.1", "0.0.0.0", "255.255.255.255", "10.1.2.3", "::", "::1", "2001:db8::1", "fe80::1", "fe80::1%7",
        "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "2001:db8:0:1:1:1:1:1",
    ])
    func numericTextsAreReadAndWrittenTheSame(text: String) throws {
        let address = try #require(SocketAddress(numeric: text, port: 443))
        #expect(address.text == text)
        #expect(address.port == 443)
        #expect(address.family == (text.contains(":") ? .ipv6 : .ipv4))
        #expect(address.description == (text.contains(":") ? "[\(text)]:443" : "\(text):443"))
        #expect(address.bytes.count == (text.contains(":") ? 16 : 4))
    }

    @Test(arguments: [
        "", "localhost", "127.1", "127.0.0.01", "0x7f.0.0.1", "127.0.0.256", "127.0.0.1.", "1.2.3.4.5", "[::1]", ":::",
        "::1%", "::1%no-such-interface", "::1%99999999999", "1.2.3.4%1", "::1%1%2", "1.2.3.4\0", " 1.2.3.4",
        String(repeating: "1", count: 1_000),
    ])
    func otherTextsAreNoAddress(text: String) {
        #expect(SocketAddress(numeric: text, port: 1) == nil)
    }

    @Test(arguments: ["192.0.2.1", "2001:db8::ff", "fe80::1%3"])
    func theSystemsFormHoldsTheWholeAddress(text: String) throws {
        let address = try #require(SocketAddress(numeric: text, port: 65_535))
        let copy = unsafe address.withSystemAddress { unsafe SocketAddress($0, length: Int($1)) }
        #expect(copy == address)
        let short = unsafe address.withSystemAddress { pointer, _ in unsafe SocketAddress(pointer, length: 8) }
        #expect(short == nil)
    }

    @Test func theScopeCanBeTheNameOfAnInterface() {
        #expect(SocketAddress(numeric: "fe80::1%lo", port: 1) == SocketAddress(numeric: "fe80::1%1", port: 1))
    }

    @Test func anotherPortLeavesTheAddress() {
        #expect(SocketAddress(numeric: "::1", port: 0)?.with(port: 80) == SocketAddress(numeric: "::1", port: 80))
        #expect(SocketAddress.unix([47]).with(port: 80) == .unix([47]))
    }

    @Test func aUnixPathOfTheLongestLengthIsAccepted() throws {
        let path = "/" + String(repeating: "a", count: SocketAddress.longestPath - 1)
        let address = try SocketAddress.unix(path: path)
        #expect(address.text == path)
        #expect(unsafe address.withSystemAddress { unsafe SocketAddress($0, length: Int($1)) } == address)
    }

    @Test(arguments: [
        ("/" + String(repeating: "a", count: SocketAddress.longestPath), "is too long for the system"),
        ("", "is empty"), ("/a\0b", "contains a zero byte"),
    ])
    func aUnixPathThatDoesNotFitIsRefused(path: String, reason: String) {
        #expect {
            try SocketAddress.unix(path: path)
        } throws: { error in
            let error = error as? EngineError
            return error?.kind == .invalidRequest && error?.reason.hasSuffix(reason) == true
        }
    }

    @Test func aUnixPathInAnErrorIsShortAndPrintable() throws {
        let path = "/\u{1B}[2J" + String(repeating: "x", count: 500)
        let error = #expect(throws: EngineError.self) { try SocketAddress.unix(path: path) }
        #expect(error?.reason.contains("\u{1B}") == false)
        #expect(error.map { $0.reason.count < 300 } == true)
    }
}
