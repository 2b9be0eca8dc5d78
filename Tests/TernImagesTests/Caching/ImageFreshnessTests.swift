import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the rules of RFC 9111 on response heads.
@Suite struct ImageFreshnessTests {
    private let now = Date(timeIntervalSince1970: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    private func freshness(_ headers: Headers, fallback: Duration = .seconds(1_000)) -> ImageFreshness {
        ImageFreshness(ResponseHead(status: 200, headers: headers), now: now, fallback: fallback)
    }

    @Test(arguments: [
        ("max-age=60", 60), ("max-age=\"60\"", 60), ("public, MAX-AGE=60", 60), ("max-age=60, max-age=5", 5),
        ("max-age=-1", 0), ("max-age=soon", 0), ("max-age=1e9", 0), ("max-age=inf", 0), ("max-age", 0),
        ("no-cache", 0), ("no-cache, max-age=60", 0), ("no-cache=\"Set-Cookie\"", 1_000), ("s-maxage=5", 1_000),
        ("public", 1_000), (" , ,max-age=60", 60), ("max-age = 60", 0),
    ])
    func cacheControlSaysHowLong(_ value: String, seconds: Double) {
        #expect(freshness(["Cache-Control": value]).lifetime == seconds)
    }

    @Test func theAgeHeaderCounts() {
        #expect(freshness(["Cache-Control": "max-age=60", "Age": "20"]).lifetime == 40)
        #expect(freshness(["Cache-Control": "max-age=60", "Age": "90"]).lifetime == 0)
        #expect(freshness(["Cache-Control": "max-age=60", "Age": "-5"]).lifetime == 60)
        #expect(freshness(["Cache-Control": "max-age=60", "Age": "nan"]).lifetime == 60)
    }

    @Test func expiresCountsFromTheServersClock() {
        let later = "Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(freshness(["Expires": later]).lifetime == 60)
        #expect(freshness(["Expires": later, "Date": "Sun, 06 Nov 1994 08:50:27 GMT"]).lifetime == 10)
        #expect(freshness(["Expires": later, "Age": "50"]).lifetime == 10)
        #expect(freshness(["Expires": later, "Cache-Control": "max-age=5"]).lifetime == 5)
        // An invalid date counts as past.
        #expect(freshness(["Expires": "0"]).lifetime == 0)
        #expect(freshness(["Expires": "Sun, 06 Nov 1994 08:49:00 GMT"]).lifetime == 0)
    }

    @Test func varyStarIsNeverFresh() {
        #expect(freshness(["Vary": "*", "Cache-Control": "max-age=60"]).lifetime == 0)
        #expect(freshness(["Vary": "Accept, *", "Cache-Control": "max-age=60"]).lifetime == 0)
        #expect(freshness(["Vary": "Accept", "Cache-Control": "max-age=60"]).lifetime == 60)
    }

    @Test func noStoreIsRecorded() {
        #expect(freshness(["Cache-Control": "max-age=60, No-Store"]).forbidsStorage)
        #expect(!freshness(["Cache-Control": "max-age=60"]).forbidsStorage)
    }

    @Test func aResponseIsFreshForItsLifetime() {
        let minute = freshness(["Cache-Control": "max-age=60"])
        #expect(minute.isFresh(at: now.addingTimeInterval(59)))
        #expect(!minute.isFresh(at: now.addingTimeInterval(60)))
        #expect(ImageFreshness.always.isFresh(at: .distantFuture))
        #expect(!freshness(["Cache-Control": "no-cache"]).isFresh(at: now))
    }

    @Test func conditionsUseTheValidators() {
        let both = freshness(["ETag": "W/\"1\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"])
        #expect(both.conditions?["If-None-Match"] == "W/\"1\"")
        #expect(both.conditions?["If-Modified-Since"] == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(freshness([:]).conditions == nil)
    }

    @Test func theHeadersOfA304Win() {
        let old = freshness(["Cache-Control": "max-age=60", "ETag": "\"1\""])
        let later = now.addingTimeInterval(100)
        func updated(_ headers: Headers) -> ImageFreshness {
            old.updated(by: ResponseHead(status: 304, headers: headers), now: later, fallback: .seconds(1_000))
        }
        // Without headers, the previous lifetime applies again, not the default of the pipeline.
        #expect(updated([:]).lifetime == 60)
        #expect(updated([:]).received == later.timeIntervalSince1970)
        #expect(updated([:]).entityTag == "\"1\"")
        #expect(updated(["Cache-Control": "max-age=5", "ETag": "\"2\""]).lifetime == 5)
        #expect(updated(["ETag": "\"2\""]).entityTag == "\"2\"")
        #expect(updated(["Cache-Control": "public"]).lifetime == 1_000)
    }

    @Test func itIsTheSameAfterItWasStored() {
        let all = [
            freshness(["Cache-Control": "max-age=60", "ETag": "W/\"a \\ b\"", "Last-Modified": "whenever"]),
            freshness([:]),
            .always, ImageFreshness(received: 1_234.5678, lifetime: 0.1),
        ]
        for freshness in all { #expect(ImageFreshness(freshness.encoded) == freshness) }
        for text in ["", "1", "2\n1\n1\n\n", "1\nx\n1\n\n", "1\n1\n1\n", "1\n1\n1\n\n\n"] {
            #expect(ImageFreshness(Data(text.utf8)) == nil)
        }
    }
}
