import Foundation
import Testing

@testable import TernJSON

/// Damaged texts for types of all kinds. None may trap, read beyond the text, or be accepted without being JSON.
@Suite("JSON: damaged texts")
struct DecodingDamageTests {
    private let rounds = ProcessInfo.processInfo.environment["TERN_LONG"] == nil ? 10_000 : 1_000_000

    struct Everything: Decodable {
        let scalars: DecodingShapeTests.Optionals?
        let tree: DecodingShapeTests.Tree?
        let colors: [DecodingShapeTests.Color: Int8]?
        let numbers: [Int: Float]?
        let date: Date?
        let data: Data?
        let url: URL?
        let decimal: Decimal?
        let uuid: UUID?
        let big: Int128?
        let unsigned: UInt128?
        let any: JSONValue?
        let maps: [String: [String: Double]]?
        let someSnakeKey: [String]?
        let dog: DecodingShapeTests.Dog?
    }

    private static let seeds: [String] = [
        "{\"scalars\":{\"bool\":true,\"int\":-1,\"uint8\":255,\"float\":1.5e3,\"string\":\"\\u00e9\\ud83d\\ude00\",\"list\":[1,null]}}",
        "{\"tree\":{\"branch\":{\"left\":{\"leaf\":{\"_0\":1}},\"right\":{\"empty\":{}}}},\"colors\":{\"red\":1,\"green\":-128}}",
        "{\"numbers\":{\"1\":0.1,\"-2\":1e10},\"date\":\"2026-11-28T22:45:01.123+01:00\",\"data\":\"AQIDBA==\",\"url\":\"https://a.b/c\"}",
        "{\"decimal\":12345678901234567890.123456789,\"uuid\":\"6BA7B810-9DAD-11D1-80B4-00C04FD430C8\",\"big\":-170141183460469231731}",
        "{\"unsigned\":340282366920938463463374607431768211455,\"any\":{\"a\":[1,2.5,{\"b\":null}],\"a\":[]}, \"any\": 1e400}",
        "{\"maps\":{\"a\":{\"b\":1.7976931348623157e308},\"a\":{}},\"some_snake_key\":[\"x\",\"日本\"],\"someSnakeKey\":null}",
        "{\"dog\":{\"tricks\":[\"sit\"],\"super\":{\"name\":\"Rex\"}},\"decimal\":1e127,\"big\":1e20,\"unsigned\":12.00e1}",
    ]

    @Test("types of all kinds survive damaged texts")
    func everything() {
        var generator = Generator(state: 9)
        var decoders = [TernJSONDecoder(), TernJSONDecoder(), TernJSONDecoder()]
        decoders[0].dateDecodingStrategy = .iso8601
        decoders[1].keyDecodingStrategy = .convertFromSnakeCase
        decoders[2].depthLimit = 3
        decoders[2].nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "x", negativeInfinity: "sit", nan: "")
        let bytesOfInterest = Array("{}[]\",:\\u0eE+-.19dtfn \u{0}".utf8) + [0xFF, 0xC3, 0x80, 0xED]
        var accepted = 0
        for round in 0..<rounds {
            var bytes = Array(Self.seeds[round % Self.seeds.count].utf8)
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                let byte = bytesOfInterest.randomElement(using: &generator) ?? 0
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = byte
                case 1: bytes.insert(byte, at: place)
                case 2: bytes.remove(at: place)
                default:
                    let end = min(bytes.count, place + Int.random(in: 1...12, using: &generator))
                    bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: 0..<bytes.count, using: &generator))
                }
            }
            do {
                _ = try decoders[round % 3].decode(Everything.self, from: bytes)
                accepted += 1
                #expect(
                    (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil || bytes.contains(UInt8(ascii: "e")))
            } catch let error as DecodingError {
                #expect(TernJSONErrorPlace(of: error) != nil, "\(error)")
            } catch {
                Issue.record("\(error)")
            }
        }
        #expect(accepted > rounds / 10)
    }
}
