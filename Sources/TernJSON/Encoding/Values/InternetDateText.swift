#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes dates as RFC 3339 defines them, in UTC: `"2026-11-28T22:47:04Z"`.
///
/// Before 15 October 1582 they are dates of the Julian calendar, as for Foundation, whose `Date.distantPast` is the
/// first day of the year 1 only there.
enum InternetDateText {
    /// The number of bytes with quotes and milliseconds, and some more.
    static let longest = 32

    /// The seconds since 1970 at the start of the years 1 and 10000.
    private static let range = -62_135_769_600.0..<253_402_300_800.0

    /// The days from the start of 1970 to 15 October 1582.
    private static let firstGregorianDay = -141_427

    /// Writes a date with its quotes, and returns the number of bytes; nil for a year outside of 1 to 9999.
    static func write(_ date: Date, hasMilliseconds: Bool, to place: UnsafeMutablePointer<UInt8>) -> Int? {
        var time = date.timeIntervalSince1970
        if hasMilliseconds { time = (time * 1_000).rounded() / 1_000 }
        guard range.contains(time) else { return nil }
        let whole = time.rounded(.down)
        let seconds = Int(whole)
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let second = seconds - days * 86_400
        let (year, month, day) = days < firstGregorianDay ? julian(days: days) : gregorian(days: days)
        unsafe place[0] = UInt8(ascii: "\"")
        unsafe number(year, digits: 4, at: place + 1)
        unsafe place[5] = UInt8(ascii: "-")
        unsafe number(month, digits: 2, at: place + 6)
        unsafe place[8] = UInt8(ascii: "-")
        unsafe number(day, digits: 2, at: place + 9)
        unsafe place[11] = UInt8(ascii: "T")
        unsafe number(second / 3_600, digits: 2, at: place + 12)
        unsafe place[14] = UInt8(ascii: ":")
        unsafe number(second / 60 % 60, digits: 2, at: place + 15)
        unsafe place[17] = UInt8(ascii: ":")
        unsafe number(second % 60, digits: 2, at: place + 18)
        var end = 20
        if hasMilliseconds {
            unsafe place[20] = UInt8(ascii: ".")
            unsafe number(min(999, Int(((time - whole) * 1_000).rounded())), digits: 3, at: place + 21)
            end = 24
        }
        unsafe place[end] = UInt8(ascii: "Z")
        unsafe place[end + 1] = UInt8(ascii: "\"")
        return end + 2
    }

    private static func number(_ value: Int, digits: Int, at place: UnsafeMutablePointer<UInt8>) {
        unsafe NumberText.writePadded(UInt64(truncatingIfNeeded: value), count: digits, to: place)
    }

    // Both begin the year in March, so that the leap day is the last one (Howard Hinnant, "chrono-Compatible Low-Level
    // Date Algorithms").

    private static func gregorian(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        return date(
            dayOfYear: dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100), of: yearOfEra + era * 400)
    }

    /// The days are after the start of the year 1.
    private static func julian(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_470
        let era = shifted / 1_461
        let dayOfEra = shifted - era * 1_461
        let yearOfEra = (dayOfEra - dayOfEra / 1_460) / 365
        return date(dayOfYear: dayOfEra - 365 * yearOfEra, of: yearOfEra + era * 4)
    }

    private static func date(dayOfYear: Int, of year: Int) -> (year: Int, month: Int, day: Int) {
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (year + (month <= 2 ? 1 : 0), month, day)
    }
}
