import Foundation
import Testing

@testable import TernJSON

/// Texts made to cost much. Each is decoded at two sizes, and must not take much more than in proportion.
@Suite("JSON: hostile texts", .serialized, .timeLimit(.minutes(2)))
struct DecodingHostileTests {
    private let decoder = TernJSONDecoder()

    /// Returns the shortest of three CPU times: the clock would also count the tests that run at the same time.
    private func seconds(_ work: () -> Void) -> Double {
        var best = Double.infinity
        for _ in 0..<3 {
            let start = cpuTime
            work()
            best = min(best, cpuTime - start)
        }
        return best
    }

    private var cpuTime: Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Expects that a text eight times as long takes less than 24 times the time: in proportion it takes 8, squared 64
    /// times.
    private func isLinear<Value: Decodable>(
        _ count: Int, _ type: Value.Type, keys: TernJSONDecoder.KeyDecodingStrategy = .useDefaultKeys,
        sourceLocation: SourceLocation = #_sourceLocation, text: (Int) -> String
    ) {
        var decoder = decoder
        decoder.keyDecodingStrategy = keys
        let (short, long) = (Data(text(count).utf8), Data(text(8 * count).utf8))
        let first = seconds { _ = try? decoder.decode(type, from: short) }
        let second = seconds { _ = try? decoder.decode(type, from: long) }
        #expect(second < max(first, 0.000_5) * 24, "\(first) s and \(second) s", sourceLocation: sourceLocation)
    }

    private func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    @Test("many small values, deep and flat")
    func smallValues() {
        isLinear(5_000, JSONValue.self) { "[" + repeated("[],", $0) + "[]]" }
        isLinear(5_000, [[String: Int]].self) { "[" + repeated("{},", $0) + "{}]" }
        isLinear(5_000, [JSONValue].self) { "[" + repeated("[[[[[]]]]],", $0) + "[]]" }
        isLinear(5_000, JSONValue.self) { repeated("[", $0) }
        isLinear(5_000, JSONValue.self) { repeated("{\"a\":", $0) }
        isLinear(5_000, Int.self) { repeated(" ", $0) + "1" }
        isLinear(5_000, [Int].self) { "[" + repeated("1,\n", $0) + "x]" }
    }

    @Test("long numbers and strings")
    func longTokens() {
        isLinear(40_000, Double.self) { repeated("9", $0) }
        isLinear(40_000, Double.self) { "0." + repeated("0", $0) + "1" }
        isLinear(40_000, Int.self) { "1." + repeated("3", $0) + "e" + repeated("9", $0) }
        isLinear(40_000, Decimal.self) { repeated("7", $0) }
        isLinear(5_000, [Double].self) { "[" + repeated("0.1234567890123456789012345,", $0) + "1]" }
        isLinear(500, [Double].self) {
            "[" + repeated("2.2250738585072011360574097967091319759348195463516456480234261097e-308,", $0) + "1]"
        }
        isLinear(3_000, String.self) { "\"" + repeated("\\u00e9", $0) + "\"" }
        isLinear(3_000, String.self) { "\"" + repeated("\\\\", $0) + "\"" }
        isLinear(3_000, String.self) { "\"" + repeated("é", $0) + "\"" }
        isLinear(3_000, String.self) { "\"" + repeated("a\\n", $0) }
    }

    private struct Few: Decodable {
        let a: Int?
        let b: Int?
    }

    @Test("large objects, with keys that occur often and keys with the same hash")
    func keys() {
        isLinear(3_000, Few.self) { "{" + repeated("\"a\":1,", $0) + "\"b\":1}" }
        isLinear(3_000, Few.self) { "{" + (0..<$0).map { "\"k\($0)\":1," }.joined() + "\"b\":1}" }
        isLinear(3_000, [Few].self) { "[" + repeated("{\"a\":1,\"a\":2},", $0) + "{}]" }
        isLinear(3_000, [Few].self) { "[" + repeated("{\"\\u0061\":1},", $0) + "{}]" }
        isLinear(3_000, [String: Int].self) {
            "{" + (0..<$0).map { "\"same-beg\(10_000_000 + $0)same-end\":1," }.joined() + "\"b\":1}"
        }
        let key = repeated("k", 200)
        isLinear(5, [Few].self) {
            "[" + repeated("{" + (0..<250).map { "\"\(key)\($0 + 100)\(key)\":1," }.joined() + "\"b\":1},", $0) + "{}]"
        }
    }

    /// Tries one kind after the other, as types for values of several kinds do.
    private enum Mixed: Decodable {
        case number(Int)
        case text(String)
        case object([String: Mixed])
        case none

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            _ = decoder.codingPath
            if let value = try? container.decode(Int.self) {
                self = .number(value)
            } else if let value = try? container.decode([String: Mixed].self) {
                self = .object(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else {
                self = .none
            }
        }
    }

