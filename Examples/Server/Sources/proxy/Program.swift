import Hummingbird
import NIOCore
import Tern

/// A server that forwards every request to an origin, and passes its responses on while they arrive:
/// `swift run proxy http://127.0.0.1:8000`.
@main
struct Program {
    static func main() async throws {
        let origin = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8000"
        let proxy = try Proxy(origin: origin)
        try await proxy.application(port: 8080).runService()
    }
}

extension Proxy {
    /// Returns the server, on this machine only.
    func application(
        port: Int, onServerRunning: @escaping @Sendable (any Channel) async -> Void = { _ in }
    ) -> Application<Proxy> {
        Application(
            responder: self,
            server: .http1(configuration: .init(additionalChannelHandlers: [ClientPresence()])),
            configuration: .init(address: .hostname("127.0.0.1", port: port)),
            onServerRunning: onServerRunning)
    }
}
