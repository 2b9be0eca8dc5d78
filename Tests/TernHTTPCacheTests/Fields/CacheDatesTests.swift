import Tern
import Testing

@testable import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests dates, freshness lifetimes and ages (RFC 9111 §4.2).
@Suite struct CacheDatesTests {
    private let now = CacheTime(milliseconds: 784_111_777_000)  // Sun, 06 Nov 1994 08:49:37 GMT

    private func freshness(
        _ headers: Headers, status: Int = 200, delay: Int64 = 0
    ) -> CacheFreshness {
        CacheFreshness(
            status: status, headers: headers, directives: ResponseDirectives(headers),
            requestTime: CacheTime(milliseconds: now.milliseconds - delay * 1_000), responseTime: now)
    }

    private func after(_ seconds: Int64) -> CacheTime { CacheTime(milliseconds: now.milliseconds + seconds * 1_000) }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        // Compared without regard to case (§4.2).
        "sun, 06 nov 1994 08:49:37 gmt", "SUN, 06 NOV 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 gMT",
    ])
    func datesAreReadInThreeFormsAndAnyCase(_ text: String) {
        #expect(CacheDates.time(text, now: now) == now)
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0100",
        "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 94 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94  08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
    ])
    func invalidDatesAreNone(_ text: String) {
        #expect(CacheDates.time(text, now: now) == nil)
    }

    @Test func maxAgeIsAboveExpires() {
        let headers: Headers = ["Cache-Control": "max-age=60", "Expires": "Sun, 06 Nov 1994 09:49:37 GMT"]
        #expect(freshness(headers).lifetime == .seconds(60))
        #expect(freshness(headers).basis == .maxAge)
        let invalid: Headers = ["Cache-Control": "max-age=x", "Expires": "Sun, 06 Nov 1994 09:49:37 GMT"]
        #expect(freshness(invalid).lifetime == .zero)
        // For shared caches alone (§5.2.2.10).
        #expect(freshness(["Cache-Control": "s-maxage=60"]).basis == .none)
    }

    @Test func expiresCountsFromDate() {
        let later = "Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(freshness(["Expires": later]).lifetime == .seconds(60))
        #expect(freshness(["Expires": later, "Date": "Sun, 06 Nov 1994 08:50:27 GMT"]).lifetime == .seconds(10))
        #expect(freshness(["Expires": later, "Date": "invalid"]).lifetime == .seconds(60))
        #expect(freshness(["Expires": "Sun, 06 Nov 1994 08:49:00 GMT"]).lifetime == .zero)
        #expect(freshness(["Expires": "0"]).basis == .expires)
        #expect(freshness(["Expires": "0", "Last-Modified": "Sun, 06 Nov 1993 08:49:00 GMT"]).lifetime == .zero)
    }

    @Test func theEarliestExpiresCounts() {
        var headers: Headers = ["Expires": "Sun, 06 Nov 1994 09:49:37 GMT"]
        headers.append(name: "Expires", value: "Sun, 06 Nov 1994 08:49:47 GMT")
        #expect(freshness(headers).lifetime == .seconds(10))
        headers.append(name: "Expires", value: "0")
        #expect(freshness(headers).lifetime == .zero)
    }

    @Test func farDatesDoNotOverflow() {
        let far: Headers = ["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": "Sat, 01 Jan 0000 00:00:00 GMT"]
        #expect(freshness(far).lifetime == .seconds(1 << 31))
        #expect(freshness(far).initialAge == .seconds(1 << 31))
        #expect(
            freshness(["Date": "Fri, 31 Dec 9999 23:59:59 GMT", "Age": "99999999999"]).initialAge == .seconds(1 << 31))
        let times = [Int64.min, .max, 0].map { CacheTime(milliseconds: $0) }
        for left in times { for right in times { #expect(left.since(right) <= CacheTime.longest) } }
        #expect(CacheTime(Date(timeIntervalSince1970: .infinity)) > now)
        #expect(CacheTime(Date(timeIntervalSince1970: .nan)).milliseconds == 0)
    }

    @Test func theHeuristicIsATenthAndAtMostAWeek() {
        let day: Headers = ["Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT"]
        #expect(freshness(day).lifetime == .seconds(8_640))
        #expect(freshness(day).basis == .heuristic)
        #expect(freshness(["Last-Modified": "Sat, 06 Nov 1954 08:49:37 GMT"]).lifetime == .seconds(7 * 86_400))
        #expect(freshness(["Last-Modified": "Mon, 07 Nov 1994 08:49:37 GMT"]).lifetime == .zero)
        #expect(freshness(["Last-Modified": "yesterday"]).basis == .none)
        var dated = day
        dated["Date"] = "Sat, 05 Nov 1994 08:49:47 GMT"
        #expect(freshness(dated).lifetime == .seconds(1))
    }

    @Test func onlySomeStatusesHaveAHeuristic() {
        for status in 200...599 {
            let headers: Headers = ["Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT"]
            let expected = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
            #expect((freshness(headers, status: status).basis == .heuristic) == expected, "\(status)")
            var marked = headers
            marked["Cache-Control"] = "public"
            #expect(freshness(marked, status: status).basis == .heuristic)
        }
    }

    @Test(arguments: [
        ("30", 30), ("30, 7", 30), ("0", 0), ("-5", 0), ("abc", 0), ("7.5", 0), ("", 0), (" 12 ", 12),
        ("99999999999999999999999", 1 << 31),
    ])
    func theFirstAgeCountsIfItIsANumber(_ value: String, seconds: Int64) {
        #expect(freshness(["Age": value]).initialAge == .seconds(seconds))
        var headers: Headers = ["Age": value]
        headers.append(name: "Age", value: "77")
        #expect(freshness(headers).initialAge == .seconds(seconds))
    }

    @Test func theAgeIsTheGreaterOfBothCalculations() {
        // apparent_age (§4.2.3).
        #expect(freshness(["Date": "Sun, 06 Nov 1994 08:48:37 GMT", "Age": "5"]).initialAge == .seconds(60))
        // corrected_age_value: the delay of the response counts.
        #expect(freshness(["Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Age": "5"], delay: 9).initialAge == .seconds(14))
        // A date in the future makes no negative age.
        #expect(freshness(["Date": "Sun, 06 Nov 1994 09:49:37 GMT"]).initialAge == .zero)
        // A clock that was set back during the exchange makes no negative delay.
        #expect(freshness(["Age": "5"], delay: -100).initialAge == .seconds(5))
    }

    @Test func theAgeGrowsAndTheResponseBecomesStaleAtItsLifetime() {
        let fresh = freshness(["Cache-Control": "max-age=60", "Age": "10"])
        #expect(fresh.age(at: after(20)) == .seconds(30))
        #expect(fresh.isFresh(at: after(49)))
        #expect(!fresh.isFresh(at: after(50)))
        #expect(fresh.staleness(at: after(55)) == .seconds(5))
    }

    @Test func aClockThatWasSetBackNeverMakesAResponseFresher() {
        let fresh = freshness(["Cache-Control": "max-age=60"])
        #expect(!fresh.isFresh(at: after(-1)))
        #expect(fresh.age(at: after(-1)) == .seconds(1 << 31))
        let longest = freshness(["Cache-Control": "max-age=2147483648"])
        #expect(!longest.isFresh(at: after(-1)))
    }
}
