import Foundation

/// Makes random values of each kind, of at most 5 levels and about 40 parts.
///
/// It leaves out what Foundation reads or writes in another way on purpose (the table of Documentation/CodingJSON.md):
/// a key twice in an object, a number that its type cannot hold or that is too small for it. It also leaves out what no
/// coder gives back: infinity and NaN, which JSON does not have, a URL's base, and dates that lose bits as seconds
/// since 1970.
struct RoundTripMaker {
    private var generator: Generator
    /// How many more parts are made.
    private var remaining = 40
    /// Dates come back from seconds since 1970 only if their sum with the seconds from then to 2001 is exact.
    private let datesAreShort: Bool

    init(generator: Generator, datesAreShort: Bool) {
        self.generator = generator
        self.datesAreShort = datesAreShort
    }

    mutating func value(depth: Int = 0) -> RoundTripValue {
        remaining -= 1
        let isLast = depth == 4 || remaining <= 0
        switch number(isLast ? 0...6 : depth == 0 ? 7...13 : 0...13) {
        case 0: return .empty
        case 1: return .scalars(scalars())
        case 2: return .text(text())
        case 3: return .wide(integer(), unsigned: integer(), more: list { $0.optional { $0.integer() } })
        case 4: return .colored(colors())
        case 5: return .system(system())
        case 6: return .shape(shape(depth: depth))
        case 7: return .optionals(optionals(depth: depth))
        case 8: return .list(list { $0.optional { $0.value(depth: depth + 1) } })
        case 9: return .pair(value(depth: depth + 1), next: optional { $0.value(depth: depth + 1) })
        case 10: return .named(dictionary { ($0.text(), $0.value(depth: depth + 1)) })
        case 11: return .numbered(dictionary { ($0.integer(), $0.optional { $0.value(depth: depth + 1) }) })
        case 12: return .containers(containers(depth: depth))
        default:
            return .leaf(
                RoundTripLeaf(
                    id: integer(), tags: list { $0.text() }, height: optional { $0.real() },
                    value: value(depth: depth + 1)))
        }
    }

    // MARK: Parts

    private mutating func scalars() -> RoundTripScalars {
        RoundTripScalars(
            bool: flag(), string: text(), int: integer(), int8: integer(), int16: integer(), int32: integer(),
            int64: integer(), uint: integer(), uint8: integer(), uint16: integer(), uint32: integer(),
            uint64: integer(), int128: integer(), uint128: integer(), float: float(), double: real(),
            level: flag() ? .low : .high)
    }

    private mutating func optionals(depth: Int) -> RoundTripOptionals {
        RoundTripOptionals(
            bool: optional { $0.flag() }, string: optional { $0.text() }, int: optional { $0.integer() },
            uint64: optional { $0.integer() }, int128: optional { $0.integer() }, float: optional { $0.float() },
            double: optional { $0.real() }, date: optional { $0.date() }, color: optional { $0.color() },
            list: optional { $0.list { $0.optional { $0.float() } } },
            lists: optional { $0.list { $0.list { $0.integer() } } },
            named: optional { $0.dictionary { ($0.text(), $0.optional { $0.integer() }) } },
            value: optional { $0.value(depth: depth + 1) })
    }

    private mutating func system() -> RoundTripSystem {
        RoundTripSystem(
            date: date(), dates: list { $0.date() }, data: data(), url: url(), decimal: decimal(),
            decimals: dictionary { ($0.text(), $0.decimal()) }, uuid: uuid())
    }

    private mutating func containers(depth: Int) -> RoundTripContainers {
        RoundTripContainers(
            name: text(), rows: list { $0.list { $0.integer() } }, marks: list { $0.optional { $0.flag() } },
            note: optional { $0.float() }, value: value(depth: depth + 1), last: value(depth: depth + 1))
    }

    private mutating func shape(depth: Int) -> Shape {
        switch number(0...(depth < 4 ? 3 : 2)) {
        case 0: .none
        case 1: .circle(radius: real())
        case 2: .rectangle(real(), real())
        default: .group(list { $0.shape(depth: depth + 1) })
        }
    }

    private mutating func color() -> Color { pick([.red, .green, .darkBlue], or: .red) }

    private mutating func colors() -> [Color: [Double]] { dictionary { ($0.color(), $0.list { $0.real() }) } }

    // MARK: Numbers

    /// An integer of any length, often one of the limits.
    private mutating func integer<Integer: FixedWidthInteger>() -> Integer {
        switch number(0...9) {
        case 0: pick([.min, .max, 0, 1], or: 0)
        default: Integer.random(in: .min ... .max, using: &generator) >> number(0...Integer.bitWidth - 1)
        }
    }

