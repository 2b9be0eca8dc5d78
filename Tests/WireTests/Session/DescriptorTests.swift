#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import TernConcurrency
import TernTesting
import Testing

@testable import Tern

/// Runs a process out of descriptors: requests fail with this reason, and work again once there are descriptors.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DescriptorTests {
    /// Takes all descriptors that this process may have, and returns them.
    private struct Hoard {
        private var held: [Int32] = []

        init() async {
            // The first session has the temporary folder swept, whose descriptor would be given back at an unknown
            // time.
            OrphanSweeper.shared.sweepTemporaryFolder()
            await OrphanSweeper.shared.sweep(beside: "/tern-no-folder/file")
            var limits = rlimit()
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
            limits.rlim_cur = min(limits.rlim_cur, 256)
            unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
            take()
        }

        mutating func take() {
            while true {
                let descriptor = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
                if descriptor < 0 { return }
                held.append(descriptor)
            }
        }

        mutating func giveBack(_ count: Int = .max) {
            for descriptor in held.suffix(count) { close(descriptor) }
            held.removeLast(min(count, held.count))
        }
    }

    private static func expectNamed(_ session: Session, _ url: String) async throws {
        do {
            _ = try await session.response(for: Request(.get, url))
            throw CheckFailure(description: "\(url) was reached")
        } catch let error as NetworkError {
            guard error.reason.contains("EMFILE"), [.connectionFailed, .dns].contains(error.kind),
                error.metrics?.sentBytes ?? 0 == 0
            else { throw CheckFailure(description: "\(url): \(error)") }
        }
    }

    private static func expectReached(_ session: Session, _ url: String) async throws {
        let text = try await session.response(for: Request(.get, url), decode: .string).value
        guard text == "ok" else { throw CheckFailure(description: text) }
    }

    @Test func aSessionWithoutADescriptorFailsItsRequestsAndWorksLater() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                let server = try LoopbackServer { try $0.respond(text: "ok") }
                defer { server.stop() }
                var hoard = await Hoard()
                let session = Session(configuration: .test())
                try await DescriptorTests.expectNamed(session, "\(server.url)")
                // One descriptor is too few, and is not lost.
                hoard.giveBack(1)
                try await DescriptorTests.expectNamed(session, "\(server.url)")
                // Without a loop, nobody would answer.
                guard await session.openConnections.isEmpty else { throw CheckFailure(description: "connections") }
                guard await session.tasks.count == 0 else { throw CheckFailure(description: "a task is left") }
                hoard.giveBack()
                try await DescriptorTests.expectReached(session, "\(server.url)")
                guard await session.tasks.count == 0 else { throw CheckFailure(description: "a task is left") }
            }
        }
    }

    @Test func socketAndResolverReportMissingDescriptors() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                let server = try LoopbackServer { try $0.respond(text: "ok") }
                defer { server.stop() }
                let stream = try LoopbackServer { exchange in
                    try exchange.writeHead(headers: [("Content-Length", "1")])
                    try exchange.waitForClientToClose()
                }
                defer { stream.stop() }
                // A connection that is in use, so that nothing is closed for the others.
                let session = Session(configuration: .test())
                let response = session.stream(try Request(.get, "\(stream.url)"))
                _ = try await response.response
                let other = Session(configuration: .test())
                var hoard = await Hoard()
                try await DescriptorTests.expectNamed(other, "\(server.url)")
                for url in [
                    "http://localhost:\(server.port)/", "https://localhost:\(server.port)/",
                    "http://tern-test.invalid/",
                ] {
                    try await DescriptorTests.expectNamed(other, url)
                }
                // The connection of the first session is open, and stays so.
                guard await session.openConnections.map(\.activeCount) == [1] else {
                    throw CheckFailure(description: "the connection in use was closed")
                }
                response.task.cancel()
                hoard.giveBack()
                try await DescriptorTests.expectReached(other, "\(server.url)")
                try await DescriptorTests.expectReached(other, "http://localhost:\(server.port)/")
            }
        }
    }

    /// Sessions do not keep each other from the descriptors that they do not use.
    @Test func theOldestIdleConnectionOfTheProcessIsClosedForAnother() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                let server = try LoopbackServer { try $0.respond(text: "ok") }
                defer { server.stop() }
                var sessions: [Session] = []
                for _ in 0..<3 {
                    sessions.append(Session(configuration: .test()))
                    try await DescriptorTests.expectReached(sessions[sessions.count - 1], "\(server.url)")
                }
                // Makes the first one the one that was used last.
                try await DescriptorTests.expectReached(sessions[0], "\(server.url)")
                let counts = { () async -> [Int] in
                    var counts: [Int] = []
                    for session in sessions { counts.append(await session.openConnections.first?.idleCount ?? 0) }
                    return counts
                }
                var hoard = await Hoard()
                let other = Session(configuration: .test())
                try await DescriptorTests.expectReached(other, "\(server.url)")
                guard await counts() == [1, 0, 1] else { throw CheckFailure(description: "\(await counts())") }
                // A file takes the place of the next one, without an error.
                hoard.take()
                let descriptor = FileCall.open("/dev/null", O_RDONLY)
                guard descriptor >= 0, await counts() == [1, 0, 0] else {
                    throw CheckFailure(description: "\(descriptor): \(await counts())")
                }
                hoard.giveBack()
                // Nothing is lost: those that were closed connect again.
                for session in sessions { try await DescriptorTests.expectReached(session, "\(server.url)") }
            }
        }
    }

    private struct Offline: ReachabilitySource {
        var currentStatus: (@Sendable () -> Reachability.Status)? { { .unreachable } }
        func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? { nil }
    }

    /// The timer of the Swift runtime opens descriptors at its first use, and ends the process without them.
    @Test func waitsNeedNoDescriptor() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                var hoard = await Hoard()
                hoard.take()
                try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(1))

                var policy = RetryPolicy()
                policy.firstDelay = .milliseconds(1)
                var configuration = Session.Configuration()
                configuration.reachability = Reachability(Offline())
                configuration.interceptors = [
                    RetryInterceptor(policy), OfflineWaitInterceptor(upTo: .milliseconds(1)),
                ]
                let isShown = AsyncStream<Void>.makeStream()
                let stub = StubTransport { call in
                    switch call.index {
                    case 0: throw StubTransport.Failure(.connectionLost)
                    case 1: throw StubTransport.Failure(.dns)
                    default:
                        for await _ in isShown.stream {}
                        return .text("ok")
                    }
                }
                let session = Session(configuration: configuration, stub: stub)
                let activity = NetworkActivity(activationDelay: .milliseconds(1), completionDelay: .milliseconds(1))
                await activity.follow(session.tasks)
                await activity.setEnabled(true)
                async let text = session.response(for: Request(.get, "http://h/"), decode: .string).value
                for await isVisible in activity.visibility where isVisible { break }
                isShown.continuation.finish()
                guard try await text == "ok" else { throw CheckFailure(description: "another response") }
                for await isVisible in activity.visibility where !isVisible { break }
                hoard.giveBack()
            }
        }
    }

    @Test func theLimitsOfDescriptorsAreNamed() {
        #expect(ErrorText.text(EMFILE).contains("EMFILE") && ErrorText.text(ENFILE).contains("ENFILE"))
        #expect(!ErrorText.text(ENOENT).contains("FILE"))
    }
}
#endif
