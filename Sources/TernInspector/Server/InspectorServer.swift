import Synchronization
import Tern
import TernConcurrency
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The server of one page. It has a thread for each viewer, which takes what is new a few times a second, so that
/// nothing waits for a slow one and nothing is kept for it.
final class InspectorServer: Sendable {
    /// The number of viewers that receive events at a time.
    static let viewerLimit = 8
    /// The number of connections at a time.
    private static let connectionLimit = 32
    /// The time between two looks for changes.
    private static let interval = Duration.milliseconds(250)
    /// The number of looks without a change after which a viewer gets a sign of life. A viewer that is gone is noticed.
    private static let quietLooks = 40
    /// The number of tasks in one event.
    static let taskLimit = 250
    /// The number of stored responses in a list.
    private static let storedLimit = 500

    let url: URL
    private let server: LoopbackServer

    init(
        _ inspector: SessionInspector, session: Session.ID, questions: InspectorQuestions, port: Int,
        token: String = InspectorAccess.randomText()
    ) throws(LoopbackServer.Failure) {
        let site = Site(inspector: inspector, session: session, questions: questions, token: token)
        server = try LoopbackServer(
            on: .ipv4, port: port, acceptsConnections: true, requestLogLimit: 0,
            connectionLimit: Self.connectionLimit
        ) { exchange in
            try site.answer(exchange)
        }
        site.port.store(server.port, ordering: .sequentiallyConsistent)
        url = server.url("/\(token)/")
    }

    /// Ends the connections. Does not block a thread of Swift's tasks.
    func stop() async {
        let ended = Waiter<Void>()
        let code = SystemThread.start { [server] in
            server.stop()
            ended.resume()
        }
        // Without a thread, the last reference stops the server.
        guard code == 0 else { return }
        // The end is waited for after a cancellation, too: it comes at once.
        await ended.wait(onCancel: {})
    }

    /// The answers to the requests, on the threads of their connections.
    private final class Site: Sendable {
        let inspector: SessionInspector
        let session: Session.ID
        let questions: InspectorQuestions
        let token: String
        /// Known before the URL is, and thus before the first request that can be answered.
        let port = Atomic<Int>(0)
        private let viewers = Atomic<Int>(0)

        init(inspector: SessionInspector, session: Session.ID, questions: InspectorQuestions, token: String) {
            self.inspector = inspector
            self.session = session
            self.questions = questions
            self.token = token
        }

        func answer(_ exchange: LoopbackServer.Exchange) throws {
            let request = exchange.request
            let access = InspectorAccess(port: port.load(ordering: .sequentiallyConsistent), token: token)
            let question = InspectorAccess.Question(
                method: request.method, target: request.target, hosts: request.values(of: "Host"),
                origin: request["Origin"], fetchSite: request["Sec-Fetch-Site"])
            switch access.decision(about: question) {
            case .refuse(let status, let reason):
                exchange.closeAfterResponse()
                let allow: LoopbackServer.Fields = status == 405 ? [("Allow", "GET, HEAD")] : []
                try exchange.respond(status: status, headers: Self.fields + allow, text: reason + "\n")
            case .answer(.page):
                let nonce = InspectorAccess.randomText()
                try respond(
                    exchange, Array(InspectorPage.text(nonce: nonce).utf8), type: "text/html; charset=utf-8",
                    adding: [("Content-Security-Policy", InspectorPage.policy(nonce: nonce))])
            case .answer(.events): try sendEvents(exchange)
            case .answer(.task(let number)):
                guard let task = inspector.task(number) else {
                    let reason = "the task is not kept any more\n"
                    return try exchange.respond(status: 404, headers: Self.fields, text: reason)
                }
                try respond(exchange, json: InspectorText(inspector.redaction).details(of: task))
            case .answer(.cache):
                var stored: [StoredResponse] = []
                if case .storedResponses(let all) = questions.ask(.storedResponses(limit: InspectorServer.storedLimit))
                {
                    stored = all
                }
                try respond(exchange, json: InspectorText(inspector.redaction).list(of: stored))
            case .answer(.har):
                let har = try InspectorText(inspector.redaction).har(of: inspector.endedTasks)
                try respond(
                    exchange, Array(har), type: "application/json",
                    adding: [("Content-Disposition", "attachment; filename=\"requests.har\"")])
            }
        }

        // MARK: Answers

        /// The fields of every answer. None lets another origin read it.
        private static let fields: LoopbackServer.Fields = [
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("X-Frame-Options", "DENY"),
        ]

        private func respond(_ exchange: LoopbackServer.Exchange, json value: some Encodable) throws {
            try respond(exchange, Array(try TernJSONEncoder().encode(value)), type: "application/json")
        }

        private func respond(
            _ exchange: LoopbackServer.Exchange, _ body: [UInt8], type: String, adding more: LoopbackServer.Fields = []
        ) throws {
            try exchange.respond(headers: Self.fields + [("Content-Type", type)] + more, body: body)
        }

        // MARK: Events

        /// Sends changes until the viewer or the page ends.
        private func sendEvents(_ exchange: LoopbackServer.Exchange) throws {
            exchange.closeAfterResponse()
            guard exchange.request.method == "GET" else {
                return try respond(exchange, [], type: "text/event-stream")
            }
            let count = viewers.add(1, ordering: .sequentiallyConsistent).newValue
            defer { viewers.subtract(1, ordering: .sequentiallyConsistent) }
            guard count <= InspectorServer.viewerLimit else {
                return try exchange.respond(status: 503, headers: Self.fields, text: "too many viewers\n")
            }
            try exchange.writeHead(
                headers: Self.fields + [("Content-Type", "text/event-stream"), ("Connection", "close")])
            var feed = InspectorFeed()
            var quiet = 0
            while true {
                let changes = inspector.changes(since: feed.revision, limit: InspectorServer.taskLimit)
                var open: [Session.OpenConnections] = []
                if case .connections(let all) = questions.ask(.connections) { open = all }
                let text = InspectorText(inspector.redaction)
                if let update = feed.update(changes, connections: open, of: session, by: text) {
                    try exchange.write(Array("data: ".utf8) + Array(try TernJSONEncoder().encode(update)) + [10, 10])
                    quiet = 0
                } else {
                    quiet += 1
                    if quiet >= InspectorServer.quietLooks {
                        try exchange.write(": \n\n")
                        quiet = 0
                    }
                }
                try exchange.pause(for: InspectorServer.interval)
            }
        }
    }
}
