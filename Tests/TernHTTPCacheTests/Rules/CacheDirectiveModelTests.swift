import Tern
import Testing

@testable import TernHTTPCache

/// Compares the decisions with a plain model over the cross product of directives, choices and ages.
@Suite struct CacheDirectiveModelTests {
    /// A response in plain numbers.
    private struct Response {
        var noCache: Bool
        var mustRevalidate: Bool
        var immutable: Bool
        var maxAge: Int?
        var expires: Int?
        var staleWhileRevalidate: Int?
        var hasTag: Bool

        var lifetime: Int { maxAge ?? expires ?? 0 }

        func headers(_ cache: CacheSimulator) -> Headers {
            var control: [String] = []
            if noCache { control.append("no-cache") }
            if mustRevalidate { control.append("must-revalidate") }
            if immutable { control.append("immutable") }
            if let maxAge { control.append("max-age=\(maxAge)") }
            if let staleWhileRevalidate { control.append("stale-while-revalidate=\(staleWhileRevalidate)") }
            var headers: Headers = ["Date": cache.date()]
            if !control.isEmpty { headers["Cache-Control"] = control.joined(separator: ", ") }
            if let expires { headers["Expires"] = cache.date(Int64(expires)) }
            if hasTag { headers["ETag"] = "\"a\"" }
            return headers
        }

        var isStored: Bool {
            if hasTag { return true }
            if noCache { return false }
            if lifetime > 0 { return true }
            let isExplicit = maxAge != nil || expires != nil
            return isExplicit && (staleWhileRevalidate ?? 0) > 0 && !mustRevalidate
        }

        static var all: [Response] {
            var all: [Response] = []
            for flags in 0..<16 {
                for maxAge in [nil, 0, 60] as [Int?] {
                    for expires in [nil, 60] as [Int?] {
                        for stale in [nil, 30] as [Int?] {
                            all.append(
                                Response(
                                    noCache: flags & 1 > 0, mustRevalidate: flags & 2 > 0, immutable: flags & 4 > 0,
                                    maxAge: maxAge, expires: expires, staleWhileRevalidate: stale, hasTag: flags & 8 > 0
                                ))
                        }
                    }
                }
            }
            return all
        }
    }

    /// The directive of a request, and its meaning in plain numbers.
    private enum Directive: CaseIterable {
        case none, noCache, noStore, maxAge20, maxStale, maxStale10, minFresh50, onlyIfCached, maxAge70MaxStale

        var text: String? {
            switch self {
            case .none: nil
            case .noCache: "no-cache"
            case .noStore: "no-store"
            case .maxAge20: "max-age=20"
            case .maxStale: "max-stale"
            case .maxStale10: "max-stale=10"
            case .minFresh50: "min-fresh=50"
            case .onlyIfCached: "only-if-cached"
            case .maxAge70MaxStale: "max-age=70, max-stale"
            }
        }

        var maxAge: Int? { self == .maxAge20 ? 20 : self == .maxAge70MaxStale ? 70 : nil }
        var maxStale: Int? { self == .maxStale10 ? 10 : self == .maxStale || self == .maxAge70MaxStale ? .max : nil }
        var minFresh: Int? { self == .minFresh50 ? 50 : nil }
    }

    /// The result in words.
    private func model(
        _ response: Response, _ directive: Directive, _ choice: Request.CacheChoice, age: Int
    ) -> String {
        let isOffline = choice == .onlyStored
        let mayNotSend = isOffline || directive == .onlyIfCached
        if choice == .noStore || choice == .reload || directive == .noStore { return mayNotSend ? "refuse" : "fetch" }
        if !response.isStored { return mayNotSend ? "refuse" : "fetch" }
        let isFresh = response.lifetime > age
        var canServe = isFresh && !response.noCache && directive != .noCache
        if choice == .revalidate, !response.immutable { canServe = false }
        if let maximum = directive.maxAge, age > maximum { canServe = false }
        if let minimum = directive.minFresh, response.lifetime - age < minimum { canServe = false }
        if canServe { return "serve" }
        if choice == .preferStored || choice == .onlyStored { return isFresh && !response.noCache ? "serve" : "stale" }
        let mayBeStale = !isFresh && !response.noCache && !response.mustRevalidate && directive != .noCache
        // A request for revalidation accepts nothing stale, except that an immutable response is one of useProtocol.
        if mayBeStale, choice == .useProtocol, age <= directive.maxAge ?? .max {
            if let limit = directive.maxStale, age - response.lifetime <= limit { return "stale" }
            if directive.maxAge == nil, directive.minFresh == nil, let limit = response.staleWhileRevalidate,
                age - response.lifetime <= limit
            {
                return mayNotSend ? "stale" : "stale and refresh"
            }
        }
        if mayNotSend { return "refuse" }
        return response.hasTag ? "revalidate" : "fetch"
    }

    private func text(_ action: CachePolicy.Action) -> String {
        switch action {
        case .serve: "serve"
        case .serveStale(_, let refreshes): refreshes ? "stale and refresh" : "stale"
        case .revalidate: "revalidate"
        case .fetch: "fetch"
        case .refuse: "refuse"
        }
    }

    @Test func decisionsMatchTheReferenceModel() throws {
        var count = 0
        for response in Response.all {
            let cache = CacheSimulator()
            try cache.get(OriginAnswer(200, response.headers(cache)))
            let key = try cache.request().key
            let entries = cache.store.found(for: key)
            #expect(entries.isEmpty != response.isStored)
            for directive in Directive.allCases {
                let headers: Headers = directive.text.map { ["Cache-Control": $0] } ?? [:]
                for choice in Request.CacheChoice.allCases {
                    let request = CacheRequest(key: key, headers: headers, choice: choice)
                    for age in [0, 10, 20, 21, 59, 60, 65, 70, 71, 90, 91, 5_000] {
                        let now = CacheTime(milliseconds: cache.now.milliseconds + Int64(age) * 1_000)
                        let decision = cache.policy.decide(request, entries: entries, now: now)
                        let expected = model(response, directive, choice, age: age)
                        count += 1
                        if text(decision.action) != expected {
                            Issue.record(
                                "\(response) \(directive) \(choice) \(age): \(text(decision.action)), not \(expected)")
                        }
                    }
                }
            }
        }
        #expect(count == 192 * 9 * 6 * 12)
    }
}
