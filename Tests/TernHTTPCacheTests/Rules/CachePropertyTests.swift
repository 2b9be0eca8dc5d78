import Tern
import Testing

@testable import TernHTTPCache

/// Performs random exchanges, and checks each response that did not come from the origin against a record of all
/// responses that the origin gave.
@Suite struct CachePropertyTests {
    /// A response that the origin gave, in plain values.
    private struct Given {
        var url: String
        var partition: String
        var credentials: String?
        /// The values of the field that selected it.
        var foos: Set<String?>
        var noStore = false
        var noCache = false
        var mustRevalidate = false
        var maxAge: Int64
        var staleWhileRevalidate: Int64 = 0
        var staleIfError: Int64 = 0
        var varies = false
        var status: Int
        /// The time at which the origin last confirmed it, or gave it.
        var confirmed: Int64
        var confirmedMaxAge: Int64
    }

    @Test(arguments: 1...8)
    func eachServedResponseIsOneThatTheOriginAllowed(_ seed: Int) throws {
        var random = SeededGenerator(UInt64(seed))
        let cache = CacheSimulator()
        var given: [String: Given] = [:]
        var invalidated: [String: Int64] = [:]
        var hits = 0
        for number in 0..<1_000 {
            cache.advance(Int64(random.next() % 20))
            if random.chance(2) { cache.advance(-Int64(random.next() % 100)) }
            let url = "http://example.com/" + random.pick(["a", "b", "c?x=1", "c?x=2"])
            let partition = random.pick(["", "one"])
            let credentials = random.pick([nil, nil, "ada", "bob"] as [String?])
            let foo = random.pick([nil, "1", "2"] as [String?])
            var headers = Headers()
            headers["Foo"] = foo
            if random.chance(10) { headers["Cache-Control"] = random.pick(["max-stale=5", "no-cache", "max-age=3"]) }
            let method = random.chance(5) ? "POST" : "GET"
            let request = try cache.request(
                method, url, headers, credentials: credentials, partition: partition)
            let body = "body \(number)"
            let now = cache.now.milliseconds / 1_000
            let fails = random.chance(5)
            var new = Given(
                url: url, partition: partition, credentials: credentials, foos: [foo],
                maxAge: Int64(random.next() % 40), status: random.pick([200, 200, 200, 404, 500]), confirmed: now,
                confirmedMaxAge: 0)
            new.noStore = random.chance(10)
            new.noCache = random.chance(10)
            new.mustRevalidate = random.chance(10)
            new.varies = random.chance(50)
            if random.chance(30) { new.staleWhileRevalidate = 10 }
            if random.chance(30) { new.staleIfError = 15 }
            new.confirmedMaxAge = new.maxAge
            var control = "max-age=\(new.maxAge)"
            if new.noStore { control += ", no-store" }
            if new.noCache { control += ", no-cache" }
            if new.mustRevalidate { control += ", must-revalidate" }
            if new.staleWhileRevalidate > 0 { control += ", stale-while-revalidate=\(new.staleWhileRevalidate)" }
            if new.staleIfError > 0 { control += ", stale-if-error=\(new.staleIfError)" }
            let confirms = random.chance(50)
            var confirmedTag: String?
            let response: SimulatedResponse
            do {
                response = try cache.send(request) { fields in
                    if fails { throw CacheSimulator.Unreachable() }
                    if confirms, let tag = fields["If-None-Match"]?.split(separator: ",").first {
                        confirmedTag = String(tag).trimmingQuotes
                        return OriginAnswer(304, ["ETag": String(tag), "Date": cache.date()])
                    }
                    return OriginAnswer(
                        new.status,
                        [
                            "Cache-Control": control, "Vary": new.varies ? "Foo" : "", "ETag": "\"\(body)\"",
                            "Date": cache.date(),
                        ], body)
                }
            } catch is CacheSimulator.Unreachable {
                continue
            }
            if method == "POST" {
                if (200...399).contains(response.status) { invalidated[partition + url] = Int64(number) }
                continue
            }
            if response.body == body {
                given[body] = new
                continue
            }
            // The body came from the store: some response of the origin must allow it here and now.
            let stored = try #require(given[response.body])
            hits += 1
            #expect(stored.url == url && stored.partition == partition)
            #expect(!stored.noStore)
            #expect(stored.credentials == nil || stored.credentials == credentials)
            let made = Int64(response.body.dropFirst(5)) ?? 0
            if let time = invalidated[partition + url] { #expect(made > time, "served after its invalidation") }
            if let confirmedTag {
                #expect(confirmedTag == response.body)
                // A confirmation for one user says nothing about the response that all users share.
                guard stored.credentials == credentials else { continue }
                given[response.body]?.confirmed = now
                given[response.body]?.foos.insert(foo)
                continue
            }
            #expect(!stored.varies || stored.foos.contains(foo))
            let age = now - stored.confirmed
            #expect(age >= 0)
            #expect(!stored.noCache)
            let staleness = age - stored.maxAge
            if staleness >= 0 {
                #expect(!stored.mustRevalidate)
                let accepted: Int64 = headers["Cache-Control"] == "max-stale=5" ? 5 : -1
                let afterError = response.forwarded.isEmpty ? -1 : stored.staleIfError
                #expect(staleness <= max(accepted, stored.staleWhileRevalidate, afterError))
            }
            if headers["Cache-Control"] == "max-age=3", response.forwarded.isEmpty { #expect(age <= 3) }
        }
        #expect(hits > 100)
    }
}

extension String {
    fileprivate var trimmingQuotes: String { filter { $0 != "\"" } }
}
