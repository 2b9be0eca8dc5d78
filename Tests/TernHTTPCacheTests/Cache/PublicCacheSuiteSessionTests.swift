import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// Performs the cases of `PublicCacheSuiteTests` through a session and over sockets. The results are those of the
/// simulator.
///
/// All cases share a server and a cache. Each has paths of its own, and begins at the same time of the cache's clock.
@Suite("HTTP cache: public suite through sessions", .serialized, .timeLimit(.minutes(1)))
struct PublicCacheSuiteSessionTests {
    typealias Case = PublicCacheSuiteTests.Case
    typealias Step = PublicCacheSuiteTests.Step

    /// Cases that the transport does not let through: it refuses a response with an unknown transfer coding, because
    /// the bytes of its body are not those of the content (RFC 9112 §6.1).
    private static let refusedByTransport: Set = ["headers-store-Transfer-Encoding"]

    /// Cases about cookies, which are never written to the disk.
    private static func isAboutCookies(_ test: Case) -> Bool {
        test.steps.contains { step in
            (Array(step.expectedFields) + step.response).contains { StoredFields.isCookie($0.name) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func eachCaseHasTheResultOfTheSimulator(kind: StoreKind) async throws {
        let script = Script()
        try await withCache(kind, session: Self.configure, handler: script.answer) { cached in
            for (number, test) in PublicCacheSuiteTests.all.enumerated()
            where !Self.refusedByTransport.contains(test.name) && (kind == .memory || !Self.isAboutCookies(test)) {
                let responses = try await run(test, prefix: "/\(number)", cached, cached.client, script)
                PublicCacheSuiteTests.check(responses, of: test, "session")
                try compare(responses, with: PublicCacheSuiteTests.simulate(test), of: test)
            }
        }
    }

    private static func configure(_ configuration: inout Session.Configuration) {
        configuration.redirects = .stop
        configuration.validation = ResponseValidation(contentTypes: .any) { _ in true }
    }

    /// Returns the response to each step of a case; nil for a request that fails.
    private func run(
        _ test: Case, prefix: String, _ cached: CachedServer, _ client: Client, _ script: Script
    ) async throws -> [SimulatedResponse?] {
        cached.clock.set(CacheSimulator.start.date)
        var responses: [SimulatedResponse?] = []
        for step in test.steps {
            script.begin(step, prefix: prefix, now: CacheTime(cached.clock.now))
            var request = try client.request(
                Request.Method(step.method), String((prefix + step.path).dropFirst()), headers: step.request)
            request.cache = step.choice
            do {
                let response = try await client.session.response(for: request)
                let forwarded = script.forwarded
                while response.cacheTrace?.storing == CacheReason.arriving.rawValue { await Task.yield() }
                await cached.cache.refreshed()
                let source = response.cacheTrace?.source
                // The refresh in the background can have arrived.
                let isRefreshed = response.cacheTrace?.reason == CacheReason.staleWhileRevalidate.rawValue
                responses.append(
                    SimulatedResponse(
                        status: response.status, headers: Self.headers(response.headers, without: prefix),
                        body: response.text,
                        forwarded: isRefreshed ? [] : forwarded,
                        reason: .fresh, outcome: source == .validated ? .validated : nil))
            } catch {
                let isExpected = step.disconnects || error.kind == .notStored
                #expect(isExpected, "\(test.name): \(error)")
                responses.append(nil)
            }
            cached.clock.advance(Double(step.pause))
        }
        return responses
    }

    /// Returns the fields as the case has them: without the prefix of its paths.
    private static func headers(_ headers: Headers, without prefix: String) -> Headers {
        Headers(
            headers.map { field in
                let hasPrefix = field.value.hasPrefix(prefix + "/")
                return hasPrefix ? .init(name: field.name, value: String(field.value.dropFirst(prefix.count))) : field
            })
    }

    /// The fields of a request that the rules decide.
    private static let decidedFields = ["If-None-Match", "If-Modified-Since", "Range", "If-Range", "Cache-Control"]
    /// The fields of a response that depend on the duration of an exchange, and those that the server adds.
    private static let ownFields: Set = ["age", "content-length"]

    private func compare(
        _ responses: [SimulatedResponse?], with simulated: [SimulatedResponse?], of test: Case
    ) throws {
        for (index, (response, expected)) in zip(responses, simulated).enumerated() {
            let place: Comment = "\(test.name), step \(index)"
            guard let response, let expected else {
                #expect((response == nil) == (expected == nil), place)
                continue
            }
            #expect(response.status == expected.status, place)
            #expect(response.body == expected.body, place)
            #expect(response.isValidated == expected.isValidated, place)
            // The session sends a request once more if its connection ends before a response.
            let isRepeated = test.steps[index].disconnects && response.forwarded.count == 2
            #expect(isRepeated || response.forwarded.count == expected.forwarded.count, place)
            for (sent, model) in zip(response.forwarded, expected.forwarded) {
                for name in Self.decidedFields { #expect(sent[name] == model[name], "\(place), \(name)") }
            }
            let kept = expected.headers.map(\.name).filter { !Self.ownFields.contains($0.lowercased()) }
            for name in kept {
                #expect(response.headers.values(for: name) == expected.headers.values(for: name), "\(place), \(name)")
            }
            // The simulator refreshes nothing in the background, and the session does.
            if expected.refreshes { return }
        }
    }
}

/// The answers of the server to the requests of one step, and the requests that arrived.
private final class Script: Sendable {
    private struct State {
        var step = PublicCacheSuiteTests.Step()
        var prefix = ""
        var now = CacheTime(milliseconds: 0)
        var forwarded: [Headers] = []
    }

    private let state = Lock(State())

    var forwarded: [Headers] { state.withLock { $0.forwarded } }

    func begin(_ step: PublicCacheSuiteTests.Step, prefix: String, now: CacheTime) {
        state.withLock { $0 = State(step: step, prefix: prefix, now: now) }
    }

    func answer(_ exchange: LoopbackServer.Exchange) throws {
        let sent = Headers(exchange.request.headers.map { Headers.Field(name: $0.name, value: $0.value) })
        let (answer, prefix) = state.withLock { state in
            state.forwarded.append(sent)
            return (state.step.answer(to: sent, now: state.now), state.prefix)
        }
        guard let answer else { return exchange.close() }
        // The paths of a case are below its own.
        let fields = answer.headers.map { field in
            let isPath = field.name.hasSuffix("Location") && field.value.hasPrefix("/")
            return (field.name, isPath ? prefix + field.value : field.value)
        }
        try exchange.respond(status: answer.status, headers: fields, body: Array(answer.body.utf8))
    }
}
