import Foundation
import Testing

@testable import Tern

/// The table of `Documentation/Retry.md`.
@Suite("Retry-After")
struct RetryAfterTests {
    private let now = Date(timeIntervalSince1970: 784_111_777)

    @Test(arguments: [
        ("120", 120), ("007", 7), ("0", 0), ("000", 0), (" \t12 ", 12), ("4294967296", 4_294_967_296),
        ("9223372036854775807", 4_294_967_296), ("9223372036854775808", 4_294_967_296),
        ("99999999999999999999999999999999", 4_294_967_296), ("00000000000000000000000000000000000005", 5),
        ("Sun, 06 Nov 1994 08:49:42 GMT", 5), ("Sunday, 06-Nov-94 08:49:42 GMT", 5), ("Sun Nov  6 08:49:42 1994", 5),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 4_294_967_296), (" Sun, 06 Nov 1994 08:49:42 GMT ", 5),
    ])
    func numbersAndDatesAreDelays(value: String, seconds: Int64) {
        #expect(RetryAfter(value, now: now) == .delay(.seconds(seconds)))
        #expect(RetryAfter.delay(in: ["Retry-After": value], now: now) == .seconds(seconds))
    }

    @Test(arguments: [
        "", " ", "1.5", "0.5", ".5", "5.", "-1", "-0", "+3", "3s", "3 s", "1e3", "1,000", "60, 120", "60;x", "0x10",
        "soon", "null",
        "infinity", "\u{661}", "1\u{0}", "\"3\"", "Sun, 32 Nov 1994 08:49:42 GMT", "Sun, 06 Nov 1994 08:49:42",
        "1994-11-06T08:49:42Z", "Sun, 06 Nov 1994 08:49:42 +0100",
    ])
    func everythingElseIsInvalid(value: String) {
        #expect(RetryAfter(value, now: now) == .invalid)
        #expect(RetryAfter.delay(in: ["Retry-After": value], now: now) == nil)
    }

    @Test func theFirstFieldCounts() {
        var headers = Headers()
        #expect(RetryAfter.delay(in: headers, now: now) == nil)
        headers.append(name: "retry-after", value: "7")
        headers.append(name: "Retry-After", value: "8")
        #expect(RetryAfter.delay(in: headers, now: now) == .seconds(7))
    }
}
