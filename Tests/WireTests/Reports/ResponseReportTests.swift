#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Public bug reports of other clients about heads and codings of responses, tried on Tern. Each test names its report.
@Suite("Public reports: responses", .timeLimit(.minutes(1)))
struct ResponseReportTests {
    private static let text = "hello, hello, hello, hello"
    /// The text as raw DEFLATE (RFC 1951), as zlib (RFC 1950), and as raw DEFLATE in gzip (RFC 1952).
    private static let raw: [UInt8] = [
        0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0xC8, 0xC0, 0xA4, 0x00,
    ]
    private static let zlib: [UInt8] = [
        0x78, 0x9C, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0xC8, 0xC0, 0xA4, 0x00, 0x7C, 0x16, 0x09,
        0x35,
    ]
    private static let rawInGzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x3B, 0xED, 0x71, 0xF6, 0xE4, 0xC9,
        0xEB, 0x81, 0x27, 0x0E, 0x2C, 0x61, 0x00, 0x00, 0x7F, 0xDC, 0xF3, 0xF3, 0x0B, 0x00, 0x00, 0x00,
    ]

    /// axios/axios #3887, sindresorhus/decompress-response #34 and nahi/httpclient #244: servers mean raw DEFLATE by
    /// `deflate`.
    @Test(arguments: [("deflate", raw), ("deflate", zlib), ("Deflate", raw), ("deflate, gzip", rawInGzip)])
    func deflateMayBeRaw(coding: String, body: [UInt8]) async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", coding), ("Content-Type", "text/plain")], body: body)
        } test: { _, client in
            let text: String = try await client.get("x")
            #expect(text == Self.text)
        }
    }

    /// lysine-dev/okhttp #7936, lalinsky/dusty #159 and snoyberg/http-client #521: interim responses before the final
    /// one, whose connection serves the next request.
    @Test(arguments: [1, 3]) func interimResponsesDelayNothing(count: Int) async throws {
        try await withServer { exchange in
            for _ in 0..<count {
                try exchange.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
                try exchange.waitUntilReceived()
            }
            try exchange.respond(text: "\(exchange.number)")
        } test: { server, client in
            for number in 1...3 {
                let text: String = try await client.get("x")
                #expect(text == "\(number)")
            }
            #expect(Set(server.requests.map(\.connectionIndex)).count == 1)
        }
    }

    /// nodejs/node #20256: a server that announces `Connection: close` ends the connection later.
    @Test func anAnnouncedEndIsHonoured() async throws {
        let isSecondDone = LoopbackServer.Gate()
        try await withServer { exchange in
            _ = try exchange.readBody()
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n\(exchange.number)")
            if exchange.number == 1 { try exchange.wait(for: isSecondDone) }
            exchange.close()
        } test: { server, client in
            for number in 1...2 {
                let text: String = try await client.post("x", body: .text("a"))
                #expect(text == "\(number)")
            }
            isSecondDone.open()
            #expect(Set(server.requests.map(\.connectionIndex)).count == 2)
        }
    }
}
#endif
