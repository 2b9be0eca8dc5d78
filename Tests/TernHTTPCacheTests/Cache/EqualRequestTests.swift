import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// The wait of equal requests that are made at the same time, and its limits.
@Suite("HTTP cache: equal requests", .timeLimit(.minutes(1)))
struct EqualRequestTests {
    @Test func aResponseThatIsNotStoredReleasesAllAtOnce() async throws {
        let (first, rest) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withCache(
            handler: { exchange in
                let number = exchange.number
                try exchange.wait(for: number == 1 ? first : rest)
                try exchange.respond(headers: [("Cache-Control", "no-store")], text: "\(number)")
            },
            test: { cached in
                let sender = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                first.open()
                #expect(try await sender.value == "1")
                // Each of them is sent before another one is answered.
                try await cached.server.wait { $0.requestsReceived == 16 }
                rest.open()
                var texts: Set<String> = []
                for other in others { texts.insert(try await other.value) }
                #expect(texts.count == 15)
                await cached.finish()
            })
    }

    @Test(arguments: ["no-store", "too large", "too large, unknown length"])
    func equalRequestsForAResponseThatWasNotStoredDoNotWait(kind: String) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            cache: { $0.entryByteLimit = 100 },
            handler: { exchange in
                let isLater = exchange.number > 11
                if (2...11).contains(exchange.number) { try exchange.wait(for: gate) }
                let directive = kind == "no-store" && !isLater ? "no-store" : "max-age=60"
                let text = String(repeating: "a", count: kind == "no-store" || isLater ? 10 : 200)
                var headers = [("Cache-Control", directive)]
                guard kind.hasSuffix("length"), !isLater else {
                    return try exchange.respond(headers: headers, text: text)
                }
                headers.append(("Connection", "close"))
                try exchange.writeHead(headers: headers)
                try exchange.write(text)
                exchange.close()
            },
            test: { cached in
                _ = try await cached.get()
                let others = (0..<10).map { _ in Task { try await cached.get().value.count } }
                // All of them are sent before one is answered.
                try await cached.server.wait { $0.requestsReceived == 11 }
                #expect(cached.cache.shared.waitingRequests == 0)
                gate.open()
                for other in others { #expect(try await other.value > 0) }
                // A stored response ends that: it answers the others.
                _ = try await cached.get()
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(cached.requestCount == 12)
                await cached.finish()
            })
    }

    @Test func aResponseThatWasNotStoredIsForgottenAfterAWhile() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                if exchange.number == 2 { try exchange.wait(for: gate) }
                try exchange.respond(
                    headers: [("Cache-Control", exchange.number == 1 ? "no-store" : "max-age=60")], text: "a")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(120)
                let first = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 2 }
                let second = Task { try await cached.get().text }
                await cached.waitForWaiters(1)
                gate.open()
                #expect(try await first.value == "a")
                #expect(try await second.value == "a")
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test func theNumberOfResponsesThatAreKnownNotToBeStorableIsLimited() {
        var responses = ExpiringKeys<SharingKey>()
        let selection = VarySelection(fields: [])
        func key(_ number: Int) -> SharingKey {
            SharingKey(key: .path("\(number)"), credentials: nil, variant: selection)
        }
        for number in 0...ExpiringKeys<SharingKey>.limit {
            responses.add(
                key(number), for: CacheState.unstorableTime, at: CacheTime(milliseconds: Int64(number)))
        }
        let now = CacheTime(milliseconds: 5_000)
        #expect(!responses.contains(key(0), at: now))
        #expect(responses.contains(key(1), at: now))
        #expect(responses.contains(key(ExpiringKeys<SharingKey>.limit), at: now))
        responses.remove(key(1))
        #expect(!responses.contains(key(1), at: now))
        // After the time has passed, and before it has begun.
        #expect(!responses.contains(key(2), at: CacheTime(milliseconds: 120_002)))
        #expect(!responses.contains(key(2), at: CacheTime(milliseconds: 1)))
    }

    @Test func aResponseThatIsOftenNotStoredDisplacesNoOther() {
        var responses = ExpiringKeys<Int>()
        let now = CacheTime(milliseconds: 0)
        responses.add(0, for: .seconds(1), at: now)
        for _ in 0...4 * ExpiringKeys<Int>.limit {
            responses.add(1, for: .seconds(1), at: now)
            responses.add(2, for: .seconds(1), at: now)
            responses.remove(2)
        }
        #expect(responses.contains(0, at: now))
        #expect(responses.contains(1, at: now))
        #expect(!responses.contains(2, at: now))
    }

    @Test(arguments: StoreKind.allCases)
    func aWriteThatFailsReleasesAllAtOnce(kind: StoreKind) async throws {
        let (first, rest) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withCache(
            kind,
            handler: { exchange in
                if exchange.request.method == "POST" { return try exchange.respond(status: 204) }
                let number = exchange.number
                try exchange.wait(for: number == 1 ? first : rest)
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "body")
            },
            test: { cached in
                let sender = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                // A response that is older than an invalidation is not stored (RFC 9111 §4.4).
                try await cached.client.post("a")
                first.open()
                #expect(try await sender.value == "body")
                // Each of them is sent before another one is answered.
                try await cached.server.wait { $0.requestsReceived == 17 }
                rest.open()
                for other in others { #expect(try await other.value == "body") }
                await cached.finish()
            })
    }

    @Test(arguments: ["no-store", "max-age=60"])
    func aHeadThatIsNotStoredReleasesAllBeforeItsBodyEnds(directive: String) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            cache: { $0.entryByteLimit = 100 },
            handler: { exchange in
                // The second form is too large to be stored.
                try exchange.writeHead(headers: [("Cache-Control", directive), ("Content-Length", "200")])
                try exchange.write(String(repeating: "a", count: 100))
                if exchange.number == 1 { try exchange.wait(for: gate) }
                try exchange.write(String(repeating: "a", count: 100))
            },
            test: { cached in
                let sender = Task { try await cached.get().value.count }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get().value.count } }
                for other in others { #expect(try await other.value == 200) }
                gate.open()
                #expect(try await sender.value == 200)
                #expect(cached.requestCount == 16)
                await cached.finish()
            })
    }

    @Test func requestsForAnotherVariantAreSentOnceToo() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                if exchange.number == 1 { try exchange.wait(for: gate) }
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")],
                    text: exchange.request["Accept-Language"] ?? "none")
            },
            test: { cached in
                let first = Task { try await cached.get(headers: ["Accept-Language": "a"]).text }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = ["a", "b", "c"].map { language in
                    (0..<8).map { _ in
                        Task { (language, try await cached.get(headers: ["Accept-Language": language]).text) }
                    }
                }.flatMap { $0 }
                await cached.waitForWaiters(24)
                gate.open()
                #expect(try await first.value == "a")
                for other in others {
                    let (language, text) = try await other.value
                    #expect(text == language)
                }
                #expect(cached.requestCount == 3)
                await cached.finish()
            })
    }

    /// Keeps the time that was spent before each request.
    private struct SpentTimes: SessionObserver {
        let times = Locked<[String: Duration]>([:])

        func willSend(_ request: Tern.Request, of task: AnySessionTask) {
            times.change { $0[request.target.path] = request.timeouts.spent }
        }
    }

    @Test func aResponseThatIsAskedForAgainHasTheTimeThatIsLeft() async throws {
        let times = SpentTimes()
        try await withCache(
            session: {
                $0.observers = [times]
                $0.timeouts.total = .seconds(30)
            },
            handler: { exchange in
                let isConfirmation = exchange.number == 2
                let fields = [("Cache-Control", "max-age=0"), ("ETag", isConfirmation ? "\"other\"" : "\"v\"")]
                try exchange.respond(status: isConfirmation ? 304 : 200, headers: fields, text: "\(exchange.number)")
            },
            test: { (cached) async throws in
                #expect(try await cached.get().text == "1")
                #expect(try await cached.get().text == "3")
                #expect(try #require(times.times.value["/a"]) > .zero)
            })
    }

    @Test func theWaitBeforeARedirectCountsForTheTotalLimit() async throws {
        let (gate, times) = (LoopbackServer.Gate(), SpentTimes())
        try await withCache(
            handler: { exchange in
                if exchange.request.path == "/b" { return try exchange.respond(text: "b") }
                try exchange.wait(for: gate)
                try exchange.respond(status: 301, headers: [("Location", "/b"), ("Cache-Control", "max-age=60")])
            },
            test: { cached in
                let sender = Task { try await cached.get() }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let other = try cached.client {
                    $0.observers = [times]
                    $0.timeouts.total = .seconds(30)
                }
                let waiter = Task { try await other.get("a", as: String.self) }
                await cached.waitForWaiters(1)
                let began = ContinuousClock.now
                // The wait has a length that can be measured, also if it was counted before it began.
                while ContinuousClock.now - began < .milliseconds(20) { await Task.yield() }
                gate.open()
                #expect(try await waiter.value == "b")
                _ = try await sender.value
                #expect(try #require(times.times.value["/b"]) >= .milliseconds(1))
                await cached.finish()
            })
    }

    enum Failure: CaseIterable, Sendable { case reset, truncatedBody, status }

    @Test(arguments: Failure.allCases)
    func aServerThatFailsReleasesAllAtOnce(_ failure: Failure) async throws {
        let (first, rest) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withCache(
            session: { $0.policy = StoringPolicy { _ in } },
            handler: { exchange in
                let number = exchange.number
                try exchange.wait(for: number == 1 ? first : rest)
                if number > 1 { return try exchange.respond(headers: [("Cache-Control", "no-store")], text: "body") }
                switch failure {
                case .reset: exchange.reset()
                case .status: try exchange.respond(status: 500)
                case .truncatedBody:
                    try exchange.writeHead(headers: [("Cache-Control", "max-age=60"), ("Content-Length", "4")])
                    try exchange.write("bo")
                    exchange.close()
                }
            },
            test: { cached in
                let sender = Task { try await cached.get() }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let others = (0..<15).map { _ in Task { try await cached.get().text } }
                await cached.waitForWaiters(15)
                first.open()
                let expected: [Failure: NetworkError.Kind] = [
                    .reset: .connectionLost, .truncatedBody: .truncatedBody, .status: .status,
                ]
                #expect(await sender.kind == expected[failure])
                try await cached.server.wait { $0.requestsReceived == 16 }
                rest.open()
                for other in others { #expect(try await other.value == "body") }
                await cached.finish()
            })
    }

    @Test func aWaiterRaisesThePriorityAndSeesTheProgress() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                try exchange.writeHead(headers: [("Cache-Control", "max-age=60"), ("Content-Length", "100")])
                try exchange.write(String(repeating: "a", count: 40))
                try exchange.wait(for: gate)
                try exchange.write(String(repeating: "b", count: 60))
            },
            test: { cached in
                var request = try cached.client.request(.get, "a")
                request.priority = .low
                let first = cached.client.session.task(for: request, startsImmediately: true)
                while first.progressNow.completedBytes < 40 { await Task.yield() }
                request.priority = .high
                request.label = "second"
                let second = cached.client.session.task(for: request, startsImmediately: true)
                while second.progressNow.completedBytes < 40 { await Task.yield() }
                #expect(second.progressNow.totalBytes == 100 && !second.progressNow.isFinished)
                #expect(first.priority == .high)
                gate.open()
                #expect(try await first.value.value.count == 100)
                #expect(try await second.value.value.count == 100)
                #expect(second.progressNow.completedBytes == 100)
                #expect(first.label == nil && second.label == "second")
                #expect(cached.requestCount == 1)
                await cached.finish()
            })
    }

    @Test func theTotalTimeLimitOfAWaiterIsKept() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(handler: gated(gate, [("Cache-Control", "max-age=60")])) { cached in
            let sender = Task { try await cached.get().text }
            try await cached.server.wait { $0.requestsReceived == 1 }
            var request = try cached.client.request(.get, "a")
            request.timeouts = Timeouts(total: .milliseconds(30))
            let waiter = Task { [request] in try await cached.client.session.response(for: request) }
            #expect(await waiter.kind == .totalTimedOut)
            #expect(cached.requestCount == 1)
            gate.open()
            #expect(try await sender.value == "1")
            await cached.finish()
        }
    }

    @Test func aWaiterWhoseTimeHasPassedReceivesAStaleResponseIfThatIsAllowed() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                let number = exchange.number
                if number > 1 { try exchange.wait(for: gate) }
                try exchange.respond(headers: [("Cache-Control", "max-age=1, stale-if-error=600")], text: "\(number)")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(10)
                let sender = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 2 }
                var request = try cached.client.request(.get, "a")
                request.timeouts = Timeouts(total: .milliseconds(30))
                let stale = try await cached.client.session.response(for: request)
                #expect(stale.text == "1")
                #expect(stale.cacheTrace?.reason == "stale-if-error")
                gate.open()
                #expect(try await sender.value == "2")
                await cached.finish()
            })
    }

    @Test func aWaiterWaitsNoLongerThanForASilentServer() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            session: { $0.timeouts.idle = nil },
            handler: { exchange in
                let number = exchange.number
                if number == 1 { try exchange.wait(for: gate) }
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(number)")
            },
            test: { cached in
                let sender = Task { try await cached.get().text }
                try await cached.server.wait { $0.requestsReceived == 1 }
                var request = try cached.client.request(.get, "a")
                // Long, because the request that follows the wait has the same limit.
                request.timeouts = Timeouts(idle: .seconds(1))
                #expect(try await cached.client.session.response(for: request).text == "2")
                gate.open()
                #expect(try await sender.value == "1")
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func aPausedTaskHoldsNobodyUp(isPausedBefore: Bool) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                let number = exchange.number
                if number == 1, !isPausedBefore { try exchange.wait(for: gate) }
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(number)")
            },
            test: { cached in
                let task = cached.client.session.task(
                    for: try cached.client.request(.get, "a"), startsImmediately: false)
                task.resume()
                if isPausedBefore { task.pause() }
                if !isPausedBefore { try await cached.server.wait { $0.requestsReceived == 1 } }
                let other = Task { try await cached.get().text }
                if !isPausedBefore {
                    await cached.waitForTasks(2)
                    task.pause()
                }
                // A task that is paused at once may have sent its request before.
                let text = try await other.value
                #expect(text == "2" || isPausedBefore)
                gate.open()
                task.resume()
                #expect(try await task.value.status == 200)
                await cached.finish()
            })
    }

    @Test(arguments: StoreKind.allCases)
    func copiesOfAResponseReplaceEachOther(kind: StoreKind) async throws {
        try await withCache(
            kind, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                let copies = (0..<8).map { _ in Task { try await cached.get(cache: .reload) } }
                for copy in copies { _ = try await copy.value }
                await cached.cache.flush()
                #expect(cached.requestCount == 8)
                #expect(await cached.cache.entries().count == 1)
                await cached.finish()
            })
    }

    @Test func aStreamThatIsReadSlowlyHoldsNobodyUp() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            handler: { exchange in
                let isFirst = exchange.number == 1
                try exchange.writeHead(headers: [("Cache-Control", "max-age=60"), ("Content-Length", "8")])
                try exchange.write("0123")
                if isFirst { try exchange.wait(for: gate) }
                try exchange.write("4567")
            },
            test: { cached in
                let stream = cached.client.stream("a")
                #expect(try await stream.response.status == 200)
                #expect(try await cached.get().text == "01234567")
                gate.open()
                var body = Data()
                for try await chunk in stream.chunks { body += chunk }
                #expect(body == Data("01234567".utf8))
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test func requestsThatDifferAreNotShared() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(handler: gated(gate, [("Cache-Control", "max-age=60")])) { cached in
            let tasks = [
                Task { try await cached.get("a") }, Task { try await cached.get("b") },
                Task { try await cached.get(headers: ["Authorization": "Bearer 1"]) },
                Task { try await cached.get(headers: ["Authorization": "Bearer 2"]) },
                Task { try await cached.get(headers: ["Range": "bytes=0-1"]) },
                Task { try await cached.get(cache: .reload) }, Task { try await cached.get(cache: .noStore) },
            ]
            try await cached.server.wait { [count = tasks.count] in $0.requestsReceived == count }
            gate.open()
            for task in tasks { _ = try await task.value }
            await cached.finish()
        }
    }

    private func gated(_ gate: LoopbackServer.Gate, _ headers: LoopbackServer.Fields) -> LoopbackServer.Handler {
        return { exchange in
            let number = exchange.number
            try exchange.wait(for: gate)
            try exchange.respond(headers: headers, text: "\(number)")
        }
    }
}
