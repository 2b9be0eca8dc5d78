import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks files, patterns and the demo routes.
extension LoopbackServerTests {
    @Test(arguments: [
        ("Range: bytes=0-0\r\n", 206, 0..<1), ("Range: bytes=10-19\r\n", 206, 10..<20),
        ("Range: bytes=990-\r\n", 206, 990..<1_000), ("Range: bytes=-5\r\n", 206, 995..<1_000),
        ("Range: bytes=900-5000\r\n", 206, 900..<1_000), ("Range: bytes=-5000\r\n", 206, 0..<1_000),
        ("Range: bytes=1000-\r\n", 416, 0..<0), ("Range: bytes=-0\r\n", 416, 0..<0),
        ("Range: bytes=5-4\r\n", 200, 0..<1_000), ("Range: bytes=0-1,4-5\r\n", 200, 0..<1_000),
        ("Range: lines=0-1\r\n", 200, 0..<1_000), ("", 200, 0..<1_000),
        ("Range: bytes=4-\r\nIf-Range: \"pattern-1000-0\"\r\n", 206, 4..<1_000),
        ("Range: bytes=4-\r\nIf-Range: \"other\"\r\n", 200, 0..<1_000),
        ("Range: bytes=4-\r\nIf-Range: W/\"pattern-1000-0\"\r\n", 200, 0..<1_000),
        ("If-None-Match: \"x\", \"pattern-1000-0\"\r\n", 304, 0..<0),
    ])
    func requestedRangesAreServed(headers: String, status: Int, range: Range<Int>) throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        let answer = try client.get("/bytes/1000", headers: headers)
        #expect(answer.status == status && answer.body == LoopbackServer.Pattern(count: 1_000).bytes(in: range))
        let place = status == 206 ? "\(range.lowerBound)-\(range.upperBound - 1)" : "*"
        #expect(answer.head.contains("Content-Range: bytes \(place)/1000\r\n") == (status == 206 || status == 416))
        #expect(answer.head.contains("ETag: \"pattern-1000-0\"\r\n"))
        #expect(try client.get("/status/200").status == 200)
    }

    @Test func patternIsKnownAtEveryOffset() {
        let pattern = LoopbackServer.Pattern(count: 1_000_000, seed: 7)
        let all = pattern.bytes()
        #expect(all.count == 1_000_000 && pattern.matches(all) && pattern.matches(Data(all)))
        for offset in [0, 1, 65_520, 65_521, 65_522, 400_000, 999_999] {
            #expect(all[offset] == pattern.byte(at: offset))
            #expect(
                pattern.matches(all[offset...], at: offset) && pattern.matches(AnySequence(all[offset...]), at: offset))
        }
        #expect(!pattern.matches(all[16_384...], at: 0) && !pattern.matches(all + [0]) && !pattern.matches([0], at: -1))
        #expect(!LoopbackServer.Pattern(count: 1_000_000, seed: 8).matches(all))
        var torn = all
        torn[777_777] ^= 1
        #expect(!pattern.matches(torn))
    }

    @Test func demoAnswersItsRoutes() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        #expect(try client.get("/json").text == #"{"id":1,"languages":["Swift","C"],"name":"Ada"}"#)
        #expect(try client.get("/users/5").text.hasPrefix(#"{"id":5,"#))
        #expect(try client.get("/status/418").status == 418)
        #expect(try client.get("/headers", headers: "A: 1\r\n").text.contains(#"{"name":"A","value":"1"}"#))
        #expect(try client.get("/nowhere").status == 404)
        try client.send("PATCH /echo HTTP/1.1\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nhi")
        let echo = try client.answer()
        #expect(echo.text == "hi" && echo.head.contains("Content-Type: text/x\r\n"))
        #expect(
            try client.get("/lines/2", headers: "Connection: close\r\n").text == "e\r\nline 0\nline 1\n\r\n0\r\n\r\n")
        let slow = try PlainClient(port: server.port).get("/slow?count=2&interval=1", headers: "Connection: close\r\n")
        #expect(slow.text == "7\r\ndrop 0\n\r\n7\r\ndrop 1\n\r\n0\r\n\r\n")
        let stalled = try PlainClient(port: server.port)
        try stalled.send("GET /stall HTTP/1.1\r\n\r\n")
        #expect(try stalled.answer(hasBody: false).head.contains("Content-Length: 1000000\r\n"))
    }

    @Test func throttledBodyTakesItsTime() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let start = ContinuousClock.now
        #expect(try PlainClient(port: server.port).get("/bytes/20000?rate=100000").body.count == 20_000)
        #expect(ContinuousClock.now - start >= .milliseconds(150))
    }
}
