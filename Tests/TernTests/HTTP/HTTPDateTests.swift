import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Dates of RFC 9110 §5.6.7.
@Suite("HTTP dates")
struct HTTPDateTests {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func threeDateFormsAreParsed(text: String) {
        #expect(HTTPDate.date(from: text) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [
        (0.0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (1_700_000_000.9, "Tue, 14 Nov 2023 22:13:20 GMT"),
        (-30_000_000_000, "Tue, 04 May 1019 18:40:00 GMT"), (-40_000_000_000, "Sun, 15 Jun 0702 00:53:20 GMT"),
        // Dates that the form cannot name.
        (-.infinity, "Mon, 01 Jan 0001 00:00:00 GMT"), (-1e300, "Mon, 01 Jan 0001 00:00:00 GMT"),
        (.infinity, "Fri, 31 Dec 9999 23:59:59 GMT"), (1e18, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (.nan, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ])
    func oneDateFormIsWritten(seconds: Double, text: String) {
        #expect(HTTPDate.text(from: Date(timeIntervalSince1970: seconds)) == text)
    }

    @Test func everyDayOfFourHundredYearsIsReadAsItWasWritten() {
        for day in stride(from: -50_000, to: 96_097, by: 1) {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + Double(abs(day) % 86_400))
            #expect(HTTPDate.date(from: HTTPDate.text(from: date)) == date)
        }
    }

    @Test func yearOfTwoDigitsIsAtMostFiftyYearsAhead() {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        let near = HTTPDate.date(from: "Wednesday, 01-Jan-70 00:00:00 GMT", now: now)
        #expect(near.map { HTTPDate.text(from: $0).contains("2070") } == true)
        let far = HTTPDate.date(from: "Wednesday, 01-Jan-75 00:00:00 GMT", now: now)
        #expect(far.map { HTTPDate.text(from: $0).contains("1975") } == true)
    }

    @Test(arguments: [
        "", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2100 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
    ])
    func otherTextsAreNotDates(text: String) {
        #expect(HTTPDate.date(from: text) == nil)
    }
}
