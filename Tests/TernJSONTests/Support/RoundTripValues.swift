import Foundation

/// A value that contains each kind of value that both libraries write.
indirect enum RoundTripValue: Codable, Equatable {
    case empty
    case scalars(RoundTripScalars)
    case optionals(RoundTripOptionals)
    case wide(Int128, unsigned: UInt128, more: [Int128?])
    case text(String)
    case system(RoundTripSystem)
    case list([RoundTripValue?])
    case pair(RoundTripValue, next: RoundTripValue?)
    case named([String: RoundTripValue])
    case numbered([Int: RoundTripValue?])
    case colored([Color: [Double]])
    case containers(RoundTripContainers)
    case leaf(RoundTripLeaf)
    case shape(Shape)
}

struct RoundTripScalars: Codable, Equatable {
    var bool: Bool
    var string: String
    var int: Int
    var int8: Int8
    var int16: Int16
    var int32: Int32
    var int64: Int64
    var uint: UInt
    var uint8: UInt8
    var uint16: UInt16
    var uint32: UInt32
    var uint64: UInt64
    var int128: Int128
    var uint128: UInt128
    var float: Float
    var double: Double
    var level: Level
}

struct RoundTripOptionals: Codable, Equatable {
    var bool: Bool?
    var string: String?
    var int: Int?
    var uint64: UInt64?
    var int128: Int128?
    var float: Float?
    var double: Double?
    var date: Date?
    var color: Color?
    var list: [Float?]?
    var lists: [[UInt8]]?
    var named: [String: Int?]?
    var value: RoundTripValue?
}

struct RoundTripSystem: Codable, Equatable {
    var date: Date
    var dates: [Date]
    var data: Data
    var url: URL
    var decimal: Decimal
    var decimals: [String: Decimal]
    var uuid: UUID
}

/// Uses containers within containers, a null that is written, and a value of its own in an encoder for a superclass.
struct RoundTripContainers: Codable, Equatable {
    var name: String
    var rows: [[Int]]
    var marks: [Bool?]
    var note: Float?
    var value: RoundTripValue
    var last: RoundTripValue

    private enum Outer: String, CodingKey {
        case inner = "in/ner"
        case note
        case value
        case rows = ""
    }

    private enum Inner: String, CodingKey {
        case name = "näme"
        case marks = "\"marks\"\n"
    }

    init(name: String, rows: [[Int]], marks: [Bool?], note: Float?, value: RoundTripValue, last: RoundTripValue) {
        (self.name, self.rows, self.marks) = (name, rows, marks)
        (self.note, self.value, self.last) = (note, value, last)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Outer.self)
        let inner = try container.nestedContainer(keyedBy: Inner.self, forKey: .inner)
        name = try inner.decode(String.self, forKey: .name)
        var list = try inner.nestedUnkeyedContainer(forKey: .marks)
        marks = []
        while !list.isAtEnd { marks.append(try list.decodeNil() ? nil : list.decode(Bool.self)) }
        note = try container.decode(Float?.self, forKey: .note)
        value = try RoundTripValue(from: container.superDecoder(forKey: .value))
        var outer = try container.nestedUnkeyedContainer(forKey: .rows)
        rows = []
        for _ in 0..<(try outer.decode(Int.self)) {
            var row = try outer.nestedUnkeyedContainer()
            rows.append([])
            while !row.isAtEnd { rows[rows.count - 1].append(try row.decode(Int.self)) }
        }
        last = try RoundTripValue(from: outer.superDecoder())
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Outer.self)
        var inner = container.nestedContainer(keyedBy: Inner.self, forKey: .inner)
        try container.encode(note, forKey: .note)
        var list = inner.nestedUnkeyedContainer(forKey: .marks)
        for mark in marks {
            if let mark { try list.encode(mark) } else { try list.encodeNil() }
        }
        try inner.encode(name, forKey: .name)
        try value.encode(to: container.superEncoder(forKey: .value))
        var outer = container.nestedUnkeyedContainer(forKey: .rows)
        try outer.encode(rows.count)
        for numbers in rows {
            var row = outer.nestedUnkeyedContainer()
            for number in numbers { try row.encode(number) }
        }
        try last.encode(to: outer.superEncoder())
    }
}

class RoundTripRoot: Codable, Equatable {
    var id: UInt16
    var tags: [String]

    init(id: UInt16, tags: [String]) { (self.id, self.tags) = (id, tags) }

    func isEqual(to other: RoundTripRoot) -> Bool { id == other.id && tags == other.tags }

    static func == (left: RoundTripRoot, right: RoundTripRoot) -> Bool { left.isEqual(to: right) }
}

/// Writes the members of its superclass into its own object.
class RoundTripStem: RoundTripRoot {
    var height: Double?

    private enum CodingKeys: CodingKey { case height }

    init(id: UInt16, tags: [String], height: Double?) {
        self.height = height
        super.init(id: id, tags: tags)
    }

    required init(from decoder: any Decoder) throws {
        height = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Double.self, forKey: .height)
        try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(height, forKey: .height)
    }

    override func isEqual(to other: RoundTripRoot) -> Bool {
        guard let other = other as? RoundTripStem else { return false }
        return height == other.height && super.isEqual(to: other)
    }
}

/// Writes its superclass under `super`.
final class RoundTripLeaf: RoundTripStem {
    var value: RoundTripValue

    private enum CodingKeys: CodingKey { case value }

    init(id: UInt16, tags: [String], height: Double?, value: RoundTripValue) {
        self.value = value
        super.init(id: id, tags: tags, height: height)
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        value = try container.decode(RoundTripValue.self, forKey: .value)
        try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try super.encode(to: container.superEncoder())
        try container.encode(value, forKey: .value)
    }

    override func isEqual(to other: RoundTripRoot) -> Bool {
        guard let other = other as? RoundTripLeaf else { return false }
        return value == other.value && super.isEqual(to: other)
    }
}
