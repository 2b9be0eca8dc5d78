#if os(Linux) && !TERN_URLSESSION
/// One way in which the server of the chaos tests answers a request.
enum ChaosFault: String, CaseIterable, Sendable {
    // Whole responses.
    case length, chunked, untilClose, noContent, notModified, announcedClose, silentClose, halfClose, trickle, interims
    case extraBytes, secondResponse, lateTimeout, lateBytes, lateReset, serverError
    // Responses before the body of the request has arrived.
    case earlyResponse, earlyRefusal
    // No response, or a part of one.
    case closeBeforeHead, closeInHead, closeInBody, closeInChunk, missingLastChunk
    case resetBeforeHead, resetInHead, resetInBody, resetUntilClose
    case stallBeforeHead, stallInBody, badHead, badChunk, twoLengths
    // Below TLS. First those of whole responses.
    case bareClose, keyUpdate, lateGarbage
    case untilBareClose, bareCloseInBody, cutRecord, resetInRecord, garbageInBody

    /// Whether a client may report success.
    func allowsSuccess(isHead: Bool) -> Bool {
        switch self {
        case .length, .chunked, .untilClose, .noContent, .announcedClose, .silentClose, .halfClose, .trickle, .interims,
            .extraBytes, .secondResponse, .lateTimeout, .lateBytes, .lateReset, .earlyResponse, .bareClose, .keyUpdate,
            .lateGarbage:
            true
        // The response to HEAD is whole after its head.
        case .closeInBody, .closeInChunk, .missingLastChunk, .resetInBody, .resetUntilClose, .stallInBody, .badChunk,
            .untilBareClose, .bareCloseInBody, .cutRecord, .resetInRecord, .garbageInBody:
            isHead
        default: false
        }
    }

    /// Whether a client must report success if the response was sent.
    var requiresSuccess: Bool {
        switch self {
        case .length, .chunked, .untilClose, .noContent, .announcedClose, .silentClose, .halfClose, .trickle, .interims,
            .extraBytes, .secondResponse, .lateTimeout, .lateBytes, .earlyResponse, .bareClose, .keyUpdate,
            .lateGarbage:
            true
        default: false
        }
    }

    private static let withoutTLS = allCases.filter { !withTLS.contains($0) }
    private static let withTLS: [ChaosFault] = [
        .bareClose, .keyUpdate, .lateGarbage, .untilBareClose, .bareCloseInBody, .cutRecord, .resetInRecord,
        .garbageInBody,
    ]

    /// Draws an answer: two of three are whole.
    static func draw(_ random: inout ChaosRandom, isSecure: Bool) -> ChaosFault {
        if random.next(below: 100) < 40 { return [.length, .length, .chunked][random.next(below: 3)] }
        let cases = isSecure && random.chance(40) ? withTLS : withoutTLS
        return cases[random.next(below: cases.count)]
    }
}

/// Numbers that depend on the seed alone (SplitMix64).
struct ChaosRandom {
    private var state: UInt64

    init(seed: UInt64, _ number: Int, _ salt: Int = 0) {
        state = seed &+ UInt64(truncatingIfNeeded: number) &* 0xD134_2543_DE82_EF95
        state ^= UInt64(truncatingIfNeeded: salt) &* 0xA076_1D64_78BD_642F
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func next(below limit: Int) -> Int { Int(next() % UInt64(max(1, limit))) }

    /// Returns true in this share of calls, in percent.
    mutating func chance(_ percent: Int) -> Bool { next(below: 100) < percent }
}

/// The bodies of the chaos tests. Each one repeats a line that only its request has.
enum ChaosBody {
    static func response(to number: Int) -> [UInt8] { bytes(number, salt: 1) }
    static func request(_ number: Int) -> [UInt8] { bytes(number, salt: 2) }

    private static func bytes(_ number: Int, salt: Int) -> [UInt8] {
        var random = ChaosRandom(seed: 0, number, salt)
        let line = Array("\(number):\(random.next())\n".utf8)
        let size =
            switch random.next(below: 100) {
            case ..<8: 0
            case ..<50: 1 + random.next(below: 200)
            case ..<85: 200 + random.next(below: 8_000)
            case ..<98: 8_000 + random.next(below: 90_000)
            default: 100_000 + random.next(below: 500_000)
            }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + line.count)
        while bytes.count < size { bytes += line }
        bytes.removeLast(bytes.count - size)
        return bytes
    }
}
#endif
