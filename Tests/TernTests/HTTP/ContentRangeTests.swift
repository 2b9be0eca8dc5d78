import Tern
import Testing

@Suite("ContentRange")
struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 0-0/1", "bytes", 0...0, 1), ("bytes 42-1233/1234", "bytes", 42...1233, 1234),
            ("bytes 42-1233/*", "bytes", 42...1233, nil), ("bytes */1234", "bytes", nil, 1234),
            ("BYTES 1-2/3", "bytes", 1...2, 3), ("  bytes   1 - 2 / 3 ", "bytes", 1...2, 3),
            ("items\t1-2/*", "items", 1...2, nil),
            ("bytes */0", "bytes", nil, 0),
            ("bytes 0-9223372036854775806/9223372036854775807", "bytes", 0...(.max - 1), .max),
        ] as [(String, String, ClosedRange<Int64>?, Int64?)])
    func wellFormedValuesAreParsed(text: String, unit: String, range: ClosedRange<Int64>?, length: Int64?) throws {
        let parsed = try #require(ContentRange(text))
        #expect(parsed.unit == unit)
        #expect(parsed.range == range)
        #expect(parsed.completeLength == length)
    }

    @Test(arguments: [
        "", " ", "bytes", "bytes ", "bytes 0-1", "bytes 0-1/", "bytes /5", "bytes */*", "bytes 5-4/10", "bytes 0-10/10",
        "bytes 0-9/9", "bytes -1-2/3", "bytes 1-/3", "bytes -2/3", "bytes +1-2/3", "bytes 1-2/+3", "bytes 1-2/-3",
        "bytes 1-2-3/4", "bytes 1-2/3/4", "bytes a-b/c", "bytes 0-9223372036854775808/*", "bytes 0x0-1/2",
        "bytes=0-1/2",
        "bytes ٠-١/٢", "by(tes 0-1/2", "bytes *-*/5", "bytes 0-1/2, 3-4/5",
    ])
    func malformedValuesAreRefused(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