    /// A finite number of any bits, or a usual one.
    private mutating func real() -> Double {
        switch number(0...5) {
        case 0: return Double(number(-1_000_000...1_000_000)) / pick([1, 10, 100, 1_000], or: 1)
        case 1: return Double(integer() as Int64)
        case 2: return pick([0, -0.0, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude], or: 0)
        default:
            let value = Double(bitPattern: generator.next())
            return value.isFinite ? value : 0.5
        }
    }

    private mutating func float() -> Float {
        switch number(0...5) {
        case 0: return Float(number(-10_000...10_000)) / pick([1, 10, 100, 1_000], or: 1)
        case 1: return Float(integer() as Int64)
        case 2: return pick([0, -0.0, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude], or: 0)
        default:
            let value = Float(bitPattern: integer())
            return value.isFinite ? value : 0.5
        }
    }

    // MARK: Texts

    /// A text of scalars of all kinds, or of one kind.
    private mutating func text() -> String {
        let kind = number(0...13)
        let length = number(0...pick([2, 8, 20, 100], or: 8))
        var text = String.UnicodeScalarView()
        for _ in 0..<length { text.append(scalar(kind: kind > 7 ? 7 : kind > 5 ? number(0...7) : kind)) }
        return String(text)
    }

    private mutating func scalar(kind: Int) -> Unicode.Scalar {
        let value: Int =
            switch kind {
            case 0: number(0...0x1F)
            case 1: pick([0x22, 0x5C, 0x2F, 0x7F, 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF, 0x10_FFFF], or: 0)
            case 2: number(0x80...0x7FF)
            // A letter, and marks that combine with it.
            case 3: pick([0x65, 0xE9, 0x301, 0x323, 0x1100, 0x1161, 0x11A8, 0x200D, 0x1F468, 0x1F3FD], or: 0x65)
            case 4: number(0x800...0xFFFF)
            case 5: number(0x1_0000...0x10_FFFF)
            default: number(0x20...0x7E)
            }
        return Unicode.Scalar(UInt32(value)) ?? "?"
    }

    // MARK: Values of Foundation

    private mutating func date() -> Date {
        if !datesAreShort && flag() { return Date(timeIntervalSinceReferenceDate: real()) }
        return Date(timeIntervalSinceReferenceDate: Double(number(-(1 << 46)...1 << 46)) / 1_024)
    }

    private mutating func data() -> Data { Data((0..<number(0...pick([3, 60], or: 3))).map { _ in byte() }) }

    private mutating func url() -> URL {
        let starts = ["https://example.com", "http://user@127.0.0.1:8080", "file://", "HTTPS://[::1]", ".", ""]
        var text = pick(starts, or: "")
        let letters = Array("abzAZ09-._~%").map { $0 == "%" ? "%C3%A9" : String($0) }
        func add(_ count: Int) { for _ in 0..<count { text += pick(letters, or: "a") } }
        for _ in 0..<number(0...4) {
            text += "/"
            add(number(0...6))
        }
        if flag() {
            text += "?q="
            add(number(0...6))
        }
        if flag() {
            text += "#f"
            add(number(0...6))
        }
        return URL(string: text) ?? URL(filePath: "/")
    }

    /// A number of at most 38 digits, which is exact.
    private mutating func decimal() -> Decimal {
        let digits = String((0..<number(1...pick([5, 20, 38], or: 5))).flatMap { _ in String(number(0...9)) })
        let exponent = number(pick([-3...3, -60...60, -128...127], or: 0...0))
        return Decimal(string: "\(flag() ? "-" : "")\(digits)e\(exponent)") ?? 0
    }

    private mutating func uuid() -> UUID {
        UUID(
            uuid: (
                byte(), byte(), byte(), byte(), byte(), byte(), byte(), byte(),
                byte(), byte(), byte(), byte(), byte(), byte(), byte(), byte()
            ))
    }

    // MARK: Choices

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    private mutating func byte() -> UInt8 { .random(in: .min ... .max, using: &generator) }

    private mutating func flag() -> Bool { Bool.random(using: &generator) }

    private mutating func pick<Element>(_ elements: [Element], or other: Element) -> Element {
        elements.randomElement(using: &generator) ?? other
    }

    private mutating func optional<Value>(_ make: (inout Self) -> Value) -> Value? { flag() ? make(&self) : nil }

    private mutating func list<Value>(_ make: (inout Self) -> Value) -> [Value] {
        var values: [Value] = []
        for _ in 0..<number(0...4) { values.append(make(&self)) }
        return values
    }

    private mutating func dictionary<Key: Hashable, Value>(_ make: (inout Self) -> (Key, Value)) -> [Key: Value] {
        Dictionary(list(make)) { first, _ in first }
    }
}
