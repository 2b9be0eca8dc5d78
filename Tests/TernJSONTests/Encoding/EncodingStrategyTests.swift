import Foundation
import TernJSON
import Testing

@Suite("JSON encoding: strategies, beside Foundation's encoder")
struct EncodingStrategyTests {
    private struct Dates: Codable, Equatable {
        var date: Date
        var list: [Date]
        var optional: Date?
        var table: [String: Date]

        init(_ date: Date) {
            self.date = date
            list = [date, date]
            optional = date
            table = ["k": date]
        }
    }

    private let dates = [
        Date(timeIntervalSinceReferenceDate: 0), Date(timeIntervalSince1970: 0), Date(timeIntervalSince1970: -1),
        Date(timeIntervalSince1970: 1_795_906_024.875), Date(timeIntervalSince1970: -0.25), .distantFuture,
        Date(timeIntervalSince1970: 951_782_400), Date(timeIntervalSince1970: 4_107_542_399),
        Date(timeIntervalSince1970: 253_402_300_799),
    ]

    @Test func datesAsNumbers() throws {
        for date in dates {
            try Encoders().expectSameText(Dates(date))
            try Encoders {
                $0.dateEncodingStrategy = .secondsSince1970
                $1.dateEncodingStrategy = .secondsSince1970
            }.expectSameText(Dates(date))
            try Encoders {
                $0.dateEncodingStrategy = .millisecondsSince1970
                $1.dateEncodingStrategy = .millisecondsSince1970
            }.expectSameText(Dates(date))
        }
    }

    @Test func datesAsText() throws {
        let encoders = Encoders {
            $0.dateEncodingStrategy = .iso8601
            $1.dateEncodingStrategy = .iso8601
        }
        for date in dates { try encoders.expectSameText(Dates(date)) }
        var generator = Generator(state: 5)
        for _ in 0..<3_000 {
            let time = Double.random(in: -12_219_292_800..<253_402_300_800, using: &generator)
            try encoders.expectSameText([Date(timeIntervalSince1970: time)])
            try encoders.expectSameText([Date(timeIntervalSince1970: time.rounded())])
        }
    }

    @Test func datesBefore1582AreOfTheSameCalendar() throws {
        let encoders = Encoders {
            $0.dateEncodingStrategy = .iso8601
            $1.dateEncodingStrategy = .iso8601
        }
        var generator = Generator(state: 6)
        for _ in 0..<500 {
            let time = Double.random(in: -62_135_769_600 ..< -12_219_292_800, using: &generator)
            try encoders.expectSameText([Date(timeIntervalSince1970: time)])
        }
        try encoders.expectSameText([Date.distantPast])
    }

    @Test func datesWithMilliseconds() throws {
        var encoder = TernJSONEncoder()
        encoder.dateEncodingStrategy = .iso8601WithFractionalSeconds
        func text(_ time: Double) throws -> String {
            String(decoding: try encoder.encode(Date(timeIntervalSince1970: time)), as: UTF8.self)
        }
        #expect(try text(0) == #""1970-01-01T00:00:00.000Z""#)
        #expect(try text(1_795_906_024.875) == #""2026-11-28T22:47:04.875Z""#)
        #expect(try text(-0.25) == #""1969-12-31T23:59:59.750Z""#)
        #expect(try text(0.9996) == #""1970-01-01T00:00:01.000Z""#)
        #expect(try text(Date.distantPast.timeIntervalSince1970) == #""0001-01-01T00:00:00.000Z""#)
        var generator = Generator(state: 7)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        for _ in 0..<2_000 {
            let milliseconds = Int.random(in: -62_135_769_600_000..<253_402_300_800_000, using: &generator)
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
            let text = String(decoding: try encoder.encode(date), as: UTF8.self)
            let back = try style.parse(text.trimmingCharacters(in: ["\""]))
            #expect(abs(back.timeIntervalSince(date)) < 0.001)
        }
    }

