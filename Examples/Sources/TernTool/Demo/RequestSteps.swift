import Tern
import TernTesting

/// Requests whose responses are values.
enum RequestSteps {
    /// What the demo server says of a user.
    private struct User: Codable, Sendable, Equatable {
        let id: Int
        let name: String
        let languages: [String]
    }

    static func typedGet(_ stage: DemoStage) async throws -> String {
        let start = ContinuousClock.now
        let user: User = try await stage.client.get("users/1")
        let time = ContinuousClock.now - start
        try DemoFailure.unless(user.id == 1, "asked for user 1, got \(user.id)")
        return "user \(user.id) is \(user.name), who knows \(user.languages.joined(separator: " and ")), "
            + "in \(DurationText.span(time))"
    }

    static func post(_ stage: DemoStage) async throws -> String {
        let draft = User(id: 7, name: "Grace", languages: ["COBOL"])
        let request = try stage.client.request(.post, "echo", body: .json(draft))
        let response = try await stage.client.response(for: request, as: User.self)
        try DemoFailure.unless(response.value == draft, "sent \(draft), got \(response.value)")
        let metrics = response.metrics
        let connection = metrics.isReusedConnection ? "on the same connection" : "on a new connection"
        return "status \(response.status), the same value came back \(connection), "
            + "\(ByteText.size(metrics.sentBytes)) out and \(ByteText.size(metrics.receivedBytes)) in"
    }

    static func concurrentGets(_ stage: DemoStage) async throws -> String {
        let start = ContinuousClock.now
        let users = try await withThrowingTaskGroup(of: (Int, User).self) { group in
            for id in 1...64 {
                group.addTask { (id, try await stage.client.get("users/\(id)")) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let time = ContinuousClock.now - start
        let crossed = users.count { $0 != $1.id }
        try DemoFailure.unless(
            users.count == 64 && crossed == 0, "\(users.count) responses, \(crossed) of them crossed")
        let rate = Int(Double(users.count) / (time / .seconds(1)))
        let connections = stage.server?.counts.acceptedConnections ?? 0
        return "64 responses, each its own, in \(DurationText.span(time)) (\(rate) a second) "
            + "over \(connections) connections"
    }
}
