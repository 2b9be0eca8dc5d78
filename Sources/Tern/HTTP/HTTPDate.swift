#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Parses and writes dates in header fields, in the three forms that every recipient reads (RFC 9110 §5.6.7). Always in
/// GMT and in whole seconds.
package enum HTTPDate {
    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`; nil for
    /// other text. A year of two digits that would be more than 50 years after `now` counts as past.
    package static func date(from text: String, now: Date = Date()) -> Date? {
        if let date = preferredDate(from: text) { return date }
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        switch words.count {
        case 6 where words[5] == "GMT" && days.contains { "\($0.prefix(3))," == words[0] }:
            guard words[1].utf8.count == 2, words[3].utf8.count == 4 else { return nil }
            return date(day: words[1], month: words[2], year: number(words[3]), time: words[4])
        case 4 where words[3] == "GMT" && days.contains { "\($0)," == words[0] }:
            let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0].utf8.count == 2, parts[2].utf8.count == 2 else { return nil }
            return date(day: parts[0], month: parts[1], year: fullYear(number(parts[2]), now), time: words[2])
        case 5 where days.contains { $0.prefix(3) == words[0] }:
            guard words[4].utf8.count == 4 else { return nil }
            return date(day: words[2], month: words[1], year: number(words[4]), time: words[3])
        default:
            return nil
        }
    }

    /// Parses the first form, which nearly all servers send, without a split into words; nil for other text.
    package static func preferredDate(from text: String) -> Date? {
        guard text.utf8.count == 29 else { return nil }
        let bytes = Array(text.utf8)
        func number(_ first: Int, _ count: Int) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[first..<first + count] {
                guard byte.isASCIIDigit else { return nil }
                value = value * 10 + Int64(byte &- 0x30)
            }
            return value
        }
        let marks: [(place: Int, byte: UInt8)] = [
            (3, 0x2C), (4, 0x20), (7, 0x20), (11, 0x20), (16, 0x20), (19, 0x3A), (22, 0x3A), (25, 0x20),
        ]
        guard marks.allSatisfy({ bytes[$0.place] == $0.byte }), bytes[26...].elementsEqual("GMT".utf8),
            days.contains(where: { $0.utf8.prefix(3).elementsEqual(bytes[0..<3]) }),
            let month = months.firstIndex(where: { $0.utf8.elementsEqual(bytes[8..<11]) }).map({ Int64($0) + 1 }),
            let day = number(5, 2), let year = number(12, 4), let hour = number(17, 2), let minute = number(20, 2),
            let second = number(23, 2)
        else { return nil }
        return date(year: year, month: month, day: day, seconds: (hour, minute, second))
    }

    /// Returns the form to send: `Sun, 06 Nov 1994 08:49:37 GMT`. Its year has four digits. An earlier date than those
    /// of the year 1 becomes the first date of that year, a later one than those of 9999 the last, and NaN that of
    /// 1970.
    package static func text(from date: Date) -> String {
        let exact = date.timeIntervalSince1970.rounded(.down)
        let seconds = exact.isNaN ? 0 : Int64(min(max(exact, -62_135_596_800), 253_402_300_799))
        let (day, time) = seconds.quotientAndRemainder(dividingBy: secondsPerDay)
        let (days, rest) = time < 0 ? (day - 1, time + secondsPerDay) : (day, time)
        let (year, month, dayOfMonth) = civil(days)
        // 1970-01-01 was a Thursday.
        let name = Self.days[Int(((days + 4) % 7 + 7) % 7)].prefix(3)
        let clock = [rest / 3_600, rest / 60 % 60, rest % 60].map(padded).joined(separator: ":")
        return "\(name), \(padded(dayOfMonth)) \(months[Int(month) - 1]) \(fourDigits(year)) \(clock) GMT"
    }

    private static let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let secondsPerDay: Int64 = 86_400

    private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func fourDigits(_ number: Int64) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, 4 - text.utf8.count)) + text
    }

    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy(\.isASCIIDigit) ? Int64(text) : nil
    }

    private static func fullYear(_ year: Int64?, _ now: Date) -> Int64? {
        guard let year else { return nil }
        let current = civil(Int64((now.timeIntervalSince1970 / 86_400).rounded(.down))).year
        let inThisCentury = current / 100 * 100 + year
        return inThisCentury > current + 50 ? inThisCentury - 100 : inThisCentury
    }

    private static func date(day: Substring, month: Substring, year: Int64?, time: Substring) -> Date? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false).map(number)
        guard parts.count == 3, time.utf8.count == 8, let hour = parts[0], let minute = parts[1], let second = parts[2],
            let year, let day = number(day), let month = months.firstIndex(of: String(month)).map({ Int64($0) + 1 })
        else { return nil }
        return date(year: year, month: month, day: day, seconds: (hour, minute, second))
    }

    /// Returns a date; nil for a day or a time that does not exist.
    private static func date(
        year: Int64, month: Int64, day: Int64, seconds time: (hour: Int64, minute: Int64, second: Int64)
    ) -> Date? {
        guard time.hour < 24, time.minute < 60, time.second <= 60, day > 0, day <= length(of: month, in: year) else {
            return nil
        }
        let days = daysSinceEpoch(year: year, month: month, day: day)
        let seconds = days * secondsPerDay + time.hour * 3_600 + time.minute * 60 + time.second
        return Date(timeIntervalSince1970: Double(seconds))
    }

    /// Returns the number of days in a month.
    static func length(of month: Int64, in year: Int64) -> Int64 {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    // The Gregorian calendar in eras of 400 years, which have equal lengths. A year begins in March, so that the leap
    // day is its last day.

    /// Returns the days from 1970-01-01 to a date.
    static func daysSinceEpoch(year: Int64, month: Int64, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        return (yearOfEra + era * 400 + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9, day)
    }
}
