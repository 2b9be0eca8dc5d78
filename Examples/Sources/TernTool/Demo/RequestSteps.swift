import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Steps whose responses are values.
enum RequestSteps {
    /// A user of the demo server.
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

/// Steps that show errors, and the final counts.
enum FailureSteps {
    static func notFound(_ stage: DemoStage) async throws -> String {
        do {
            try await stage.client.get("nowhere", query: ["token": "secret"])
            throw DemoFailure(description: "a path that does not exist gave a response")
        } catch let error as NetworkError {
            try DemoFailure.unless(error.kind == .status && error.status == 404, "another error: \(error)")
            try DemoFailure.unless(!"\(error)".contains("secret"), "the error tells a secret: \(error)")
            return "\(error); the body: \(String(decoding: error.body, as: UTF8.self))"
        }
    }

    static func refused(_ stage: DemoStage) async throws -> String {
        let port = try LoopbackServer.refusingPort()
        do {
            try await stage.client.get("http://127.0.0.1:\(port)/")
            throw DemoFailure(description: "a port that refuses connections gave a response")
        } catch let error as NetworkError {
            try DemoFailure.unless(error.kind == .connectionRefused, "another error: \(error)")
            return "\(error)"
        }
    }

    /// Ends the session, which ends the stream of its events. The last step.
    static func events(_ stage: DemoStage) async throws -> String {
        await stage.session.finishTasksAndInvalidate()
        let count = await stage.events.value
        // One request went to a port that refuses connections and reached no server.
        let served = (stage.server?.counts.requestsReceived ?? 0) + 1
        try DemoFailure.unless(count.ended == served, "\(count.ended) tasks ended, but \(served) requests were made")
        try DemoFailure.unless(
            count.resumed == count.ended + count.suspended, "started \(count.resumed), paused \(count.suspended)")
        try DemoFailure.unless(count.isInvalidated && count.dropped == 0, "\(count.dropped) events were dropped")
        return "\(count.resumed) resumed, \(count.suspended) suspended, \(count.filesMoved) files moved, "
            + "\(count.completed) completed, \(count.failed) failed, \(count.cancelled) cancelled, none dropped"
    }
}

/// Steps for an address that the user gives.
enum AddressSteps {
    static func head(_ stage: DemoStage) async throws -> String {
        do {
            let head = try await stage.client.head(stage.url)
            let type = Terminal.plain(head.headers["Content-Type"] ?? "no type")
            let length = head.contentLength.map { ByteText.size($0) } ?? "unknown length"
            return "status \(head.status), \(head.version.rawValue), \(type), \(length), "
                + "server \(Terminal.plain(head.headers["Server"] ?? "unnamed"))"
        } catch {
            guard error.status == 405 || error.status == 501 else { throw error }
            return "the server does not know HEAD (\(error.status ?? 0))"
        }
    }

    static func get(_ stage: DemoStage) async throws -> String {
        let request = try stage.client.request(.get, stage.url)
        do {
            let response = try await stage.client.response(for: request)
            return "status \(response.status), \(ByteText.size(Int64(response.value.count))) · "
                + MetricsLine.text(response.metrics)
        } catch {
            guard error.kind == .tooLarge else { throw error }
            return "too large for the memory, as it should say: \(error)"
        }
    }

    static func download(_ stage: DemoStage) async throws -> String {
        let task = stage.client.download(stage.url) { _, head in stage.file(head.suggestedFilename) }
        let bar = await TerminalBar(await task.response?.suggestedFilename ?? "download", on: stage.terminal)
        await bar.follow(task)
        let file = try await task.value
        let time = task.metrics?.total ?? bar.elapsed
        let size = await bar.status.completed
        return "\(file.lastPathComponent), \(ByteText.size(size)) in \(DurationText.span(time)), "
            + ByteText.rate(size, in: time)
    }

    static func stream(_ stage: DemoStage) async throws -> String {
        let start = ContinuousClock.now
        let stream = stage.client.stream(stage.url)
        var (chunks, bytes) = (0, Int64(0))
        for try await chunk in stream.chunks {
            chunks += 1
            bytes += Int64(chunk.count)
        }
        let firstByte = stream.task.metrics?.firstByte.map { DurationText.span($0) } ?? "unknown"
        return "\(ByteText.size(bytes)) in \(chunks) chunks in \(DurationText.span(.now - start)), "
            + "first byte after \(firstByte)"
    }
}
