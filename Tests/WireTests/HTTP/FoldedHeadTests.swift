#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

/// Sends heads whose first field begins with a blank, as the second response of a session.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FoldedHeadTests {
    private static let heads = [
        "HTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\tX: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\n X: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n X: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n X: 1\r\n\r\n",
    ]

    private static let handler: LoopbackServer.Handler = { exchange in
        let path = exchange.request.path.dropFirst()
        guard let number = Int(path) else { return try exchange.respond(headers: [("X-Some", "field")], text: "ok") }
        try exchange.write(heads[number])
        exchange.closeAfterResponse()
    }

    /// Runs in a process of its own, which the defect would end.
    @Test func foldedFirstFieldDoesNotCrash() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                try await withServer(FoldedHeadTests.handler) { _, client in
                    try await withServer(FoldedHeadTests.handler) { other, _ in
                        for round in 0..<3 {
                            for number in FoldedHeadTests.heads.indices {
                                let path = round == 1 ? "\(other.url)\(number)" : "\(number)"
                                try await FoldedHeadTests.check(client, path)
                            }
                        }
                    }
                }
            }
        }
    }

    private static func check(_ client: Client, _ path: String) async throws {
        try await client.get("before")
        do {
            try await client.get(path)
            throw CheckFailure(description: "\(path) was accepted")
        } catch let error as NetworkError {
            guard error.kind == .malformedResponse else { throw CheckFailure(description: "\(path): \(error)") }
        }
        try await client.get("after")
    }
}
#endif