    @Test("errors that the type catches, and paths of every value")
    func caughtErrors() {
        isLinear(500, [Mixed].self) { "[" + repeated("\"a\",null,{\"k\":\"v\"},", $0) + "1]" }
        isLinear(500, [String: [Mixed]].self) { "{\"x\":[" + repeated("\"a\",\n", $0) + "1]}" }
        isLinear(500, [String: Mixed].self) { "{" + (0..<$0).map { "\"k\($0)\":true," }.joined() + "\"b\":1}" }
    }

    /// Asks for each key as a number, which none is: the error of each has its path.
    private struct Strings: Decodable {
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: DecodingKeyTests.AnyKey.self)
            for key in container.allKeys { _ = try? container.decode(Int.self, forKey: key) }
        }
    }

    /// Asks for the path of each element, beginning with the last one.
    private struct Backwards: Decodable {
        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            var decoders: [any Decoder] = []
            while !list.isAtEnd { decoders.append(try list.superDecoder()) }
            for (index, decoder) in decoders.enumerated().reversed() {
                #expect(decoder.codingPath.last?.intValue == index)
            }
        }
    }

    @Test("paths that the type asks for from the end to the beginning")
    func backwards() {
        /// Each key occurs twice: the keys are given in the order of the first ones, and their values in that of the
        /// last.
        func object(_ count: Int, value: String) -> String {
            let members = (0..<count).map { "\"\($0)\":\(value)" }
            return "{" + (members + members.reversed()).joined(separator: ",") + "}"
        }
        isLinear(500, Strings.self) { object($0, value: "\"\"") }
        isLinear(500, [Int: Few].self, keys: .custom { $0[$0.count - 1] }) { object($0, value: "{\"a\":1}") }
        isLinear(500, [String: Backwards].self) { "{\"x\":[" + repeated("[],", $0) + "1]}" }
    }

    #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    @Test("numbers of 16 bits take about as long as others", arguments: ["0.1", "3e-7", "9e-300", "123.456"])
    func halves(number: String) {
        func time<Value: Decodable>(_ type: Value.Type) -> Double {
            let text = Data(("[" + repeated("\(number),", 5_000) + "1]").utf8)
            return seconds { _ = try? decoder.decode(type, from: text) }
        }
        let (half, float) = (time([Float16].self), time([Float].self))
        #expect(half < float * 5, "\(half) s and \(float) s")
    }
    #endif

    private struct Large: Decodable {
        let numbers: (Int128, Int128, Int128, Int128, Int128, Int128, Int128, Int128)
        let others: (Int128, Int128, Int128, Int128, Int128, Int128, Int128, Int128)
        init(from decoder: any Decoder) throws {
            let value = try Int128(from: decoder)
            numbers = (value, 0, 0, 0, 0, 0, 0, 0)
            others = numbers
        }
    }

    @Test("an array of nulls reserves little memory for large elements")
    func reserve() {
        let text = "[" + repeated("null,", 1_000_000) + "null]"
        #expect(throws: DecodingError.self) { try decoder.decode([Large].self, from: text) }
    }

    /// Returns the size of the tape of a text, in bytes.
    private func tapeSize(_ text: String, capacity: Int) throws -> Int {
        let bytes = Array(text.utf8)
        var tape = Tape(capacity: capacity)
        defer { tape.deallocate() }
        try unsafe bytes.withUnsafeBufferPointer { try unsafe Scanner.scan($0, to: &tape, depthLimit: 512) }
        #expect(tape.count <= (bytes.count + 1) / 2)
        return tape.capacity * MemoryLayout<Token>.stride
    }

    @Test("a tape is at most eight times as large as the text", arguments: [4, 256, 65_536])
    func tapeSize(capacity: Int) throws {
        for text in [
            "[" + repeated("1,", 100_000) + "1]", "[" + repeated("1,", 66_000) + "1]",
            repeated("[", 500) + repeated("1,", 66_000) + "1" + repeated("]", 500),
            repeated("[", 500) + repeated("]", 500), "{" + repeated("\"\":1,", 9_999) + "\"\":1}",
        ] {
            // 4 KiB for brackets that are open.
            let largest = max(text.utf8.count * 8 + 4_096 + 256, capacity * MemoryLayout<Token>.stride)
            #expect(try tapeSize(text, capacity: capacity) <= largest)
        }
        #expect(MemoryLayout<Token>.size == 16)
    }

    @Test("a tape grows before its end is reached, whatever is open")
    func tapeEnd() throws {
        for capacity in 2...20 {
            for depth in 0...24 {
                for spaces in 0...24 {
                    let end = repeated(" ", spaces) + repeated("]", depth)
                    let array = repeated("[", depth)
                    _ = try tapeSize(array + "{\"\":{\"\":1}}" + end, capacity: capacity)
                    _ = try tapeSize(array + "[1,[1]]" + end, capacity: capacity)
                }
            }
        }
    }
}
