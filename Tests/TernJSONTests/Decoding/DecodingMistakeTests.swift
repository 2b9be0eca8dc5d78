import Foundation
import Testing

@testable import TernJSON

/// Errors with the same case and path as from Foundation's decoder, and the table of those that differ.
@Suite("JSON: errors as from Foundation's decoder")
struct DecodingMistakeTests {
    private let compare = Comparison()

    struct User: Codable, Equatable {
        var id: Int
        var name: String
        var tags: [String]
        var home: Address?
        var friends: [Address]
        var scores: [String: Double]
    }

    struct Address: Codable, Equatable {
        var city: String
        var zip: UInt16
    }

    private func user(_ replacement: (String, String)) -> String {
        let text = """
            {"id":1,"name":"n","tags":["a","b"],"home":{"city":"c","zip":9},"friends":[{"city":"c","zip":9},\
            {"city":"d","zip":8}],"scores":{"x":1.5}}
            """
        let changed = text.replacingOccurrences(of: replacement.0, with: replacement.1)
        precondition(changed != text)
        return changed
    }

    @Test("members of the wrong kind, null or missing, at any depth")
    func members() {
        for (old, new) in [
            ("\"id\":1", "\"id\":\"1\""), ("\"id\":1", "\"id\":null"), ("\"id\":1", "\"id\":true"),
            ("\"id\":1", "\"id\":[1]"),
            ("\"id\":1", "\"id\":{}"), ("\"id\":1,", ""), ("\"name\":\"n\"", "\"name\":1"),
            ("\"name\":\"n\"", "\"name\":null"),
            ("\"name\":\"n\",", ""), ("[\"a\",\"b\"]", "\"a\""), ("[\"a\",\"b\"]", "null"), ("[\"a\",\"b\"]", "{}"),
            ("[\"a\",\"b\"]", "[\"a\",1]"), ("[\"a\",\"b\"]", "[null]"), ("[\"a\",\"b\"]", "[[\"a\"]]"),
            ("\"tags\"", "\"tag\""),
            ("\"home\":{\"city\":\"c\",\"zip\":9}", "\"home\":1"),
            ("\"home\":{\"city\":\"c\",\"zip\":9}", "\"home\":[]"),
            ("\"home\":{\"city\":\"c\",\"zip\":9}", "\"home\":{\"city\":\"c\"}"),
            ("\"home\":{\"city\":\"c\",\"zip\":9}", "\"home\":{\"city\":null,\"zip\":9}"),
            ("{\"city\":\"d\",\"zip\":8}", "{\"city\":\"d\",\"zip\":\"8\"}"),
            ("{\"city\":\"d\",\"zip\":8}", "{\"zip\":8}"),
            ("{\"city\":\"d\",\"zip\":8}", "null"), ("{\"city\":\"d\",\"zip\":8}", "7"),
            ("{\"city\":\"d\",\"zip\":8}", "[]"),
            ("{\"x\":1.5}", "{\"x\":\"1.5\"}"), ("{\"x\":1.5}", "{\"x\":null}"), ("{\"x\":1.5}", "[1.5]"),
            ("{\"x\":1.5}", "null"),
        ] {
            compare.sameError(User.self, user((old, new)))
        }
    }

    @Test("values of the wrong kind at the top level")
    func topLevel() {
        compare.sameError(User.self, "[]")
        compare.sameError(User.self, "null")
        compare.sameError(User.self, "1")
        compare.sameError([User].self, "{}")
        compare.sameError([User].self, "null")
        compare.sameError([Int].self, "[1,\"2\"]")
        compare.sameError([Int].self, "[1,null]")
        compare.sameError([Double].self, "[1,[]]")
        compare.sameError([String].self, "[\"a\",{}]")
        compare.sameError([Bool].self, "[true,null]")
        compare.sameError([Bool].self, "[1]")
        compare.sameError(Bool.self, "null")
        compare.sameError(Bool.self, "0")
        compare.sameError(Int.self, "null")
        compare.sameError(Int.self, "\"1\"")
        compare.sameError(String.self, "1")
        compare.sameError(String.self, "null")
        compare.sameError(Double.self, "\"1\"")
        compare.sameError(Float.self, "null")
        compare.sameError([String: Int].self, "[]")
        compare.sameError([String: Int].self, "null")
        compare.sameError([String: Int].self, "{\"a\":\"b\"}")
        compare.sameError([String: [String: Int]].self, "{\"a\":{\"b\":null}}")
        compare.sameError([Int: String].self, "{\"1\":2}")
        compare.sameError([Int: String].self, "{\"x\":\"2\"}")
    }

