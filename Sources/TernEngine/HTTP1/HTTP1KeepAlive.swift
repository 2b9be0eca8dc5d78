/// The promise of a server about a connection that stays open: `Keep-Alive: timeout=5, max=100`. Of several promises of
/// a response, the smallest counts. A value that is not a number is ignored.
struct HTTP1KeepAlive: Sendable, Equatable {
    /// The time for which the server keeps the idle connection, in seconds; nil without a promise.
    private(set) var timeout: UInt64?
    /// The number of further requests that the server takes on the connection; nil without a promise.
    private(set) var requests: UInt64?

    /// Takes the value of a Keep-Alive field.
    @unsafe
    mutating func take(_ base: UnsafeRawPointer, _ value: Range<Int>) {
        var position = value.lowerBound
        while let element = unsafe HTTPBytes.nextElement(base, from: &position, to: value.upperBound) {
            guard let mark = element.first(where: { unsafe base.load(fromByteOffset: $0, as: UInt8.self) == 0x3D })
            else { continue }
            let name = unsafe HTTPBytes.trimmed(base, element.lowerBound..<mark)
            guard let number = unsafe Self.number(base, HTTPBytes.trimmed(base, (mark + 1)..<element.upperBound)) else {
                continue
            }
            if unsafe HTTPBytes.equals(base, in: name, to: "timeout") { timeout = min(timeout ?? number, number) }
            if unsafe HTTPBytes.equals(base, in: name, to: "max") { requests = min(requests ?? number, number) }
        }
    }

    /// Returns the number that digits of any length state, also between quotation marks, at most `UInt64.max`; nil for
    /// anything else.
    private static func number(_ base: UnsafeRawPointer, _ value: Range<Int>) -> UInt64? {
        func isQuote(_ index: Int) -> Bool { unsafe base.load(fromByteOffset: index, as: UInt8.self) == 0x22 }
        let isQuoted = value.count > 2 && isQuote(value.lowerBound) && isQuote(value.upperBound - 1)
        let digits = isQuoted ? value.lowerBound + 1..<value.upperBound - 1 : value
        if digits.isEmpty { return nil }
        var number: UInt64 = 0
        for index in digits {
            let byte = unsafe base.load(fromByteOffset: index, as: UInt8.self)
            guard HTTPBytes.isDigit(byte) else { return nil }
            let (product, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = product.addingReportingOverflow(UInt64(byte &- 0x30))
            number = isTooLarge || overflows ? .max : sum
        }
        return number
    }
}
