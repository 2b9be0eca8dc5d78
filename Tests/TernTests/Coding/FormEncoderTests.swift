import Tern
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Form encoder")
struct FormEncoderTests {
    private struct Filter: Encodable, Sendable {
        var name = "a b"
        var isOpen = true
        var tags = ["x", "y"]
        var page: Int?
        var place = Place()
    }

    private struct Place: Encodable, Sendable {
        var city = "Ulm"
        var gates = [1, 2]
    }

    private func text(_ value: some Encodable, _ change: (inout FormEncoder) -> Void = { _ in }) throws -> String {
        var encoder = FormEncoder()
        change(&encoder)
        return try encoder.text(of: value).replacing("%5B", with: "[").replacing("%5D", with: "]")
    }

    @Test func namesAreSortedAtEachDepthAndNestedInBrackets() throws {
        let text = try text(Filter())
        #expect(text == "isOpen=1&name=a%20b&place[city]=Ulm&place[gates][]=1&place[gates][]=2&tags[]=x&tags[]=y")
    }

    @Test func bracketsThemselvesAreEscaped() throws {
        let text = try FormEncoder().text(of: ["a": ["b": ["c"]]])
        #expect(text == "a%5Bb%5D%5B%5D=c")
    }

    @Test func unsortedNamesKeepTheOrderOfTheValue() throws {
        let text = try text(Filter()) { $0.sortsNames = false }
        #expect(text.hasPrefix("name=a%20b&isOpen=1&tags[]=x&tags[]=y&place"))
    }

    @Test func arraysFollowTheOption() throws {
        let value = ["a": ["x", "y"]]
        #expect(try text(value) == "a[]=x&a[]=y")
        #expect(try text(value) { $0.arrays = .bare } == "a=x&a=y")
        #expect(try text(value) { $0.arrays = .indexed } == "a[0]=x&a[1]=y")
        #expect(try text(value) { $0.arrays = .custom { name, index in "\(name).\(index + 1)" } } == "a.1=x&a.2=y")
        #expect(try text(["a": [["b": [1]], ["b": [2]]]]) { $0.arrays = .indexed } == "a[0][b][0]=1&a[1][b][0]=2")
    }

    @Test func setsRepeatTheirBareNameSorted() throws {
        #expect(try text(["a": Set(["c", "a", "b"])]) == "a=a&a=b&a=c")
    }

    @Test func boolsAreNumbersOrWords() throws {
        #expect(try text(["a": true, "b": false]) == "a=1&b=0")
        #expect(try text(["a": true, "b": false]) { $0.bools = .literal } == "a=true&b=false")
    }

    @Test func nilsFollowTheOption() throws {
        struct Value: Encodable {
            var a: String?
            var b: [Int?] = [1, nil]
            var c: Int? = 3
        }
        #expect(try text(Value()) == "b[]=1&b[]&c=3")
        #expect(try text(["a": Int?.none, "b": 1]) == "a&b=1")
        #expect(try text(Value()) { $0.nils = .dropName } == "b[]=1&c=3")
        #expect(try text(Value()) { $0.nils = .bareName } == "a&b[]=1&b[]&c=3")
        #expect(try text(Value()) { $0.nils = .emptyValue } == "a=&b[]=1&b[]=&c=3")
        #expect(try text(Value()) { $0.nils = .null } == "a=null&b[]=1&b[]=null&c=3")
        #expect(try text(["a": Int?.none]) { $0.nils = .bareName } == "a")
    }

    @Test func datesFollowTheOption() throws {
        let value = ["d": Date(timeIntervalSince1970: 1_700_000_000)]
        #expect(try text(value) == "d=721692800.0")
        #expect(try text(value) { $0.dates = .secondsSince1970 } == "d=1700000000")
        #expect(try text(value) { $0.dates = .millisecondsSince1970 } == "d=1700000000000")
        #expect(try text(value) { $0.dates = .iso8601 } == "d=2023-11-14T22%3A13%3A20Z")
        #expect(try text(value) { $0.dates = .custom { _ in "then" } } == "d=then")
        let fraction = ["d": Date(timeIntervalSince1970: 0.5)]
        #expect(try text(fraction) { $0.dates = .secondsSince1970 } == "d=0.5")
    }

    @Test func dataFollowTheOption() throws {
        let value = ["d": Data([1, 255])]
        #expect(try text(value) == "d=Af8%3D")
        #expect(try text(value) { $0.data = .deferred } == "d[]=1&d[]=255")
        #expect(try text(value) { $0.data = .custom { "\($0.count)" } } == "d=2")
    }