    @Test("types of Foundation and enumerations")
    func types() {
        compare.sameError(URL.self, "1")
        compare.sameError([URL].self, "[null]")
        compare.sameError(Data.self, "\"*\"")
        compare.sameError([Data].self, "[\"AA\"]")
        compare.sameError(Data.self, "1")
        compare.sameError([Data].self, "[null]")
        compare.sameError([Date].self, "[null]")
        compare.sameError([Date].self, "[\"x\"]")
        compare.sameError([Decimal].self, "[\"1\"]")
        compare.sameError([Decimal].self, "[null]")
        compare.sameError([UUID].self, "[\"no\"]")
        compare.sameError(DecodingShapeTests.Color.self, "\"blue\"")
        compare.sameError([DecodingShapeTests.Level].self, "[3]")
        compare.sameError([DecodingShapeTests.Color: Int].self, "{\"blue\":1}")
        compare.sameError(DecodingShapeTests.Tree.self, "{}")
        compare.sameError(DecodingShapeTests.Tree.self, "{\"leaf\":{},\"empty\":{}}")
        compare.sameError(
            DecodingShapeTests.Tree.self, "{\"branch\":{\"left\":{\"leaf\":{}},\"right\":{\"empty\":{}}}}")
        compare.sameError(DecodingShapeTests.Dog.self, "{\"tricks\":[]}")
        compare.sameError(DecodingShapeTests.Dog.self, "{\"tricks\":[],\"super\":{}}")
        compare.sameError(DecodingShapeTests.Dog.self, "{\"tricks\":[],\"super\":3}")
        compare.sameError(DecodingShapeTests.Cat.self, "{\"lives\":1}")
        compare.sameError(Range<Int>.self, "[5,1]")
        compare.sameError(Range<Int>.self, "[5]")
        compare.sameError(CGRect.self, "[[1,2],[3]]")
        compare.sameError([Double: Int].self, "[1,2,3]")
        compare.sameError(DecodingShapeTests.Handmade.self, "{\"a\":[],\"b\":{\"a\":\"\"},\"c\":1}")
        compare.sameError(DecodingShapeTests.Handmade.self, "{\"a\":[[1,\"x\"]],\"b\":{\"a\":\"\"},\"c\":1}")
        compare.sameError(DecodingShapeTests.Handmade.self, "{\"a\":[1],\"b\":[],\"c\":1}")
        compare.sameError(DecodingShapeTests.Handmade.self, "{\"a\":[1],\"b\":{}}")
    }

    @Test("texts that are not JSON")
    func syntax() {
        for text in ["", " ", "{", "[1", "{\"id\":}", "{\"id\":1", "{]", "tru", "\"a", "[1,,2]", "{\"a\" 1}", "[1] 2"] {
            compare.sameError(User.self, text)
        }
    }

    @Test("paths have converted keys")
    func convertedPaths() {
        struct Outer: Decodable { let innerValue: [Inner] }
        struct Inner: Decodable {
            let someNumber: Int
            let allNames: [String: [Int]]?
        }
        var compare = Comparison()
        compare.ours.keyDecodingStrategy = .convertFromSnakeCase
        compare.foundation.keyDecodingStrategy = .convertFromSnakeCase
        compare.sameError(Outer.self, "{\"inner_value\":[{\"some_number\":1},{\"some_number\":\"x\"}]}")
        compare.sameError(Outer.self, "{\"inner_value\":[{\"some_number\":1},{}]}")
        compare.sameError(Outer.self, "{\"inner_value\":[{\"some_number\":1,\"all_names\":{\"my_key\":[true]}}]}")
        compare.sameError(Outer.self, "{\"inner_values\":[]}")
    }

