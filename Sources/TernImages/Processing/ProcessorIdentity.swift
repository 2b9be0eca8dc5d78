/// What a processor, or a list of them, does: equal exactly when the processors and all their parameters are.
///
/// Made once with its hash; comparing and hashing build no string. A copy costs a reference count.
public struct ProcessorIdentity: Sendable, Hashable, CustomStringConvertible {
    private final class Content: Sendable {
        let name: String
        let text: String?
        let numbers: [UInt64]
        let parts: [ProcessorIdentity]

        init(name: String, text: String?, numbers: [UInt64], parts: [ProcessorIdentity]) {
            self.name = name
            self.text = text
            self.numbers = numbers
            self.parts = parts
        }
    }

    private let fingerprint: UInt64
    private let content: Content

    /// The identity of a processor of one's own: a name that no other has, as `com.example.sepia`, and the numbers that
    /// change its result.
    public init(_ name: String, parameters: [Double] = []) {
        self.init(library: "custom", text: name, parameters)
    }

    /// The identity of a processor of the library, with a label of its own so that no name is taken for a user's.
    init(library name: String, text: String? = nil, _ parameters: [Double] = []) {
        // Zero has two bit patterns and one meaning; a number that is none has many.
        let numbers = parameters.map { $0 == 0 ? 0 : $0.isNaN ? Double.nan.bitPattern : $0.bitPattern }
        var mixer = Mixer()
        mixer.add(name)
        if let text { mixer.add(text) }
        for number in numbers { mixer.add(number) }
        fingerprint = mixer.value
        content = Content(name: name, text: text, numbers: numbers, parts: [])
    }

    /// The identity of processors one after the other: of one, its own.
    init(_ parts: [ProcessorIdentity]) {
        var flat = parts
        if parts.contains(where: { $0.content.name.isEmpty }) {
            flat = parts.flatMap { $0.content.name.isEmpty ? $0.content.parts : [$0] }
        }
        if flat.count == 1 {
            self = flat[0]
            return
        }
        var mixer = Mixer()
        for part in flat { mixer.add(part.fingerprint) }
        fingerprint = mixer.value
        content = Content(name: "", text: nil, numbers: [], parts: flat)
    }

    /// Whether both are of the same processors with the same parameters.
    public static func == (one: ProcessorIdentity, other: ProcessorIdentity) -> Bool {
        guard one.fingerprint == other.fingerprint else { return false }
        let (left, right) = (one.content, other.content)
        return left === right
            || left.name == right.name && left.text == right.text && left.numbers == right.numbers
                && left.parts == right.parts
    }

    /// Feeds the hash that was made with the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }

    /// The identity as text, the same in every process: `resize.fit(400,300)|circle`. Different identities never have
    /// the same text, so that it serves in the keys of a disk cache. Built anew at each call; empty for no processor.
    public var description: String {
        if content.name.isEmpty { return content.parts.map(\.description).joined(separator: "|") }
        var arguments = content.numbers.map(Self.text)
        if let text = content.text {
            var quoted = "\""
            // By scalars: a quotation mark under an accent is a character of its own.
            for scalar in text.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
                quoted.unicodeScalars.append(scalar)
            }
            arguments.insert(quoted + "\"", at: 0)
        }
        return arguments.isEmpty ? content.name : "\(content.name)(\(arguments.joined(separator: ",")))"
    }

    private static func text(_ bits: UInt64) -> String {
        let number = Double(bitPattern: bits)
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
}

extension ProcessorIdentity {
    /// A hash that is the same in every process, unlike `Hasher`'s.
    private struct Mixer {
        private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func add(_ word: UInt64) {
            value = (value ^ word) &* 0x9E37_79B9_7F4A_7C15
            value ^= value >> 29
        }

        mutating func add(_ text: String) {
            for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            add(UInt64(text.utf8.count))
        }
    }
}