    @Test(arguments: [
        (FormEncoder.Keys.snakeCase, "my_url_loader=1&one_two_three=2"),
        (.kebabCase, "my-url-loader=1&one-two-three=2"),
        (.capitalized, "MyURLLoader=1&OneTwoThree=2"),
        (.uppercased, "MYURLLOADER=1&ONETWOTHREE=2"),
        (.lowercased, "myurlloader=1&onetwothree=2"),
        (.custom { "x" + $0 }, "xmyURLLoader=1&xoneTwoThree=2"),
    ])
    func namesOfPropertiesFollowTheOption(keys: FormEncoder.Keys, expected: String) throws {
        struct Value: Encodable {
            var myURLLoader = 1
            var oneTwoThree = 2
        }
        #expect(try text(Value()) { $0.keys = keys } == expected)
    }

    @Test func keysOfDictionariesAreUnchanged() throws {
        #expect(try text(["oneTwo": 1]) { $0.keys = .snakeCase } == "oneTwo=1")
    }

    @Test func nestingIsByBracketsDotsOrAClosure() throws {
        let value = ["a": ["b": ["c": 1]]]
        #expect(try text(value) == "a[b][c]=1")
        #expect(try text(value) { $0.nesting = .dots } == "a.b.c=1")
        #expect(try text(value) { $0.nesting = .custom { "\($0)/\($1)" } } == "a/b/c=1")
    }

    @Test func spacesArePercentEncodedOrPlus() throws {
        #expect(try text(["a b": "c d+e"]) == "a%20b=c%20d%2Be")
        #expect(try text(["a b": "c d+e"]) { $0.spaces = .plus } == "a+b=c+d%2Be")
    }

    @Test func numbersURLsAndDecimalsAreTheirOwnText() throws {
        struct Value: Encodable {
            var int = Int64.min
            var uint = UInt64.max
            var double = 1.5
            var url = URL(string: "https://h/p?q")
            var decimal = Decimal(string: "12.50")
        }
        let expected = "decimal=12.5&double=1.5&int=-9223372036854775808&uint=18446744073709551615"
        #expect(try text(Value()) == expected + "&url=https%3A//h/p?q")
    }

    @Test func emptyValuesProduceNoText() throws {
        #expect(try text([String: String]()).isEmpty)
        #expect(try text([String: String]?.none).isEmpty)
        #expect(try text(["a": [String]()]).isEmpty)
    }

    @Test func aValueWithoutNamesAtItsTopIsRefused() {
        #expect(throws: EncodingError.self) { try FormEncoder().items(of: [1, 2]) }
        #expect(throws: EncodingError.self) { try FormEncoder().items(of: "text") }
        #expect(throws: EncodingError.self) { try FormEncoder().items(of: ["a": Double.infinity]) }
    }

    @Test func subclassesEncodeTheirParent() throws {
        class Parent: Encodable { var a = 1 }
        final class Child: Parent {
            var b = 2
            private enum Keys: CodingKey { case b }
            override func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(b, forKey: .b)
                try super.encode(to: container.superEncoder())
            }
        }
        #expect(try text(Child()) == "b=2&super[a]=1")
    }

    @Test(arguments: [Request.Method.get, .head, .delete])
    func parametersOfAMethodWithoutBodyGoIntoTheQuery(method: Request.Method) throws {
        var request = try Request(method, "https://h/p")
        try request.setParameters(["b": 2, "a": 1])
        #expect(request.urlString == "https://h/p?a=1&b=2")
        #expect(request.body.isNone)
    }

    @Test func aQueryIsAppendedToTheOneThatTheURLHas() throws {
        var request = try Request(.delete, "https://h/p?x=1")
        try request.setParameters(["b": 2, "a": 1])
        #expect(request.urlString == "https://h/p?x=1&a=1&b=2")
        var empty = try Request(.get, "https://h/p")
        try empty.setParameters([String: Int]())
        #expect(empty.urlString == "https://h/p")
    }

    @Test func jsonParametersOfAMethodWithoutBodyGoIntoTheQuery() throws {
        var request = try Request(.get, "https://h/p")
        try request.setParameters(["a": "b c"], as: .json)
        #expect(request.urlString == "https://h/p?a=b%20c")
        #expect(request.body.isNone)
    }

    @Test func errorOfAQueryHidesTheValue() throws {
        struct Secret: Encodable {
            func encode(to encoder: any Encoder) throws {
                let context = EncodingError.Context(codingPath: [], debugDescription: "no")
                throw EncodingError.invalidValue("hunter2", context)
            }
        }
        do {
            _ = try Request.Query(encoding: ["password": Secret()])
            Issue.record("nothing failed")
        } catch {
            #expect(error.kind == .invalidRequest)
            #expect(!error.description.contains("hunter2"))
        }
    }
}
