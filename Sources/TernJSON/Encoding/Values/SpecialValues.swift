#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The types of Foundation that JSON has no form for.
extension JSONTextWriter {
    func write(_ date: Date) throws {
        switch unsafe state.pointee.context.pointee.options.dateEncodingStrategy {
        case .deferredToDate: try write(date.timeIntervalSinceReferenceDate)
        case .secondsSince1970: try write(time: date.timeIntervalSince1970)
        case .millisecondsSince1970: try write(time: 1_000 * date.timeIntervalSince1970)
        case .iso8601: try write(date, hasMilliseconds: false)
        case .iso8601WithFractionalSeconds: try write(date, hasMilliseconds: true)
        #if canImport(Darwin)
        case .formatted(let formatter): write(formatter.string(from: date))
        #endif
        case .custom(let encode): try withEncoder { try encode(date, $0) }
        }
    }

    /// Writes a time, which is never a string: the reader could not tell it from a date.
    private func write(time: Double) throws {
        if time.isFinite {
            write(finite: time)
        } else {
            try writeNonFinite(time, allowsStrings: false) { codingPath(below: depth) }
        }
    }

    private func write(_ date: Date, hasMilliseconds: Bool) throws {
        reserve(InternetDateText.longest)
        guard let count = unsafe InternetDateText.write(date, hasMilliseconds: hasMilliseconds, to: end) else {
            let text = "Unable to encode the date in ISO 8601: its year is not one of 1 to 9999."
            throw EncodingError.invalidValue(
                date, EncodingError.Context(codingPath: codingPath(below: depth), debugDescription: text))
        }
        unsafe state.pointee.count &+= count
    }

    func write(_ data: Data) throws {
        switch unsafe state.pointee.context.pointee.options.dataEncodingStrategy {
        case .deferredToData: try writePlain(data)
        case .base64: unsafe data.withUnsafeBytes { unsafe write(base64: $0) }
        case .custom(let encode): try withEncoder { try encode(data, $0) }
        }
    }

    /// Writes all digits of the number.
    func write(_ decimal: Decimal) throws {
        guard decimal.isFinite else {
            let text = "Unable to encode Decimal.nan directly in JSON."
            throw EncodingError.invalidValue(
                decimal, EncodingError.Context(codingPath: codingPath(below: depth), debugDescription: text))
        }
        append(ascii: decimal.description)
    }

    /// Writes a `Float16` in the shortest form by its own precision. For Foundation it is a `Float`, which needs more
    /// digits.
    func writeHalf(_ value: some Encodable) throws {
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        guard let value = value as? Float16 else { return }
        guard value.isFinite else { return try writeNonFinite(Float(value)) { codingPath(below: depth) } }
        var text = value.description
        if text.hasSuffix(".0") { text.removeLast(2) }
        append(ascii: text)
        #endif
    }

    /// Writes a UUID in capitals, as `uuidString`.
    func write(_ id: UUID) {
        reserve(38)
        var place = unsafe end
        unsafe place[0] = UInt8(ascii: "\"")
        unsafe place += 1
        unsafe withUnsafeBytes(of: id.uuid) { bytes in
            for index in 0..<16 {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    unsafe place[0] = UInt8(ascii: "-")
                    unsafe place += 1
                }
                let byte = unsafe bytes[index]
                unsafe place[0] = Self.capitalDigit(byte &>> 4)
                unsafe place[1] = Self.capitalDigit(byte & 15)
                unsafe place += 2
            }
        }
        unsafe place[0] = UInt8(ascii: "\"")
        count &+= 38
    }

    @inline(__always)
    private static func capitalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "A") &- 10 &+ value
    }

    /// Writes bytes in Base64 (RFC 4648 §4), with `/` escaped if the encoder does so.
    private func write(base64 bytes: UnsafeRawBufferPointer) {
        let escapesSlashes = unsafe state.pointee.slashes == EncodingState.escapedSlashes
        append(UInt8(ascii: "\""))
        var place = 0
        while place < bytes.count {
            // In parts, so that cancellation is noticed.
            let partEnd = min(bytes.count, place &+ Base64Text.partSize)
            reserve(Base64Text.longestPart)
            let part = place..<partEnd
            unsafe count &+= Base64Text.write(bytes, part: part, escapesSlashes: escapesSlashes, to: end)
            place = partEnd
        }
        append(UInt8(ascii: "\""))
    }
}