    // MARK: Differences

    @Test("a number that does not fit: the path is given, which Foundation's error lacks")
    func numbersThatDoNotFit() {
        for (text, type) in [
            ("[1,300]", [UInt8].self as any Decodable.Type), ("[1,-1]", [UInt].self), ("[1,1.5]", [Int].self),
            ("[1,1e400]", [Double].self), ("[1,1e39]", [Float].self), ("[1,9223372036854775808]", [Int64].self),
            ("[1,1e300]", [Decimal].self),
        ] {
            func check<Value: Decodable>(_ type: Value.Type) {
                compare.differs(type, text, ours: "dataCorrupted #1", foundation: "dataCorrupted ")
            }
            check(type)
        }
    }

    @Test("numbers that Foundation refuses or rounds")
    func roundedNumbers() {
        // Too small: zero.
        compare.differs(Double.self, "1e-400", ours: "none", foundation: "dataCorrupted ")
        // A fraction that a Double does not hold is lost in Foundation.
        compare.differs(Int.self, "1.0000000000000000001", ours: "dataCorrupted ", foundation: "none")
    }

    @Test("texts that Foundation accepts")
    func acceptedSyntax() {
        compare.differs([Int].self, "[1,]", ours: "dataCorrupted ", foundation: "none")
        compare.differs([String: Int].self, "{\"a\":1,}", ours: "dataCorrupted ", foundation: "none")
    }

    @Test("numbers that are not JSON, which Foundation looks at when they are asked for")
    func lazyNumbers() {
        compare.differs(String.self, "01", ours: "dataCorrupted ", foundation: "typeMismatch ")
        compare.differs(String.self, "-", ours: "dataCorrupted ", foundation: "typeMismatch ")
    }

    @Test("dates before 15 October 1582 are those of the Julian calendar, as for Foundation")
    func oldDates() throws {
        var compare = Comparison()
        compare.ours.dateDecodingStrategy = .iso8601
        let first = try? compare.ours.decode(Date.self, from: "\"0001-01-01T00:00:00Z\"")
        #expect(first == Date.distantPast)
        var encoder = TernJSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        for seconds in stride(from: -62_135_769_600.0, to: 253_402_300_800, by: 86_400 * 73 + 12_345) {
            let date = Date(timeIntervalSince1970: seconds)
            #expect(try compare.ours.decode([Date].self, from: encoder.encode([date])) == [date])
        }
    }

    @Test("a date that is not one: the path leads to it, and not to the object that has it")
    func dates() {
        var compare = Comparison()
        compare.ours.dateDecodingStrategy = .iso8601
        compare.foundation.dateDecodingStrategy = .iso8601
        compare.differs([Date].self, "[\"x\"]", ours: "dataCorrupted #0", foundation: "dataCorrupted ")
        for text in ["2026-11-28T22:45:01.5Z", "2026-11-28T22:45:01.123456789+01:00"] {
            #expect(throws: Never.self) { try compare.ours.decode(Date.self, from: "\"\(text)\"") }
        }
        for text in [
            "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1",
            "2026-01-01", "", "2026-01-01T00:00:00ZZ", "2026-1-01T00:00:00Z0", "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+24:00",
        ] {
            #expect(throws: DecodingError.self, "\(text)") { try compare.ours.decode(Date.self, from: "\"\(text)\"") }
        }
        let half = try? compare.ours.decode(Date.self, from: "\"2001-01-01T00:00:00.250Z\"")
        #expect(half?.timeIntervalSinceReferenceDate == 0.25)
    }
}
