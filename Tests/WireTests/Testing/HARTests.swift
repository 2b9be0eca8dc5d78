#if !TERN_URLSESSION
import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// HAR files of conversations with a real server.
@Suite(.timeLimit(.minutes(1)))
struct HARTests {
    @Test func phasesAreMeasured() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "hello")
        } test: { server, _ in
            let recorder = Recorder(.test())
            let client = Client(baseURL: server.url, session: Session(configuration: .test(), recorder: recorder))
            let before = Date()
            for _ in 0..<2 { _ = try await client.get("a") }
            let entries = try #require(
                try TernJSONDecoder().decode(JSONValue.self, from: recorder.recording.har())["log"]?["entries"]?.array)
            for (index, entry) in entries.enumerated() {
                let timings = try #require(entry["timings"])
                let phases = ["dns", "connect", "send", "wait", "receive"].compactMap { timings[$0]?.number }
                let sum = phases.filter { $0 >= 0 }.reduce(0, +)
                #expect(phases.count == 5 && timings["ssl"] == -1 && timings["blocked"] == -1)
                // A reused connection was not opened for this request.
                #expect((timings["connect"] == -1) == (index == 1), "\(timings)")
                let time = try #require(entry["time"]?.number)
                #expect(time > 0 && abs(time - sum) < 0.01, "\(time) \(timings)")
                #expect(entry["request"]?["httpVersion"] == "HTTP/1.1" && entry["response"]?["statusText"] == "OK")
                #expect(entry["serverIPAddress"] == "127.0.0.1")
                #expect((entry["response"]?["_transferSize"]?.integer ?? 0) > 5)
            }
            let started = try #require(try Recording(har: recorder.recording.har()).exchanges[0].details?.started)
            #expect(started > before.addingTimeInterval(-0.01) && started < Date().addingTimeInterval(0.01))
        }
    }

    /// A recorded session shows what was measured on the wire, and what the server said.
    @Test func recordedResponseHasTheMeasurementsOfTheWire() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "hello")
        } test: { server, _ in
            let recorder = Recorder(.test())
            let client = Client(baseURL: server.url, session: Session(configuration: .test(), recorder: recorder))
            let live = try await client.response(for: client.request(.get, "a"))
            #expect(live.metrics.connect != nil && live.metrics.remotePort == Int(server.url.port ?? 0))
            #expect(live.head.reasonPhrase == "OK")
            let replay = StubTransport(replaying: try Recording(har: recorder.recording.har()))
            let played = try await Client(baseURL: server.url, session: Session(stub: replay)).response(
                for: client.request(.get, "a"))
            #expect(played.head.reasonPhrase == live.head.reasonPhrase && played.headers == live.headers)
            #expect(played.metrics.connect == nil)
        }
    }

    @Test func compressionIsCounted() async throws {
        let zipped: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6, 0x10, 0x36, 5, 0, 0, 0,
        ]
        try await withServer { exchange in
            try exchange.respond(
                headers: [("Content-Encoding", "gzip"), ("Content-Type", "text/plain")], body: zipped)
        } test: { server, _ in
            let recorder = Recorder(.test())
            let client = Client(baseURL: server.url, session: Session(configuration: .test(), recorder: recorder))
            _ = try await client.get("x")
            let file = try TernJSONDecoder().decode(JSONValue.self, from: recorder.recording.har())
            let response = file["log"]?["entries"]?[0]?["response"]
            #expect(response?["bodySize"] == 25 && response?["content"]?["size"] == 5)
            #expect(response?["content"]?["compression"] == -20 && response?["content"]?["text"] == "hello")
        }
    }

    private final class Watcher: SessionObserver {
        let requests = Lock(0)

        func willSend(_ request: Request, of task: AnySessionTask) { requests.withLock { $0 += 1 } }
    }

    /// A recorder may have the configuration of its session.
    @Test func observersSeeARecordedRequestOnce() async throws {
        let observer = Watcher()
        var configuration = Session.Configuration.test()
        configuration.observers = [observer]
        try await withServer { exchange in
            try exchange.respond(text: "hello")
        } test: { server, _ in
            let recorder = Recorder(configuration)
            let session = Session(configuration: configuration, recorder: recorder)
            _ = try await Client(baseURL: server.url, session: session).get("a")
            #expect(observer.requests.withLock { $0 } == 1)
        }
    }
}
#endif
