// Checks that a resolver that never answers delays neither its own requests, once they are cancelled or out of time,
// nor any other. Runs in a network of its own, where scripts/checks/resolver has set 127.0.0.53 as the only resolver;
// prints "resolver: N endings in time" as its last line.
import Foundation
import Glibc
import Tern
import TernTesting

struct CheckFailure: Error, CustomStringConvertible {
    let description: String
}

/// Activates the loopback interface, which is down in a new network.
func raiseLoopback() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(descriptor) }
    // The struct ifreq: 16 bytes of name, then the flags.
    var request = [UInt8]("lo".utf8) + [UInt8](repeating: 0, count: 38)
    let (getFlags, setFlags, isUp): (UInt, UInt, UInt8) = (0x8913, 0x8914, 0x01)
    guard ioctl(descriptor, getFlags, &request) == 0 else { throw CheckFailure(description: "lo: errno \(errno)") }
    request[16] |= isUp
    guard ioctl(descriptor, setFlags, &request) == 0 else { throw CheckFailure(description: "lo up: errno \(errno)") }
}

/// Receives queries and answers none.
final class SilentResolver: Sendable {
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(53).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.53")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw CheckFailure(description: "127.0.0.53:53: errno \(errno)") }
    }

    /// Returns the names queried so far, in the form of the queries.
    func takeQueries() -> [String] {
        var names: [String] = []
        var bytes = [UInt8](repeating: 0, count: 512)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            guard count > 12 else { return names }
            names.append(String(decoding: bytes[12..<count].map { $0 < 32 ? UInt8(ascii: ".") : $0 }, as: UTF8.self))
        }
    }

    func waitForQuery(of name: String) async {
        while !takeQueries().contains(where: { $0.contains(name) }) { await Task.yield() }
    }
}

@main
struct Resolver {
    private static let limit = Duration.milliseconds(50)
    let resolver: SilentResolver
    let server: LoopbackServer
    let client: Client

    static func main() async throws {
        try raiseLoopback()
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let server = try LoopbackServer { try $0.respond(text: "hello") }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let run = Resolver(resolver: try SilentResolver(), server: server, client: client)
        try await run.othersProceed()
        let endings: [(String, (String) async throws -> Duration)] = [
            ("cancel() of a handle", run.cancelHandle), ("cancellation of the Swift task", run.cancelSwiftTask),
            ("the connect limit", run.runOutOfConnectTime), ("the total limit", run.runOutOfTotalTime),
        ]
        for (index, (name, ending)) in endings.enumerated() {
            // A busy machine can be late by itself: the best of several tries is the time that this code needs.
            var delays: [Duration] = []
            for attempt in 0..<12 where delays.allSatisfy({ $0 >= limit }) {
                async let others: Void = run.othersProceed()
                delays.append(try await ending("never-\(index)-\(attempt)"))
                try await others
            }
            print("\(name): late by \(delays)")
            guard let best = delays.min(), best < limit else { throw CheckFailure(description: "\(name) is late") }
        }
        print("resolver: \(endings.count) endings in time")
    }

    /// Sends 100 requests, 10 at a time, that need no resolver.
    private func othersProceed() async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<10 {
                group.addTask { for _ in 0..<10 { try await client.get("") } }
            }
            try await group.waitForAll()
        }
    }

    private func request(_ name: String, _ timeouts: Timeouts) throws -> Request {
        var request = try Request(.get, "http://\(name).test:\(server.port)/")
        request.timeouts = timeouts
        return request
    }

    /// Returns how long after `due` a task ended, and checks that it ended with an error of this kind.
    private func delay(
        of kind: NetworkError.Kind, after due: ContinuousClock.Instant, _ value: () async throws -> Void
    ) async throws -> Duration {
        do {
            try await value()
        } catch let error as NetworkError where error.kind == kind {
            return ContinuousClock.now - due
        }
        throw CheckFailure(description: "no error of kind \(kind)")
    }

    private func cancelHandle(_ name: String) async throws -> Duration {
        let task = client.session.task(for: try request(name, Timeouts(connect: nil)), startsImmediately: true)
        await resolver.waitForQuery(of: name)
        let due = ContinuousClock.now
        task.cancel()
        return try await delay(of: .cancelled, after: due) { _ = try await task.value }
    }

    private func cancelSwiftTask(_ name: String) async throws -> Duration {
        let request = try request(name, Timeouts(connect: nil))
        let task = Task { try await client.session.response(for: request) }
        await resolver.waitForQuery(of: name)
        let due = ContinuousClock.now
        task.cancel()
        return try await delay(of: .cancelled, after: due) { _ = try await task.value }
    }

    private func runOutOfConnectTime(_ name: String) async throws -> Duration {
        let due = ContinuousClock.now + .milliseconds(300)
        let request = try request(name, Timeouts(connect: .milliseconds(300)))
        return try await delay(of: .connectTimedOut, after: due) { _ = try await client.session.response(for: request) }
    }

    private func runOutOfTotalTime(_ name: String) async throws -> Duration {
        let due = ContinuousClock.now + .milliseconds(300)
        let request = try request(name, Timeouts(connect: nil, total: .milliseconds(300)))
        return try await delay(of: .totalTimedOut, after: due) { _ = try await client.session.response(for: request) }
    }
}