    @Test func datesThatHaveNoText() {
        var encoder = TernJSONEncoder()
        for strategy in [TernJSONEncoder.DateEncodingStrategy.iso8601, .iso8601WithFractionalSeconds] {
            encoder.dateEncodingStrategy = strategy
            for time in [253_402_300_800, -62_135_769_601, .infinity, -.infinity, .nan, 1e300] {
                #expect(
                    failure { _ = try encoder.encode(["d": [Date(timeIntervalSince1970: time)]]) }
                        == "invalidValue at d.[0]")
            }
        }
    }

    @Test func datesByAFunction() throws {
        let encoders = Encoders {
            $0.dateEncodingStrategy = .custom { date, encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(date.timeIntervalSince1970)
                try container.encode(path(encoder.codingPath))
            }
            $1.dateEncodingStrategy = .custom { date, encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(date.timeIntervalSince1970)
                try container.encode(path(encoder.codingPath))
            }
        }
        try encoders.expectSameText([Date(timeIntervalSince1970: 5)])
        let nothing = Encoders {
            $0.dateEncodingStrategy = .custom { _, _ in }
            $1.dateEncodingStrategy = .custom { _, _ in }
        }
        try nothing.expectSameText(Dates(Date(timeIntervalSince1970: 5)))
        try nothing.expectSameText(Date(timeIntervalSince1970: 5))
        let failing = Encoders {
            $0.dateEncodingStrategy = .custom { _, _ in throw CancellationError() }
            $1.dateEncodingStrategy = .custom { _, _ in throw CancellationError() }
        }
        failing.expectSameError([Date()])
    }

    @Test func data() throws {
        var generator = Generator(state: 8)
        for count in Array(0...70) + [1_000, 3_071, 3_072, 3_073, 10_000] {
            let data = Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
            try Encoders().expectSameText(data)
            try Encoders([.withoutEscapingSlashes, .prettyPrinted]).expectSameText([data, data])
            try Encoders {
                $0.dataEncodingStrategy = .deferredToData
                $1.dataEncodingStrategy = .deferredToData
            }.expectSameText(["k": data])
        }
        try Encoders().expectSameText(Data(repeating: 0xFF, count: 4_000))
        try Encoders().expectSameText(Data([1, 2, 3, 4, 5, 6]).dropFirst(2))
        try Encoders {
            $0.dataEncodingStrategy = .custom { data, encoder in try data.count.encode(to: encoder) }
            $1.dataEncodingStrategy = .custom { data, encoder in try data.count.encode(to: encoder) }
        }.expectSameText(["k": [Data(count: 7)]])
    }

    @Test func dataWithSlashesAtEachPlace() throws {
        for count in 0...70 {
            var values = [Data(count: count), Data(repeating: 0xFF, count: count)]
            // Three bytes are `////` or have one slash at each of their four places.
            let groups: [[UInt8]] = [
                [255, 255, 255], [252, 0, 0], [3, 240, 0], [0, 15, 192], [0, 0, 63], [3, 255, 192],
            ]
            for group in groups {
                for place in 0..<max(1, count - 2) {
                    var data = Data(count: count)
                    for (offset, byte) in group.enumerated() where place + offset < count {
                        data[place + offset] = byte
                    }
                    values.append(data)
                }
            }
            try Encoders().expectSameText(values)
            try Encoders([.withoutEscapingSlashes, .sortedKeys]).expectSameText(values)
        }
    }

    @Test func dataAtTheBordersOfParts() throws {
        var generator = Generator(state: 12)
        for parts in [3_072, 6_144, 9_216] {
            for count in parts - 9...parts + 9 {
                let data = Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
                try Encoders().expectSameText(data)
                try Encoders().expectSameText(data.dropFirst(5))
                try Encoders(.withoutEscapingSlashes).expectSameText(Data(repeating: 0xFF, count: count))
            }
        }
    }

    @Test func numbersThatJSONDoesNotHave() throws {
        let encoders = Encoders {
            $0.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "+∞", negativeInfinity: "-∞", nan: "\"NaN\"")
            $1.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "+∞", negativeInfinity: "-∞", nan: "\"NaN\"")
        }
        try encoders.expectSameText([Double.infinity, -.infinity, .nan, 1])
        try encoders.expectSameText([Float.infinity, -.infinity, .nan, 1])
        try encoders.expectSameText(Point(x: .nan, y: .infinity))
        try encoders.expectSameText(["k": Float.infinity])
        try encoders.expectSameText(-Double.infinity)
        try encoders.expectSameText([Date(timeIntervalSinceReferenceDate: .infinity)])
        var seconds = encoders
        seconds.tern.dateEncodingStrategy = .secondsSince1970
        seconds.foundation.dateEncodingStrategy = .secondsSince1970
        seconds.expectSameError(["k": Date(timeIntervalSinceReferenceDate: .infinity)])
        #expect(failure { _ = try seconds.tern.encode(["k": Float16.nan]) } == nil)
    }

    @Test func encodersAreValues() throws {
        let plain = TernJSONEncoder()
        var pretty = plain
        pretty.outputFormatting = .prettyPrinted
        #expect(String(decoding: try plain.encode([1]), as: UTF8.self) == "[1]")
        #expect(String(decoding: try pretty.encode([1]), as: UTF8.self) == "[\n  1\n]")
    }
}
