/// The dates of `Set-Cookie`: the lenient algorithm of RFC 6265bis §5.1.1, which takes what servers really send.
enum CookieDate {
    /// Seconds since 1970-01-01 00:00:00 UTC; nil if the text is no date.
    static func seconds(_ text: String) -> Int64? {
        var fields = Fields()
        for token in text.utf8.split(whereSeparator: isDelimiter) { fields.take(token) }
        return fields.seconds
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private typealias Token = Substring.UTF8View

    /// Each field is taken from the first token that has its form; a later one of the same form is passed over.
    private struct Fields {
        private var time: (hour: Int64, minute: Int64, second: Int64)?
        private var day: Int64?
        private var month: Int64?
        private var year: Int64?

        mutating func take(_ token: Token) {
            if time == nil, let found = CookieDate.time(token) {
                time = found
            } else if day == nil, let found = CookieDate.number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = CookieDate.month(token) {
                month = found
            } else if year == nil, let found = CookieDate.number(token, digits: 2...4) {
                year = found
            }
        }

        var seconds: Int64? {
            guard let time, let day, let month, var year else { return nil }
            if year <= 69 { year += 2000 } else if year <= 99 { year += 1900 }
            guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59, day >= 1,
                day <= CookieDate.days(in: month, year)
            else { return nil }
            let days = CookieDate.daysSince1970(year, month, day)
            return days * 86_400 + time.hour * 3_600 + time.minute * 60 + time.second
        }
    }

    /// `hh:mm:ss` of one or two digits each; what follows a non-digit behind it does not count.
    private static func time(_ token: Token) -> (hour: Int64, minute: Int64, second: Int64)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isASCIIDigit), parts[1].allSatisfy(\.isASCIIDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// The digits that a token begins with, if there are as many as asked for.
    private static func number(_ token: Token, digits: ClosedRange<Int>) -> Int64? {
        let prefix = token.prefix(while: \.isASCIIDigit)
        guard digits.contains(prefix.count) else { return nil }
        return prefix.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static let months: [[UInt8]] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ].map { Array($0.utf8) }

    private static func month(_ token: Token) -> Int64? {
        let start = token.prefix(3).map(\.asciiLowercased)
        return months.firstIndex(of: start).map { Int64($0) + 1 }
    }

    private static func days(in month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    /// Days of the proleptic Gregorian calendar, counted with years that begin in March, so that a leap day is last.
    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let marchYear = month > 2 ? year : year - 1
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
    }
}
