#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How values of a type are decoded.
enum TypeKind {
    /// By the type's `init(from:)`.
    case plain
    case array(any ArrayDecoding.Type)
    case dictionary(any DictionaryDecoding.Type)
    case date
    case data
    case url
    case decimal
    case float16
    case json
}

/// The kind of a type, in a table with a place for each type by bits of its address.
struct TypeEntry {
    var id: ObjectIdentifier?
    var kind = TypeKind.plain
}

/// Values of any type.
extension DecodingCore {
    /// Decodes a value.
    @inline(__always)
    func value<Value: Decodable>(_ type: Value.Type, at index: Int) throws -> Value {
        if Value.self == String.self { return cast(try string(at: index)) }
        if Value.self == Int.self { return cast(try integer(at: index, as: Int.self)) }
        if Value.self == Double.self { return cast(try double(at: index)) }
        return try otherValue(type, at: index)
    }

    private func otherValue<Value: Decodable>(_ type: Value.Type, at index: Int) throws -> Value {
        try countValue()
        switch kind(of: type) {
        case .plain:
            try countCall()
            return try Value(from: ValueDecoder(owner: owner, index: index))
        case .array(let array): return try array.value(at: index, of: self)
        case .dictionary(let dictionary): return try dictionary.value(at: index, of: self)
        case .date: return cast(try date(at: index))
        case .data: return cast(try data(at: index))
        case .url: return cast(try url(at: index))
        case .decimal: return cast(try decimal(at: index))
        case .float16:
            #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
            return cast(try half(at: index))
            #else
            return try Value(from: ValueDecoder(owner: owner, index: index))
            #endif
        case .json: return cast(try jsonValue(at: index))
        }
    }

    /// Returns a value as one of the type that it is known to be.
    @inline(__always)
    func cast<From, To>(_ value: From) -> To {
        // Each caller has compared the types, so that this never fails. `as!` would look up their metadata.
        precondition(From.self == To.self)
        return unsafe unsafeBitCast(value, to: To.self)
    }

    @inline(__always)
    func kind<Value: Decodable>(of type: Value.Type) -> TypeKind {
        let id = ObjectIdentifier(type)
        let place = Int(bitPattern: id) &>> 4 & (DecodingStorage.typeCount &- 1)
        let entry = unsafe storage.pointee.types[place]
        return entry.id == id ? entry.kind : findKind(of: type, place: place)
    }

    @inline(never)
    private func findKind<Value: Decodable>(of type: Value.Type, place: Int) -> TypeKind {
        var kind = TypeKind.plain
        if let array = type as? any ArrayDecoding.Type {
            kind = .array(array)
        } else if let dictionary = type as? any DictionaryDecoding.Type {
            kind = .dictionary(dictionary)
        } else if type == Date.self {
            kind = .date
        } else if type == Data.self {
            kind = .data
        } else if type == URL.self {
            kind = .url
        } else if type == Decimal.self {
            kind = .decimal
        } else if type == JSONValue.self {
            kind = .json
        } else {
            #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
            if type == Float16.self { kind = .float16 }
            #endif
        }
        unsafe storage.pointee.types[place] = TypeEntry(id: ObjectIdentifier(type), kind: kind)
        return kind
    }

    // MARK: Types of Foundation

    private func date(at index: Int) throws -> Date {
        if isNull(index) { throw mismatch(Date.self, at: index) }
        switch unsafe storage.pointee.settings.values.dates {
        case .deferredToDate: return Date(timeIntervalSinceReferenceDate: try double(at: index))
        case .secondsSince1970: return Date(timeIntervalSince1970: try double(at: index))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try double(at: index) / 1_000)
        case .iso8601: return try iso8601(at: index)
        #if canImport(Darwin)
        case .formatted(let formatter):
            guard let date = formatter.date(from: try string(at: index)) else {
                throw corrupted("the string is not a date in the format of the formatter", at: index)
            }
            return date
        #endif
        case .custom(let decode):
            try countCall()
            return try decode(ValueDecoder(owner: owner, index: index))
        }
    }

    private func iso8601(at index: Int) throws -> Date {
        let token = token(index)
        guard token.kind == .string else { throw mismatch(String.self, at: index) }
        var seconds: Double?
        if token.flags & Token.Flags.hasEscapes == 0 {
            let text = unsafe UnsafeBufferPointer(start: bytes + Int(token.start), count: token.length)
            seconds = unsafe InternetDateReader.secondsSince2001(Span(_unsafeElements: text))
        } else {
            seconds = InternetDateReader.secondsSince2001(Array(string(token).utf8).span)
        }
        guard let seconds else { throw corrupted("expected a date and time of RFC 3339", at: index) }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    private func data(at index: Int) throws -> Data {
        if isNull(index) { throw mismatch(Data.self, at: index) }
        let decoder = ValueDecoder(owner: owner, index: index)
        switch unsafe storage.pointee.settings.values.data {
        case .deferredToData: return try Data(from: decoder)
        case .base64:
            guard let data = Data(base64Encoded: try string(at: index)) else {
                throw corrupted("expected data in Base64", at: index)
            }
            return data
        case .custom(let decode):
            try countCall()
            return try decode(decoder)
        }
    }

    private func url(at index: Int) throws -> URL {
        guard token(index).kind == .string else {
            throw mismatch(isNull(index) ? URL.self : String.self, at: index)
        }
        guard let url = URL(string: string(token(index))) else { throw corrupted("expected a URL", at: index) }
        return url
    }

    private func decimal(at index: Int) throws -> Decimal {
        guard token(index).isNumber else { throw mismatch(Decimal.self, at: index) }
        guard let value = digits(at: index).decimal else {
            throw corrupted("the number does not fit into Decimal", at: index)
        }
        return value
    }
}

extension DecimalDigits {
    /// The largest number of digits that each fit into the 128 bits of a `Decimal`.
    private static var decimalDigits: Int { 38 }

    /// The number, with at most 38 digits; further ones are rounded to the nearest. Nil beyond the exponents of
    /// `Decimal`.
    var decimal: Decimal? {
        var significand: UInt128 = 0
        for digit in digits.prefix(Self.decimalDigits) { significand = significand &* 10 &+ UInt128(digit) }
        var power = exponent
        if digits.count > Self.decimalDigits {
            power += digits.count - Self.decimalDigits
            // 10^38 still fits.
            if digits[Self.decimalDigits] >= 5 { significand += 1 }
        }
        let isLarge = power > 127
        while power > 127, significand > 0 {
            let (product, overflows) = significand.multipliedReportingOverflow(by: 10)
            if overflows || product >= 100_000_000_000_000_000_000_000_000_000_000_000_000 { return nil }
            significand = product
            power -= 1
        }
        while power < -128, significand > 0 {
            significand /= 10
            power += 1
        }
        if significand == 0 { return 0 }
        // Arithmetic would move the zeros of the significand to the exponent, which has no room for them.
        if isLarge { return Decimal(string: "\(isNegative ? "-" : "")\(significand)e\(power)") }
        // Two halves of 19 digits each: their sum is exact in a `Decimal`.
        let half: UInt128 = 10_000_000_000_000_000_000
        let high = Decimal(UInt64(truncatingIfNeeded: significand / half))
        let low = Decimal(UInt64(truncatingIfNeeded: significand % half))
        let value = high * Decimal(UInt64(truncatingIfNeeded: half)) + low
        return Decimal(sign: isNegative ? .minus : .plus, exponent: power, significand: value)
    }
}
