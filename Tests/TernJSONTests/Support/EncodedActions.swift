import Foundation
import TernJSON

/// Writes a value by random calls of an encoder, the same ones each time.
///
/// Containers are used in any order, and continued after others. No dictionary has two keys, whose order would be
/// another one each time.
struct RandomActions: Encodable {
    let seed: UInt64
    /// Whether names are written twice and values throw, for which Foundation's encoder can stop the process, and
    /// encoders of elements come late, for which it mixes up the elements.
    var hasMistakes = true

    func encode(to encoder: any Encoder) throws {
        var actions = Actions(generator: Generator(state: seed), hasMistakes: hasMistakes)
        try actions.run(encoder)
    }

    private struct Actions {
        var generator: Generator
        let hasMistakes: Bool
        var objects: [KeyedEncodingContainer<AnyKey>] = []
        var short: [KeyedEncodingContainer<ShortKey>] = []
        var arrays: [any UnkeyedEncodingContainer] = []
        var encoders: [any Encoder] = []
        var names = 0
        /// The keys that are left of each object in `short`.
        var left: [[ShortKey]] = []

        init(generator: Generator, hasMistakes: Bool) {
            (self.generator, self.hasMistakes) = (generator, hasMistakes)
        }

        mutating func run(_ encoder: any Encoder) throws {
            if Bool.random(using: &generator) {
                objects.append(encoder.container(keyedBy: AnyKey.self))
            } else {
                arrays.append(encoder.unkeyedContainer())
            }
            for _ in 0..<Int.random(in: 1...30, using: &generator) {
                let kind = Int.random(in: 0..<10, using: &generator)
                if kind < 5, !objects.isEmpty {
                    try writeMember(of: Int.random(in: 0..<objects.count, using: &generator))
                } else if kind < 7, !arrays.isEmpty {
                    try writeElement(of: Int.random(in: 0..<arrays.count, using: &generator))
                } else if kind < 9, !short.isEmpty {
                    try writeShortMember(of: Int.random(in: 0..<short.count, using: &generator))
                } else if !encoders.isEmpty {
                    let place = Int.random(in: 0..<encoders.count, using: &generator)
                    try Point(x: Double(place), y: 1.5).encode(to: encoders.remove(at: place))
                }
            }
        }

        private mutating func name() -> AnyKey {
            names += 1
            if hasMistakes, Int.random(in: 0..<3, using: &generator) == 0 { return AnyKey(stringValue: "same") }
            let pieces = ["a", "b/", "name", "createdAt", "\"", "\n", "\u{1}", "é", "漢", "x\\y", "abcdefgh", ""]
            let piece = pieces.randomElement(using: &generator) ?? ""
            let number = String(Int.random(in: 0..<1_000, using: &generator)) + "-\(names)"
            return AnyKey(stringValue: Bool.random(using: &generator) ? piece + number : number + piece)
        }

        private mutating func text() -> String {
            let pieces = ["a", "\"", "\\", "/", "\n", "\u{0}", "ü", "漢字", "plain text of some length", "{[,:]}", " "]
            return (0..<Int.random(in: 0...6, using: &generator))
                .map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
        }

        private mutating func writeMember(of object: Int) throws {
            let key = name()
            switch Int.random(in: 0..<11, using: &generator) {
            case 0: objects.append(objects[object].nestedContainer(keyedBy: AnyKey.self, forKey: key))
            case 1: arrays.append(objects[object].nestedUnkeyedContainer(forKey: key))
            case 2:
                short.append(objects[object].nestedContainer(keyedBy: ShortKey.self, forKey: key))
                left.append([.d, .slash, .a, .userName, .c, .dash, .b].shuffled(using: &generator))
            case 3: encoders.append(objects[object].superEncoder(forKey: key))
            case 4: try objects[object].encode(Point(), forKey: key)
            case 5: try objects[object].encode([Point(), Point(x: 0, y: 1)], forKey: key)
            case 6: try objects[object].encode([text(): 1], forKey: key)
            case 7: if hasMistakes { try? objects[object].encode(["k": [Point(x: 1, y: .nan)]], forKey: key) }
            case 8: try objects[object].encode(Empty(), forKey: key)
            case 9: try objects[object].encode([[Int]](repeating: [], count: 2), forKey: key)
            default: try objects[object].encode(text(), forKey: key)
            }
        }

        private mutating func writeShortMember(of object: Int) throws {
            guard let key = left[object].popLast() else { return }
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: objects.append(short[object].nestedContainer(keyedBy: AnyKey.self, forKey: key))
            case 1: if hasMistakes { try? short[object].encode(Point(x: .nan, y: 0), forKey: key) }
            case 2: try short[object].encode(Flattened(), forKey: key)
            case 3: try short[object].encodeNil(forKey: key)
            default: try short[object].encode(Int.random(in: -1_000...1_000, using: &generator), forKey: key)
            }
        }

        private mutating func writeElement(of array: Int) throws {
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: objects.append(arrays[array].nestedContainer(keyedBy: AnyKey.self))
            case 1: arrays.append(arrays[array].nestedUnkeyedContainer())
            case 2: if hasMistakes { encoders.append(arrays[array].superEncoder()) }
            case 3: try arrays[array].encode(Flattened())
            case 4: if hasMistakes { try? arrays[array].encode([1, .nan]) }
            case 5: try arrays[array].encode(["b": [1]])
            default: try arrays[array].encode(text())
            }
        }
    }
}
