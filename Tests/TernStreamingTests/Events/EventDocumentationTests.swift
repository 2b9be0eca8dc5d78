import Tern
import TernStreaming
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/ServerSentEvents.md, word for word.

private struct Prompt: Encodable {
    var model: String
    var prompt: String
    var stream = true
}
private struct Delta: Decodable {
    var text: String
}
private struct Row: Decodable {
    var id: Int
}

private func answer(to question: String, from client: Client) async throws -> String {
    var answer = ""
    let body = Request.Body.json(Prompt(model: "small", prompt: question))
    let events = client.events("v1/completions", method: .post, body: body)
    for try await delta in events.decode(Delta.self, until: "[DONE]") {
        answer += delta.text
    }
    return answer
}

@Suite("Documentation: server-sent events", .timeLimit(.minutes(1)))
struct EventDocumentationTests {
    @Test func examplesMatchTheirArticle() async throws {
        let stub = StubTransport { call in
            switch call.path {
            case "/notifications": call.index == 0 ? .events([.event("hello")]) : .status(204)
            case "/v1/completions": .events([.event(#"{"text":"a"}"#), .event(#"{"text":"b"}"#), .event("[DONE]")])
            case "/v1/messages": .events([.event("x"), .event("end", type: "message_stop")])
            case "/export": .text("{\"id\":1}\n{\"id\":2}\n")
            default:
                .text("--b\r\n\r\none\r\n--b--\r\n", contentType: "multipart/mixed; boundary=b")
            }
        }
        let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
        var fast = EventStreamOptions()
        fast.reconnection.firstDelay = .zero
        for try await event in client.events("notifications", options: fast) {
            #expect(event.type == "message" && event.data == "hello")
        }
        #expect(try await answer(to: "?", from: client) == "ab")
        let body = Request.Body.none
        var data: [String] = []
        for try await event in client.events("v1/messages", method: .post, body: body).through({
            $0.type == "message_stop"
        }) {
            data.append(event.data)
        }
        #expect(data == ["x", "end"])
        do {
            var patient = EventStreamOptions()
            patient.reconnection.methodsBeforeFirstEvent = [.post]
            patient.reconnection.statuses = [429, 503]
            let events = client.events("v1/completions", method: .post, body: body, options: patient)
            #expect(try await allData(of: events) == [#"{"text":"a"}"#, #"{"text":"b"}"#, "[DONE]"])
        }
        var ids: [Int] = []
        for try await row in client.stream("export").decodeLines(Row.self) { ids.append(row.id) }
        for try await part in client.stream("camera").parts { #expect(part.body == Data("one".utf8)) }
        #expect(ids == [1, 2])
    }

    @Test func optionsAndStatesMatchTheirArticle() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeEvents([.event("hello", id: "1"), .comment("ping")])
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: .direct))
        var options = EventStreamOptions()
        options.lastEventID = "41"
        options.silenceTimeout = .seconds(30)
        options.reconnection.methods.insert(.post)
        options.reconnection.statuses = [502, 503, 504]
        options.reconnection.limit = .max
        let events = client.events("notifications", options: options)
        for try await event in events {
            #expect(event == ServerSentEvent(data: "hello", id: "1"))
            break
        }
        await events.close()
        var texts: [String] = []
        let show = { texts.append($0) }
        for await state in events.states {
            switch state {
            case .connecting: show("connecting")
            case .waitingForConnection: show("too many streams")
            case .open: show("connected")
            case .waiting(let date, _): show(date.map { "next attempt at \($0)" } ?? "no network")
            case .closed(let end): show("\(end)")
            }
        }
        #expect(texts == ["the stream was closed"])
    }
}
