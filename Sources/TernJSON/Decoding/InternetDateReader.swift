/// Reads dates and times of RFC 3339 §5.6, the profile of ISO 8601 for the Internet.
enum InternetDateReader {
    /// Returns the seconds since the beginning of 2001 in UTC; nil for a text that is no date and time.
    ///
    /// Accepts fractions of a second of any length, offsets as `Z`, `+hh:mm` and `+hhmm`, and a leap second, which
    /// counts as the first second of the next minute. Before 15 October 1582, dates are those of the Julian calendar,
    /// as for Foundation and ``TernJSONEncoder``.
    static func secondsSince2001(_ text: Span<UInt8>) -> Double? {
        guard text.count >= 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
            text[10] | 0x20 == UInt8(ascii: "t"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":")
        else { return nil }
        let year = number(text, at: 0) * 100 + number(text, at: 2)
        let month = number(text, at: 5)
        let day = number(text, at: 8)
        let hour = number(text, at: 11)
        let minute = number(text, at: 14)
        let second = number(text, at: 17)
        guard year >= 0, 1...12 ~= month, day >= 1, day <= lengthOfMonth(month, year: year), 0...23 ~= hour,
            0...59 ~= minute, 0...60 ~= second
        else { return nil }
        var index = 19
        var fraction = 0.0
        if text[index] == UInt8(ascii: ".") {
            guard let (value, end) = self.fraction(text, from: index + 1) else { return nil }
            fraction = value
            index = end
        }
        guard let offset = offset(text, from: index) else { return nil }
        let days = days(year: year, month: month, day: day)
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset
        return Double(seconds) + fraction
    }

    /// Returns two digits as a number; a large negative one for other bytes.
    @inline(__always)
    private static func number(_ text: Span<UInt8>, at index: Int) -> Int {
        let (tens, ones) = (text[index] &- 0x30, text[index + 1] &- 0x30)
        return tens > 9 || ones > 9 ? -1_000_000 : Int(tens) * 10 + Int(ones)
    }

    /// Returns the fraction of a second and the index after it. Digits after the 18th do not change a `Double`.
    @inline(__always)
    private static func fraction(_ text: Span<UInt8>, from start: Int) -> (value: Double, end: Int)? {
        var index = start
        var digits = 0
        var scale = 1
        while index < text.count, text[index].isDigit {
            if index - start < 18 {
                digits = digits * 10 + Int(text[index] & 0x0F)
                scale *= 10
            }
            index += 1
        }
        return index == start ? nil : (Double(digits) / Double(scale), index)
    }

    /// Returns the offset from UTC at the end of a text, in seconds.
    @inline(__always)
    private static func offset(_ text: Span<UInt8>, from start: Int) -> Int? {
        let left = text.count - start
        guard left >= 1 else { return nil }
        if text[start] | 0x20 == UInt8(ascii: "z") { return left == 1 ? 0 : nil }
        guard text[start] == UInt8(ascii: "+") || text[start] == UInt8(ascii: "-"), left == 5 || left == 6 else {
            return nil
        }
        if left == 6, text[start + 3] != UInt8(ascii: ":") { return nil }
        let hours = number(text, at: start + 1)
        let minutes = number(text, at: start + left - 2)
        guard 0...23 ~= hours, 0...59 ~= minutes else { return nil }
        let offset = (hours * 60 + minutes) * 60
        return text[start] == UInt8(ascii: "-") ? -offset : offset
    }

    private static func lengthOfMonth(_ month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0 || year <= 1_582) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns the days since the beginning of 2001. Years begin in March, so that a leap day is the last.
    @inline(__always)
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let isJulian = (year, month, day) < (1_582, 10, 15)
        let year = month <= 2 ? year + 399 : year + 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        if isJulian { return year * 365 + year / 4 + dayOfYear - 876_893 }
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 876_888
    }
}
