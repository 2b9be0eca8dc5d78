public import Tern
import TernConcurrency
import TernTesting

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session {
    /// Shows the requests of the session on a page of this machine, until the calling task is cancelled or the session
    /// was invalidated.
    ///
    /// ```swift
    /// let page = Task {
    ///     try await session.inspect(port: 8077) { print("Requests: \($0)") }
    /// }
    /// ```
    ///
    /// The page is live: it has the tasks that run and the last ones, with a waterfall of their phases, a filter, the
    /// details of each, the open connections by origin, the stored responses of the session's cache, and an export as a
    /// HAR file. It needs no other resource than itself.
    ///
    /// Only this machine can reach it, at 127.0.0.1, and only with the random token in the URL. Requests that name
    /// another host, come from another site or use another method than GET and HEAD are refused. A person with the URL
    /// sees the requests, without the secrets that the inspector's redaction hides. At most eight viewers are served at
    /// a time; a slow one skips updates, and delays nothing.
    ///
    /// The call holds the session. It returns soon after a cancellation and after the invalidation.
    ///
    /// - Parameters:
    ///   - port: The TCP port; 0, the default, lets the system choose a free one.
    ///   - ready: Called once with the URL, when the page can be opened.
    /// - Throws: `NetworkError` of kind `.invalidRequest` if the observers of the session's configuration have no
    ///   `SessionInspector`, and `.connectionFailed` if the port cannot be used.
    public nonisolated func inspect(
        port: Int = 0, ready: @Sendable (_ url: URL) -> Void
    ) async throws(NetworkError) {
        guard let inspector = configuration.observers.lazy.compactMap({ $0 as? SessionInspector }).first else {
            throw NetworkError(
                .invalidRequest,
                reason: "the session cannot be inspected: the observers of its configuration have no SessionInspector")
        }
        let questions = InspectorQuestions()
        let page = inspector.addPage(of: id) { questions.finish() }
        defer { inspector.removePage(page) }
        // An earlier end is not observed.
        if await isInvalidated { return }
        let server: InspectorServer
        do {
            server = try InspectorServer(inspector, session: id, questions: questions, port: port)
        } catch {
            let reason = "the page of the inspector cannot listen on 127.0.0.1:\(port): \(error)"
            throw NetworkError(.connectionFailed, reason: reason, underlying: error)
        }
        ready(server.url)
        for await question in questions.stream {
            switch question.kind {
            case .connections: questions.answer(question, .connections(await openConnections))
            case .storedResponses(let limit):
                let stored = await configuration.exchangeCache?.storedResponses(limit: limit) ?? []
                questions.answer(question, .storedResponses(stored))
            }
        }
        questions.finish()
        await server.stop()
    }
}
