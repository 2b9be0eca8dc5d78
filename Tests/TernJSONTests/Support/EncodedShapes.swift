import Foundation

struct Primitives: Codable, Equatable {
    var bool = true
    var string = "text"
    var int = -1
    var int8 = Int8.min
    var int16 = Int16.min
    var int32 = Int32.min
    var int64 = Int64.min
    var uint = UInt.max
    var uint8 = UInt8.max
    var uint16 = UInt16.max
    var uint32 = UInt32.max
    var uint64 = UInt64.max
    var float = Float(0.1)
    var double = 0.1
}

struct LongIntegers: Codable, Equatable {
    var int128 = Int128.min
    var uint128 = UInt128.max
    var small = Int128(7)
    var middle = UInt128(UInt64.max) + 1
    var list = [Int128.max, 0, -10_000_000_000_000_000_000]
}

struct Optionals: Codable, Equatable {
    var bool: Bool? = false
    var string: String? = "x"
    var double: Double? = 1.5
    var float: Float? = 2
    var int: Int? = 1
    var int8: Int8? = 2
    var int16: Int16? = 3
    var int32: Int32? = 4
    var int64: Int64? = 5
    var uint: UInt? = 6
    var uint8: UInt8? = 7
    var uint16: UInt16? = 8
    var uint32: UInt32? = 9
    var uint64: UInt64? = 10
    var array: [Int?]? = [1, nil, 3]
    var object: Point? = Point()
    var dictionary: [String: Int?]? = ["a": 1, "b": nil]

    static var none: Optionals {
        Optionals(
            bool: nil, string: nil, double: nil, float: nil, int: nil, int8: nil, int16: nil, int32: nil, int64: nil,
            uint: nil, uint8: nil, uint16: nil, uint32: nil, uint64: nil, array: nil, object: nil, dictionary: nil)
    }
}

struct Point: Codable, Hashable {
    var x = 1.0
    var y = -2.5
}

struct Nested: Codable, Equatable {
    var point = Point()
    var points = [Point(), Point(x: 0, y: 1e300)]
    var matrix = [[1, 2], [], [3]]
    var named = ["first": [Point()], "second": []]
    var empty = Empty()
}

struct Empty: Codable, Hashable {}

/// Writes nulls for what it does not have.
struct ExplicitNull: Codable, Equatable {
    var value: Int?

    enum CodingKeys: CodingKey { case value }

    init(value: Int?) { self.value = value }

    init(from decoder: any Decoder) throws {
        value = try decoder.container(keyedBy: CodingKeys.self).decode(Int?.self, forKey: .value)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(value, forKey: .value)
    }
}

enum Shape: Codable, Equatable {
    case none
    case circle(radius: Double)
    case rectangle(Double, Double)
    indirect case group([Shape])
}

enum Color: String, Codable, CodingKeyRepresentable, Hashable {
    case red, green
    case darkBlue = "dark blue/navy"
}

enum Level: Int, Codable {
    case low = 1
    case high = 2
}

class Animal: Codable, Equatable {
    var name = "animal"
    var legs = 4

    init() {}

    static func == (left: Animal, right: Animal) -> Bool { left.name == right.name && left.legs == right.legs }
}

/// Writes the base class under `super`.
final class Dog: Animal {
    var breed = "mixed"

    private enum CodingKeys: CodingKey { case breed }

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        breed = try container.decode(String.self, forKey: .breed)
        try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(breed, forKey: .breed)
        try super.encode(to: container.superEncoder())
    }
}

/// Writes the base class into the same object.
final class Cat: Animal {
    var lives = 9

    private enum CodingKeys: CodingKey { case lives }

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
        lives = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .lives)
        try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(lives, forKey: .lives)
    }
}

@propertyWrapper
struct Clamped: Codable, Equatable {
    var wrappedValue: Int

    init(wrappedValue: Int) { self.wrappedValue = min(max(wrappedValue, 0), 100) }

    init(from decoder: any Decoder) throws { self.init(wrappedValue: try Int(from: decoder)) }

    func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
}

@propertyWrapper
struct Boxed<Value: Codable & Equatable>: Codable, Equatable {
    var wrappedValue: Value

    init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(Value.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

struct Wrapped: Codable, Equatable {
    @Clamped var percent = 130
    @Boxed var point = Point()
    @Boxed var list = [1, 2]
    @Boxed var table = ["k": 1]
    @Boxed var text = "t"
    @Boxed var date = Date(timeIntervalSinceReferenceDate: 1.5)
}

struct Identifier: RawRepresentable, Codable, Hashable {
    var rawValue: String
}

struct SystemValues: Codable, Equatable {
    var date = Date(timeIntervalSinceReferenceDate: 123_456_789.125)
    var url = URL(string: "https://example.com/a/b?c=d#e")
    var data = Data((0...255).map { UInt8($0) })
    var decimal = Decimal(string: "123456789012345678901234567890.12345678")
    var uuid = UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")
}

/// Uses nested containers of each kind.
struct Flattened: Codable, Equatable {
    var city = "Bern"
    var street = "Main"
    var first = 1
    var second = "two"

    private enum Outer: CodingKey { case address, list }
    private enum Inner: CodingKey { case city, street }

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Outer.self)
        let address = try container.nestedContainer(keyedBy: Inner.self, forKey: .address)
        city = try address.decode(String.self, forKey: .city)
        street = try address.decode(String.self, forKey: .street)
        var list = try container.nestedUnkeyedContainer(forKey: .list)
        first = try list.decode(Int.self)
        second = try list.decode(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Outer.self)
        var address = container.nestedContainer(keyedBy: Inner.self, forKey: .address)
        try address.encode(city, forKey: .city)
        try address.encode(street, forKey: .street)
        var list = container.nestedUnkeyedContainer(forKey: .list)
        try list.encode(first)
        try list.encode(second)
    }
}

struct Tree: Codable, Equatable {
    var value: Int
    var children: [Tree]

    init(depth: Int, width: Int) {
        value = depth
        children = depth == 0 ? [] : (0..<width).map { _ in Tree(depth: depth - 1, width: width) }
    }
}

struct ManyFields: Codable, Equatable {
    var userID = 1
    var userName = "n"
    var urlForHTTPServer = "u"
    var hidden = 2
    var aBC = 3
    var nestedValue = ["someKey": ["innerKey": 1]]
    var byColor: [Color: Int] = [.red: 1, .darkBlue: 2]
    var byNumber: [Int: String] = [1: "one", 20: "twenty"]
    var points = [Point()]

    enum CodingKeys: String, CodingKey {
        case userID, userName, aBC, nestedValue, byColor, byNumber, points
        case urlForHTTPServer = "URLForHTTPServer"
        case hidden = "_private_"
    }
}
