import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Errors as a user meets them, and the account at the end.
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
            throw DemoFailure(description: "a port where nobody listens gave a response")
        } catch let error as NetworkError {
            try DemoFailure.unless(error.kind == .connectionRefused, "another error: \(error)")
            return "\(error)"
        }
    }

    /// The last step: the session ends, and with it the stream of its events.
    static func events(_ stage: DemoStage) async throws -> String {
        await stage.session.finishTasksAndInvalidate()
        let count = await stage.events.value
        // One request, that to a port where nobody listens, reached no server.
        let served = (stage.server?.counts.requestsReceived ?? 0) + 1
        try DemoFailure.unless(count.ended == served, "\(count.ended) tasks ended, but \(served) requests were made")
        try DemoFailure.unless(
            count.resumed == count.ended + count.suspended, "started \(count.resumed), paused \(count.suspended)")
        try DemoFailure.unless(count.isInvalidated && count.dropped == 0, "\(count.dropped) events were dropped")
        return "\(count.resumed) resumed, \(count.suspended) suspended, \(count.filesMoved) files moved, "
            + "\(count.completed) completed, \(count.failed) failed, \(count.cancelled) cancelled, none dropped"
    }
}
