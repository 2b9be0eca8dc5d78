import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The progress of a task whose request is sent more than once.
@Suite("Progress of attempts", .timeLimit(.minutes(1)))
struct ProgressAttemptTests {
    private static let size = 100_000

    /// The first answer, which leads to a second request, and what the client needs to send it.
    enum First: String, CaseIterable, CustomTestStringConvertible {
        case redirect, temporaryRedirect, challenge, misdirected, retriedError, largerError, brokenResult

        var testDescription: String { rawValue }

        var configuration: Session.Configuration {
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            return .test { [policy] in $0.interceptors = [RetryInterceptor(policy)] }
        }

        /// The number of bytes of the body of the first answer that count.
        var countedBytes: Int64 { self == .brokenResult ? 40_000 : 0 }

        func answer(_ exchange: LoopbackServer.Exchange) throws {
            let body = [UInt8](repeating: 1, count: 40_000)
            switch self {
            case .redirect:
                try exchange.respond(status: 302, headers: [("Location", "/second")], body: body)
            case .temporaryRedirect:
                try exchange.respond(status: 307, headers: [("Location", "/second")], body: body)
            case .challenge:
                try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")], body: body)
            case .misdirected:
                try exchange.respond(status: 421, body: body)
            case .retriedError:
                try exchange.respond(status: 503, body: body)
            case .largerError:
                try exchange.respond(status: 503, body: [UInt8](repeating: 1, count: 2 * ProgressAttemptTests.size))
            case .brokenResult:
                try exchange.writeHead(headers: [("Content-Length", "\(ProgressAttemptTests.size)")])
                try exchange.write(body)
                try exchange.waitUntilReceived()
                exchange.close()
            }
        }
    }

    private static func credentials(for server: LoopbackServer) throws(NetworkError) -> FixedCredentials {
        try FixedCredentials([server.url.absoluteString: .user("ada", password: "s3cret")])
    }

    @Test(arguments: First.allCases)
    func onlyTheBodyOfTheResultCounts(_ first: First) async throws {
        let isSecondSeen = LoopbackServer.Gate()
        try await withServer(configuration: first.configuration) { exchange in
            if exchange.number == 1 { return try first.answer(exchange) }
            try exchange.writeHead(headers: [("Content-Length", "\(Self.size)")])
            // The reader has seen what there was to see of the first answer.
            try exchange.wait(for: isSecondSeen)
            try exchange.write([UInt8](repeating: 2, count: Self.size))
        } test: { server, client in
            let credentials = try Self.credentials(for: server)
            let task = client.task(.get, "file", startsImmediately: false) { $0.credentials = credentials }
            var values: [Session.Progress] = []
            for await value in task.progress {
                values.append(value)
                if values.count == 1 { task.resume() }
                if value.attempt == 2 { isSecondSeen.open() }
            }
            let body = try await task.value
            #expect(body.count == Self.size)
            let (before, last) = (values.filter { $0.attempt == 1 }, values.last)
            #expect(before.allSatisfy { $0.completedBytes <= first.countedBytes })
            if first.countedBytes == 0 { #expect(before.allSatisfy { $0.totalBytes == nil }) }
            #expect(values.dropLast().allSatisfy { ($0.fractionCompleted ?? 0) < 1 })
            #expect(last?.attempt == 2 && last?.isFinished == true && last?.fractionCompleted == 1)
            #expect(last?.completedBytes == Int64(Self.size) && last?.totalBytes == Int64(Self.size))
            #expect(values.map(\.attempt) == values.map(\.attempt).sorted())
            for attempt in 1...2 {
                let bytes = values.filter { $0.attempt == attempt }.map(\.completedBytes)
                #expect(bytes == bytes.sorted())
            }
        }
    }

    @Test(arguments: [First.temporaryRedirect, .challenge, .retriedError])
    func aBodyThatIsSentAgainStartsOver(_ first: First) async throws {
        let isSecondSeen = LoopbackServer.Gate()
        try await withServer(configuration: first.configuration) { exchange in
            if exchange.number > 1 { try exchange.wait(for: isSecondSeen) }
            _ = try exchange.drainBody()
            if exchange.number == 1 { try first.answer(exchange) } else { try exchange.respond() }
        } test: { server, client in
            let credentials = try Self.credentials(for: server)
            let task = client.upload(
                "file", method: .put, body: .data(Data(count: Self.size)), startsImmediately: false
            ) { $0.credentials = credentials }
            var values: [Session.Progress] = []
            for await value in task.uploadProgress {
                values.append(value)
                if values.count == 1 { task.resume() }
                if value.attempt == 2 { isSecondSeen.open() }
            }
            _ = try await task.value
            #expect(values.first { $0.attempt == 2 }?.completedBytes ?? .max <= Int64(Self.size))
            #expect(values.dropLast().allSatisfy { ($0.fractionCompleted ?? 0) < 1 })
            #expect(values.last?.attempt == 2 && values.last?.completedBytes == Int64(Self.size))
            #expect(values.last?.fractionCompleted == 1)
        }
    }

    @Test func anErrorThatEndsTheTaskDoesNotCount() async throws {
        try await withServer { exchange in
            try exchange.respond(status: 404, text: "there is no such file")
        } test: { _, client in
            let task = client.task(.get, "file")
            _ = try await task.failure()
            let last = await task.progress.collected().last
            #expect(last == Session.Progress(isFinished: true))
        }
    }

    @Test func anErrorThatTheCallerAcceptsCounts() async throws {
        try await withServer { exchange in
            try exchange.respond(status: 404, text: "no file")
        } test: { _, client in
            let task = client.task(.get, "file") { $0.validation = .any }
            let body = try await task.value
            #expect(body.count == 7)
            let last = await task.progress.collected().last
            #expect(last == Session.Progress(completedBytes: 7, totalBytes: 7, isFinished: true))
        }
    }

    @Test func aRedirectThatIsNotFollowedCounts() async throws {
        try await withServer(configuration: .test { $0.redirects = .stop }) { exchange in
            try exchange.respond(status: 302, headers: [("Location", "/second")], body: [1, 2, 3])
        } test: { _, client in
            let task = client.task(.get, "file")
            let body = try await task.value
            #expect(body.count == 3)
            let last = await task.progress.collected().last
            #expect(last == Session.Progress(completedBytes: 3, totalBytes: 3, isFinished: true))
        }
    }
}
