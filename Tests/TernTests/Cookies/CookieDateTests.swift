import Testing

@testable import Tern

/// The relevant vectors of the http-state suite (`dates/examples.json`, `dates/bsd-examples.json`).
@Suite("Cookie dates")
struct CookieDateTests {
    @Test(
        arguments: [
            ("Mon, 10-Dec-2007 17:02:24 GMT", 1_197_306_144), ("Wed, 09 Dec 2009 16:27:23 GMT", 1_260_376_043),
            ("Thursday, 01-Jan-1970 00:00:00 GMT", 0), ("Mon Dec 24 16:32:39 1977 GMT", 251_829_159),
            ("Mon, 10-Dec-07 20:35:03 GMT", 1_197_318_903), ("Wed, 1 Jan 2020 00:00:00 GMT", 1_577_836_800),
            ("Saturday, 8-Dec-2012 21:24:09 GMT", 1_355_001_849), ("Sun,  9 Dec 2012 13:42:05 GMT", 1_355_060_525),
            ("Wed Dec 12 2007 08:44:07 GMT-0500 (EST)", 1_197_449_047),
            ("Wednesday, 01-Jan-10 0:0:00 GMT", 1_262_304_000), ("Thu, 10 Dec 2009 13:57:2 GMT", 1_260_453_422),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("1994 nov 06 08:49:37", 784_111_777),
            ("08:49:37 6 November 94", 784_111_777), ("Fri, 01-Jan-2038 00:00:00 GMT", 2_145_916_800),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("1 Jan 1601 00:00:00", -11_644_473_600), ("31 Dec 9999 23:59:59", 253_402_300_799),
            ("1 Jan 69 00:00:00", 3_124_224_000), ("1 Jan 70 00:00:00", 0),
            ("06x Nov 1994y 08:49:37z", 784_111_777),
        ] as [(String, Int64)])
    func serverDatesAreParsed(text: String, expected: Int64) {
        #expect(CookieDate.seconds(text) == expected)
    }

    @Test(arguments: [
        "", "0", "never", "Mon, 01-Jan-2011 00:00: 00 GMT", "Wed, 09 Dec 2009 24:00:00 GMT",
        "Wed, 09 Dec 2009 16:60:23 GMT", "Wed, 09 Dec 2009 16:27:60 GMT", "Wed, 32 Dec 2009 16:27:23 GMT",
        "Wed, 00 Dec 2009 16:27:23 GMT", "Wed, 30 Feb 2009 16:27:23 GMT", "Tue, 29 Feb 2023 00:00:00 GMT",
        "Mon, 29 Feb 2100 00:00:00 GMT", "31 Apr 2020 00:00:00", "Wed, 09 Dec 1600 16:27:23 GMT",
        "Wed, 09 Foo 2009 16:27:23 GMT", "Dec 2009 16:27:23", "09 Dec 16:27:23", "09 Dec 2009", "09 Dec 20090 16:27:23",
        "09 Dec 2009 016:27:23", "09 Dec 2009 16:27", "09 Dec 2009 16:27:023", "20091209T162723Z",
    ])
    func invalidDateIsNil(text: String) {
        #expect(CookieDate.seconds(text) == nil)
    }
}
