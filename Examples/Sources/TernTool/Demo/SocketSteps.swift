import Tern
import TernStreaming

/// The step with a connection that stays open.
enum SocketSteps {
    static let path = "/socket"

    static func echo(_ stage: DemoStage) async throws -> String {
        let socket = try await stage.client.webSocket("socket", protocols: ["demo"])
        let (count, start) = (2_000, ContinuousClock.now)
        async let sent: Void = {
            for number in 0..<count { try await socket.send("message \(number)") }
        }()
        for number in 0..<count {
            let message = try await socket.receive()
            try DemoFailure.unless(message == .text("message \(number)"), "message \(number) did not come back")
        }
        try await sent
        let time = ContinuousClock.now - start
        let roundTrip = try await socket.ping()
        try await socket.close(reason: "done")
        try DemoFailure.unless(socket.closure?.isClean == true, "the socket was not closed properly")
        return "\(count) messages there and back in \(DurationText.span(time)), ping \(DurationText.span(roundTrip)), "
            + "closed with \(socket.closure?.code ?? .abnormalClosure)"
    }
}
