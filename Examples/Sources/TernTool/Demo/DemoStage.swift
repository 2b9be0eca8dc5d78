import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the steps of a demo work with.
struct DemoStage: Sendable {
    let session: Session
    let client: Client
    /// The demo's own server; nil when it works against an address of the user's.
    let server: LoopbackServer?
    /// The user's address.
    let url: String
    /// Where the demo's files are; removed at its end.
    let folder: URL
    let terminal: Terminal
    /// Counts what the registry tells, from before the first step.
    let events: Task<EventCount, Never>

    init(url: String?, terminal: Terminal) throws {
        var configuration = Session.Configuration()
        configuration.maximumConnectionsPerHost = 64
        if let url {
            server = nil
            self.url = url
            session = Session(configuration: configuration)
            client = Client(session: session)
        } else {
            // The loopback is reached directly, whatever the environment says.
            configuration.proxies = .none
            let picture = Array(try PictureSteps.png())
            let server = try LoopbackServer { exchange in
                guard exchange.request.path == PictureSteps.path else { return try LoopbackServer.answerDemo(exchange) }
                try exchange.respond(headers: [("Content-Type", "image/png")], body: picture)
            }
            self.server = server
            self.url = server.url.absoluteString
            session = Session(configuration: configuration)
            client = Client(baseURL: server.url, session: session)
        }
        self.terminal = terminal
        let unique = UInt64.random(in: 0 ... .max)
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-demo-\(unique)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let events = session.tasks.events
        // Ends with the session, which `leave` invalidates.
        self.events = Task {
            var count = EventCount()
            for await event in events { count.add(event) }
            return count
        }
    }

    func file(_ name: String) -> URL { folder.appending(path: name) }

    /// The names of what is in the demo's folder.
    func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }

    /// Ends what may still run, and leaves nothing behind.
    func leave() async throws {
        await session.invalidateAndCancel()
        server?.stop()
        try FileManager.default.removeItem(at: folder)
    }
}

/// Why a step did not do what it should.
struct DemoFailure: Error, CustomStringConvertible {
    let description: String

    /// Throws unless the condition holds.
    static func unless(_ condition: Bool, _ reason: @autoclosure () -> String) throws(DemoFailure) {
        if !condition { throw DemoFailure(description: reason()) }
    }
}
