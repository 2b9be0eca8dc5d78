import Foundation
import Testing

@testable import TernJSON

/// Random values of each kind, which one library writes and the other one reads. `make json-values N=1000000 SEED=2`
/// tries more of them.
@Suite("JSON: random values between both libraries")
struct RoundTripTests {
    private static let count = ProcessInfo.processInfo.environment["TERN_JSON_VALUES"].flatMap { Int($0) } ?? 2_000
    private static let seed = ProcessInfo.processInfo.environment["TERN_JSON_SEED"].flatMap { UInt64($0) } ?? 1

    @Test("random values come back, whichever library writes and reads them")
    func randomValuesComeBack() async {
        let workers = ProcessInfo.processInfo.activeProcessorCount
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<workers {
                group.addTask {
                    for index in stride(from: worker, to: Self.count, by: workers) {
                        guard Self.comesBack(index) else { return }
                    }
                }
            }
        }
    }

    /// Returns whether a value comes back, and records why not.
    private static func comesBack(_ index: Int) -> Bool {
        let trip = RoundTrip(seed: seed, index: index)
        do {
            try trip.check()
            return true
        } catch {
            Issue.record("TERN_JSON_SEED=\(seed), value \(index), \(trip.options): \(error)")
            return false
        }
    }
}

/// The way of one value through both libraries, with settings of its own.
private struct RoundTrip {
    let value: RoundTripValue
    let options: String
    private let encoders: Encoders
    private let decoder: TernJSONDecoder
    private let foundation = JSONDecoder()

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    init(seed: UInt64, index: Int) {
        var generator = Generator(state: seed << 40 &+ UInt64(index))
        let layout = TernJSONEncoder.OutputFormatting(
            [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes].filter { _ in Bool.random(using: &generator) })
        let sinceEpoch = Bool.random(using: &generator)
        let dataIsList = UInt8.random(in: 0..<8, using: &generator) == 0
        var decoder = TernJSONDecoder()
        encoders = Encoders(layout) { tern, foundation in
            if sinceEpoch {
                tern.dateEncodingStrategy = .secondsSince1970
                foundation.dateEncodingStrategy = .secondsSince1970
            }
            if dataIsList {
                tern.dataEncodingStrategy = .deferredToData
                foundation.dataEncodingStrategy = .deferredToData
            }
        }
        if sinceEpoch {
            decoder.dateDecodingStrategy = .secondsSince1970
            foundation.dateDecodingStrategy = .secondsSince1970
        }
        if dataIsList {
            decoder.dataDecodingStrategy = .deferredToData
            foundation.dataDecodingStrategy = .deferredToData
        }
        self.decoder = decoder
        options = "layout \(layout.rawValue), seconds since 1970 \(sinceEpoch), list of bytes \(dataIsList)"
        var maker = RoundTripMaker(generator: generator, datesAreShort: sinceEpoch)
        value = maker.value()
    }

    func check() throws {
        let text = try encoders.tern.encode(value)
        let theirs = try encoders.foundation.encode(value)
        try expect("Tern to Foundation", text) { try foundation.decode(RoundTripValue.self, from: text) }
        try expect("Foundation to Tern", theirs) { try decoder.decode(RoundTripValue.self, from: theirs) }
        try expect("Tern to Tern", text) {
            try decoder.decode(RoundTripValue.self, from: String(decoding: text, as: UTF8.self))
        }
    }

    /// Expects the same value, with the same bits of each number and the same scalars of each text.
    private func expect(_ direction: String, _ text: Data, decode: () throws -> RoundTripValue) throws {
        func failure(_ reason: String) -> Failure {
            Failure(description: "\(direction): \(reason), of \(String(decoding: text, as: UTF8.self))")
        }
        let back: RoundTripValue
        do { back = try decode() } catch { throw failure("\(error)") }
        // Strings are equal if their characters are. The bytes are those of the scalars.
        let (expected, found) = try (sortedText(of: value), sortedText(of: back))
        guard back == value, found == expected else {
            let texts = [found, expected].map { String(decoding: $0, as: UTF8.self) }
            throw failure("came back as \(texts[0]) instead of \(texts[1])")
        }
    }

    private func sortedText(of value: RoundTripValue) throws -> [UInt8] {
        var encoder = encoders.tern
        encoder.outputFormatting = .sortedKeys
        return try encoder.encodeToBytes(value)
    }
}
