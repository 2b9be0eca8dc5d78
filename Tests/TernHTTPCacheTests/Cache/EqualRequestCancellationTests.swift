import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Cancellations among equal requests that are made at the same time, of which one is sent.
@Suite("HTTP cache: cancelled equal requests", .timeLimit(.minutes(1)))
struct EqualRequestCancellationTests {
    enum Cancellation: CaseIterable, Sendable { case handle, swiftTask }

    @Test(arguments: Cancellation.allCases)
    func oneWaiterTakesThePlaceOfACancelledSender(_ kind: Cancellation) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                let number = exchange.number
                if number == 1 { return try exchange.waitForClientToClose() }
                try exchange.wait(for: gate)
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(number)")
            },
            test: { cached in
                let request = try cached.client.request(.get, "a")
                let handle = kind == .handle ? cached.client.session.task(for: request, startsImmediately: true) : nil
                let sender = Task {
                    if let handle { return try await handle.value }
                    return try await cached.get()
                }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                if let handle { handle.cancel() } else { sender.cancel() }
                try await cached.server.wait { $0.requestsReceived == 2 }
                gate.open()
                for other in others { #expect(try await other.value == "2") }
                #expect(cached.requestCount == 2)
                #expect(await sender.kind == .cancelled)
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func aSenderThatIsCancelledInItsBodyIsReplacedByOneWaiter(isStrong: Bool) async throws {
        let (gate, hasHead) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let tag = isStrong ? "\"v\"" : "W/\"v\""
        try await withCache(
            session: { $0.policy = StoringPolicy { _ in hasHead.open() } },
            handler: { exchange in
                let fields = [("Cache-Control", "max-age=60"), ("ETag", tag)]
                if exchange.number == 1 {
                    try exchange.writeHead(headers: fields + [("Content-Length", "10")])
                    try exchange.write("01234")
                    return try exchange.waitForClientToClose()
                }
                try exchange.wait(for: gate)
                guard let range = exchange.request["Range"] else {
                    return try exchange.respond(headers: fields, text: "0123456789")
                }
                let first = try #require(Int(range.dropFirst(6).dropLast()))
                let rest = Array("0123456789".utf8)[first...]
                try exchange.respond(
                    status: 206, headers: fields + [("Content-Range", "bytes \(first)-9/10")], body: rest)
            },
            test: { cached in
                let sender = Task { try await cached.get() }
                try await hasHead.wait()
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                sender.cancel()
                try await cached.server.wait { $0.requestsReceived == 2 }
                gate.open()
                for other in others { #expect(try await other.value == "0123456789") }
                #expect(cached.requestCount == 2)
                #expect(await sender.kind == .cancelled)
                await cached.finish()
            })
    }

    /// Without a policy the body is collected below the cache, which sees the head before it, and keeps what to decide
    /// then.
    @Test func aSenderThatIsCancelledWhileItsBodyIsCollectedIsReplacedByOneWaiter() async throws {
        try await withCache(
            handler: { exchange in
                let fields = [("Cache-Control", "max-age=60")]
                if exchange.number == 1 {
                    try exchange.writeHead(headers: fields + [("Content-Length", "10")])
                    try exchange.write("01234")
                    return try exchange.waitForClientToClose()
                }
                try exchange.respond(headers: fields, text: "0123456789")
            },
            test: { cached in
                let sender = cached.client.session.task(
                    for: try cached.client.request(.get, "a"), startsImmediately: true)
                for await progress in sender.progress where progress.completedBytes == 5 { break }
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                sender.cancel()
                for other in others { #expect(try await other.value == "0123456789") }
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test func aCancelledWaiterLeavesTheOthersWaiting() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                try exchange.wait(for: gate)
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "one")
            },
            test: { cached in
                let sender = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get() } }
                await cached.waitForWaiters(15)
                for other in others[..<7] { other.cancel() }
                for other in others[..<7] { #expect(await other.kind == .cancelled) }
                gate.open()
                for other in others[7...] { #expect(try await other.value.text == "one") }
                #expect(try await sender.value == "one")
                #expect(cached.requestCount == 1)
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func theEndOfTheSessionEndsTheWait(isInvalidated: Bool) async throws {
        try await withCache(
            handler: { try $0.waitForClientToClose() },
            test: { cached in
                let tasks = (0..<16).map { _ in Task { try await cached.get() } }
                await cached.waitForWaiters(15)
                // A task is in the registry only after it has joined the others.
                try await cached.server.wait { $0.requestsReceived == 1 }
                await cached.waitForTasks(16)
                if isInvalidated {
                    await cached.client.session.invalidateAndCancel()
                } else {
                    await cached.client.session.tasks.cancelAll()
                    await cached.client.session.drained()
                }
                for task in tasks { #expect(await task.kind == .cancelled) }
                await cached.finish()
            })
    }

    @Test func aWaiterOfAnotherSessionTakesThePlaceOfAnInvalidatedOne() async throws {
        try await withCache(
            session: { $0.cookies = .none },
            handler: { exchange in
                if exchange.number == 1 { return try exchange.waitForClientToClose() }
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "two")
            },
            test: { cached in
                let other = CachedServer(
                    server: cached.server, cache: cached.cache, client: try cached.client { $0.cookies = .none },
                    clock: cached.clock)
                let sender = Task { try await cached.get() }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let waiters = (0..<4).map { _ in Task { try await other.get().text } }
                await other.waitForTasks(4)
                await cached.client.session.invalidateAndCancel()
                #expect(await sender.kind == .cancelled)
                for waiter in waiters { #expect(try await waiter.value == "two") }
                #expect(cached.requestCount == 2)
                await other.finish()
            })
    }

    @Test(arguments: 0..<12)
    func randomCancellationsLeaveNobodyBehind(seed: UInt64) async throws {
        try await withCache(
            handler: { exchange in
                switch (exchange.number + Int(seed)) % 5 {
                case 0: try exchange.respond(headers: [("Cache-Control", "no-store")], text: "body")
                case 1: exchange.reset()
                case 2:
                    try exchange.writeHead(headers: [("Cache-Control", "max-age=60"), ("Content-Length", "4")])
                    try exchange.write("bo")
                    exchange.close()
                case 3:
                    try exchange.respond(headers: [("Cache-Control", "max-age=60"), ("ETag", "\"v\"")], text: "body")
                default: try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "body")
                }
            },
            test: { cached in
                var random = SeededGenerator(seed)
                for round in 0..<10 {
                    let path = "\(round)"
                    let tasks = (0..<16).map { _ in Task { try await cached.get(path).text } }
                    for task in tasks where Int.random(in: 0..<3, using: &random) == 0 {
                        for _ in 0..<Int.random(in: 0..<20, using: &random) { await Task.yield() }
                        task.cancel()
                    }
                    if Int.random(in: 0..<4, using: &random) == 0 { await cached.client.session.tasks.cancelAll() }
                    for task in tasks {
                        switch await task.result {
                        case .success(let text): #expect(text == "body")
                        case .failure(let error):
                            let kind = (error as? NetworkError)?.kind
                            #expect([.cancelled, .connectionLost, .truncatedBody].contains(kind), "\(error)")
                        }
                    }
                }
                await cached.finish()
            })
    }

    @Test func aCancelledTaskReceivesNoStoredResponse() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            _ = try await cached.get()
            let (gate, session) = (LoopbackServer.Gate(), cached.client.session)
            let request = try cached.client.request(.get, "a")
            let late = Task {
                // An error means that the wait was cancelled, as intended.
                try? await gate.wait()
                return try await session.response(for: request)
            }
            late.cancel()
            #expect(await late.kind == .cancelled)
            #expect(try await cached.get().cacheTrace?.source == .stored)
            await cached.finish()
        }
    }
}
