#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// Reads the server-sent events of servers of other authors: sse-starlette under uvicorn and hypercorn.
@Suite("Event servers", .serialized, .timeLimit(.minutes(2)), .enabled(if: Venv.isExpected, Venv.absence))
struct EventServerTests {
    private static let count = 2_000

    /// The servers are killed and started again in the middle, twice.
    @Test(arguments: EventServer.Kind.allCases)
    func noEventIsLostOrDoubledWhenTheServerRestarts(kind: EventServer.Kind) async throws {
        let server = try await EventServer(kind)
        defer { server.stop() }
        let client = try server.client()
        let last = Self.count
        let events = client.events("count", query: ["last": "\(last)"]).through { $0.id == "\(last)" }
        let received = Lock<[Int]>([])
        let gates = [(at: 500, gate: LoopbackServer.Gate()), (at: 1_200, gate: LoopbackServer.Gate())]
        let reader = Task {
            for try await event in events {
                #expect(event.type == "number" && event.data == "event \(event.id)")
                guard let id = Int(event.id) else { continue }
                received.withLock { $0.append(id) }
                for gate in gates where gate.at == id { gate.gate.open() }
            }
        }
        for (_, gate) in gates {
            try await gate.wait()
            try await server.restart()
        }
        try await reader.value
        #expect(received.withLock { $0 } == Array(1...last))
    }

    @Test(arguments: EventServer.Kind.allCases)
    func answerOfALanguageModelEndsWithDone(kind: EventServer.Kind) async throws {
        struct Prompt: Encodable {
            var prompt: String
        }
        struct Delta: Decodable {
            var text: String
        }
        let server = try await EventServer(kind)
        defer { server.stop() }
        let client = try server.client()
        var text = ""
        let events = client.events("chat", method: .post, body: .json(Prompt(prompt: "a b\nc é")))
        for try await delta in events.decode(Delta.self, until: "[DONE]") { text += delta.text }
        #expect(text == "a b\nc é")
    }

    @Test(arguments: EventServer.Kind.allCases)
    func refusalCarriesTheBody(kind: EventServer.Kind) async throws {
        let server = try await EventServer(kind)
        defer { server.stop() }
        let client = try server.client()
        let error = try await failure { for try await _ in client.events("missing") {} }
        #expect(error.status == 404 && String(decoding: error.body, as: UTF8.self) == "Not Found")
    }
}

/// A server of events on a free port of 127.0.0.1. It ends with its last reference, and with this process.
final class EventServer: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case uvicorn, hypercorn
        case hypercornOverHTTP2 = "hypercorn over HTTP/2"
    }

    private let kind: Kind
    private let port: Int
    private let folder: URL
    private let child = Lock<Child?>(nil)

    init(_ kind: Kind) async throws {
        self.kind = kind
        port = try LoopbackPort.free()
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-events-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.application.write(to: folder.appending(path: "events.py"), atomically: true, encoding: .utf8)
        try await start()
    }

    deinit { stop() }

    func client() throws -> Client {
        let configuration = Session.Configuration.test { $0.usesHTTP2WithoutTLS = kind == .hypercornOverHTTP2 }
        return try Client(baseURL: "http://127.0.0.1:\(port)", session: Session(configuration: configuration))
    }

    /// Kills the server, and starts it again on the same port.
    func restart() async throws {
        child.withLock { $0 = nil }
        try await start()
    }

    func stop() {
        child.withLock { $0 = nil }
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
    }

    private func start() async throws {
        let program =
            switch kind {
            case .uvicorn: ["uvicorn", "--port", "\(port)", "--log-level", "warning"]
            case .hypercorn, .hypercornOverHTTP2: ["hypercorn", "--workers", "0", "--bind", "127.0.0.1:\(port)"]
            }
        let arguments = ["/usr/bin/env", "PYTHONPATH=\(folder.path)", Venv.program("python"), "-m"] + program
        let output = folder.appending(path: "output").path
        let child = try Child(arguments + ["events:app"], output: output)
        guard await LoopbackPort.wait([port]) else {
            let said = try String(contentsOfFile: output, encoding: .utf8)
            throw Child.Failure(description: "\(kind.rawValue) does not start: \(said)")
        }
        self.child.withLock { $0 = child }
    }

    /// `/count` counts from the event after `Last-Event-ID`, and `/chat` repeats a prompt word by word.
    private static let application = #"""
        import asyncio, json, re
        from sse_starlette.sse import EventSourceResponse
        from starlette.applications import Starlette
        from starlette.routing import Route

        async def count(request):
            first = int(request.headers.get("last-event-id", "0"))
            last = int(request.query_params["last"])
            async def events():
                for number in range(first + 1, last + 1):
                    yield {"id": str(number), "event": "number", "data": f"event {number}", "retry": 100}
                    if number % 10 == 0:
                        await asyncio.sleep(0.002)
                await asyncio.sleep(3600)
            return EventSourceResponse(events())

        async def chat(request):
            prompt = (await request.json())["prompt"]
            async def events():
                for word in re.findall(r"\s*\S+", prompt):
                    yield {"data": json.dumps({"text": word})}
                yield {"data": "[DONE]"}
            return EventSourceResponse(events())

        app = Starlette(routes=[Route("/count", count), Route("/chat", chat, methods=["POST"])])
        """#
}
#endif
