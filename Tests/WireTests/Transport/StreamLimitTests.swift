#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import Testing

/// Checks the table of the limits of streams in `Documentation/LinuxEngine.md`: the limits that servers over HTTP/2
/// set, and the ways in which they state and change them.
@Suite("Wire: the number of streams that HTTP/2 servers allow", .timeLimit(.minutes(1)))
struct StreamLimitTests {
    private func client(of server: StreamLimitServer, _ timeouts: Timeouts = Timeouts()) throws -> Client {
        let configuration = Session.Configuration.test {
            $0.usesHTTP2WithoutTLS = true
            $0.timeouts = timeouts
        }
        return try Client(baseURL: "http://127.0.0.1:\(server.port)", session: Session(configuration: configuration))
    }

    /// Makes 40 requests at once. Returns their errors.
    private func burst(_ client: Client, count: Int = 40, method: Request.Method = .get) async -> [NetworkError] {
        await withTaskGroup(of: NetworkError?.self) { group in
            for number in 0..<count {
                group.addTask {
                    do throws(NetworkError) {
                        let body: Request.Body = method == .post ? .text("body") : .none
                        _ = try await client.response(
                            for: client.request(method, "\(number)", body: body), as: Data.self)
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(into: []) { errors, error in if let error { errors.append(error) } }
        }
    }

    private func withServer(
        _ rules: StreamLimitServer.Rules, _ timeouts: Timeouts = Timeouts(),
        _ test: (StreamLimitServer, Client) async throws -> Void
    ) async throws {
        let server = try StreamLimitServer(rules)
        defer { server.stop() }
        let client = try client(of: server, timeouts)
        try await test(server, client)
        await client.session.invalidateAndCancel()
    }

    /// The last one is the largest that a frame can state.
    @Test(arguments: [1, 2, 10, 100, 1 << 31 - 1, Int(UInt32.max)])
    func aBurstOnANewSessionKeepsToTheLimit(limit: Int) async throws {
        try await withServer(.init(stated: limit)) { server, client in
            #expect(await burst(client).isEmpty)
            #expect(server.counts.refused == 0 && server.counts.requests == 40)
            #expect(server.counts.mostStreams <= limit)
            if limit >= 100 { #expect(server.counts.connections == 1) }
            // As many connections as the requests need at once.
            #expect(server.counts.connections <= max(1, 40 / limit))
        }
    }

    @Test(arguments: [1, 4]) func aBurstCanWaitForTheStreamsOfOneConnection(limit: Int) async throws {
        let server = try StreamLimitServer(.init(stated: limit))
        defer { server.stop() }
        let configuration = Session.Configuration.test {
            $0.usesHTTP2WithoutTLS = true
            $0.http2.waitsForStreams = true
        }
        let session = Session(configuration: configuration)
        let client = try Client(baseURL: "http://127.0.0.1:\(server.port)", session: session)
        #expect(await burst(client).isEmpty)
        #expect(server.counts.refused == 0 && server.counts.requests == 40)
        #expect(server.counts.connections == 1 && server.counts.mostStreams <= limit)
        await session.invalidateAndCancel()
    }

    @Test func withoutAStatedLimitOneConnectionCarriesABurst() async throws {
        try await withServer(.init()) { server, client in
            #expect(await burst(client).isEmpty)
            #expect(server.counts.connections == 1 && server.counts.refused == 0)
        }
    }

    @Test(arguments: [1, 10]) func requestsWaitForLateSettings(limit: Int) async throws {
        try await withServer(.init(stated: limit, settings: .held)) { server, client in
            async let errors = burst(client)
            await server.firstRequest()
            #expect(server.counts.connections == 1)
            server.release()
            #expect(await errors.isEmpty)
            // Only the first request went ahead of the limit, on each connection.
            #expect(server.counts.refused == 0 && server.counts.early <= server.counts.connections)
        }
    }

    @Test func withoutSettingsEachRequestEndsAtItsOwnLimit() async throws {
        let timeouts = Timeouts(connect: .milliseconds(300), total: .seconds(2))
        try await withServer(.init(settings: .never), timeouts) { server, client in
            let errors = await burst(client, count: 4)
            #expect(errors.map(\.kind).count { $0 == .connectTimedOut } == 3, "\(errors)")
            #expect(errors.map(\.kind).count { $0 == .totalTimedOut } == 1)
            #expect(server.counts.connections == 1 && server.counts.early == 1)
        }
    }

    @Test func aLimitOf0LetsRequestsWaitForAnother() async throws {
        try await withServer(.init(stated: 0, afterAnswer: 10)) { server, client in
            #expect(await burst(client).isEmpty)
            // The first request goes ahead of the limit.
            #expect(server.counts.refused <= server.counts.connections)
        }
    }

    @Test func aLimitThatStays0EndsEachRequestAtItsOwnLimit() async throws {
        try await withServer(.init(stated: 0), Timeouts(connect: .milliseconds(300))) { server, client in
            let errors = await burst(client, count: 4)
            #expect(errors.count == 4 && errors.allSatisfy { $0.kind == .connectTimedOut }, "\(errors)")
            #expect(server.counts.connections == 1 && server.counts.requests <= 1)
        }
    }

    @Test func aHigherLimitIsUsed() async throws {
        try await withServer(.init(stated: 1, changes: [100])) { server, client in
            #expect(await burst(client).isEmpty)
            #expect(server.counts.refused == 0)
        }
    }

    /// The limit falls while more streams are on their way.
    @Test(arguments: [Request.Method.get, .post])
    func streamsAboveALowerLimitAreSentAgain(method: Request.Method) async throws {
        try await withServer(.init(stated: 100, changes: [100, 5, 1, 7, 2])) { server, client in
            for _ in 0..<3 {
                let errors = await burst(client, method: method)
                #expect(errors.isEmpty, "\(errors)")
            }
            #expect(server.counts.refused > 0)
        }
    }

    /// The server allows more than it takes, or states nothing.
    @Test(arguments: [nil, 100] as [Int?])
    func streamsThatAreRefusedWithinTheLimitWaitForRoom(stated: Int?) async throws {
        try await withServer(.init(stated: stated, actual: 10)) { server, client in
            #expect(await burst(client).isEmpty)
            #expect(server.counts.refused > 0)
        }
    }

    /// An overloaded server is not asked ten times within the moment for which it refuses.
    @Test(arguments: [Request.Method.get, .post])
    func refusedStreamsWaitForAnOverloadedServer(method: Request.Method) async throws {
        try await withServer(.init(stated: 100, refusesFor: .milliseconds(400))) { server, client in
            let errors = await burst(client, count: 10, method: method)
            #expect(errors.isEmpty, "\(errors)")
            #expect(server.counts.refused >= 10 && server.counts.refused < 90)
        }
    }

    @Test func theTotalLimitEndsTheWaitOfARefusedStream() async throws {
        let timeouts = Timeouts(total: .milliseconds(300))
        try await withServer(.init(stated: 100, refusesFor: .seconds(600)), timeouts) { server, client in
            let error = try #require(await burst(client, count: 1).first)
            #expect(error.kind == .totalTimedOut && error.reason.contains("not processed"), "\(error)")
        }
    }

    /// Neither a cancellation nor a pause waits for the next attempt.
    @Test func aWaitingRefusedStreamIsCancelledAndPaused() async throws {
        try await withServer(.init(stated: 100, refusesFor: .seconds(600))) { server, client in
            let task = client.task(.get, "a")
            task.resume()
            while server.counts.requests < 3 { try await Task.sleep(for: .milliseconds(5)) }
            task.pause()
            let count = server.counts.requests
            // One that was on its way may still arrive; in this time, three more would.
            try await Task.sleep(for: .milliseconds(500))
            #expect(server.counts.requests <= count + 1)
            task.resume()
            while server.counts.requests < count + 2 { try await Task.sleep(for: .milliseconds(5)) }
            task.cancel()
            #expect(try await failure { try await task.value }.kind == .cancelled)
            let before = server.counts.requests
            let direct = Task { try await client.get("b") }
            while server.counts.requests < before + 3 { try await Task.sleep(for: .milliseconds(5)) }
            direct.cancel()
            await #expect(throws: NetworkError.self) { try await direct.value }
        }
    }

    @Test func aRefusalBeforeSettingsViolatesTheProtocol() async throws {
        try await withServer(.init(refusesBeforeSettings: true)) { server, client in
            let errors = await burst(client, count: 2)
            #expect(errors.map(\.kind) == [.malformedResponse, .malformedResponse], "\(errors)")
        }
    }

    @Test(arguments: [Request.Method.get, .post])
    func streamsAboveTheLastOfGOAWAYMoveToAnotherConnection(method: Request.Method) async throws {
        try await withServer(.init(stated: 100, streamsOfFirstConnection: 5)) { server, client in
            #expect(await burst(client, method: method).isEmpty)
            #expect(server.counts.connections == 2 && server.counts.refused == 0)
        }
    }

    @Test func eachHostHasItsOwnLimit() async throws {
        let servers = try [1, 10, 100].map { try StreamLimitServer(.init(stated: $0)) }
        defer { for server in servers { server.stop() } }
        let session = Session(configuration: .test { $0.usesHTTP2WithoutTLS = true })
        let clients = try servers.map { try Client(baseURL: "http://127.0.0.1:\($0.port)", session: session) }
        let errors = await withTaskGroup(of: [NetworkError].self) { group in
            for client in clients { group.addTask { await burst(client) } }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(errors.isEmpty)
        #expect(servers.map(\.counts.refused) == [0, 0, 0])
        await session.invalidateAndCancel()
    }
}
#endif
