import TernStreaming
import Testing

@Suite("Server-sent events: values")
struct ServerSentEventTests {
    @Test func anEventIsAMessageByDefault() {
        #expect(ServerSentEvent(data: "a") == ServerSentEvent(type: "message", data: "a", id: ""))
    }
}
