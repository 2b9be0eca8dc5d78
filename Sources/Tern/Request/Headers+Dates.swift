#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Headers {
    /// The date of a field such as `Last-Modified`, in any of the three forms that a recipient must read
    /// (RFC 9110 §5.6.7); nil without one.
    public func date(_ name: String) -> Date? {
        self[name].flatMap { HTTPDate.date(from: $0) }
    }

    /// Sets a field to a date, by whole seconds, in the one form that a sender may write (RFC 9110 §5.6.7); nil removes
    /// the field.
    public mutating func setDate(_ date: Date?, for name: String) {
        self[name] = date.map { HTTPDate.text(from: $0) }
    }
}
