import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A server of pictures whose colour is their URL's number, with the moods of a real one: slow, down, torn, gone.
final class ColorServer: Sendable {
    static let count = 8

    private let random: Lock<SplitMix>
    private let files: [Data]
    private let clock: ManualClock

    init(seed: UInt64, clock: ManualClock) throws {
        random = Lock(SplitMix(state: seed))
        files = try (0..<Self.count).map { number in
            let image = try flat(64, 48, Self.color(number))
            return try image.encoded(as: number % 2 == 0 ? .png() : .jpeg(progressive: true))
        }
        self.clock = clock
    }

    static func color(_ number: Int) -> [UInt8] {
        [UInt8(number * 32), UInt8(255 - number * 32), UInt8(number * 16), 255]
    }

    /// The number that a picture's first pixel stands for; nil for a colour that nobody has.
    static func number(of image: RasterImage) -> Int? {
        let pixel = Array(image.pixels.bytes.prefix(4))
        return (0..<count).first { number in
            zip(pixel, color(number)).allSatisfy { abs(Int($0) - Int($1)) <= 6 }
        }
    }

    static func url(_ number: Int) throws -> URL { try TernImagesTests.url("https://a.example/\(number)") }

    var stub: StubTransport {
        StubTransport(clock: clock) { call in try self.answer(call) }
    }

    private func answer(_ call: StubTransport.Call) throws -> StubTransport.Answer {
        guard let number = Int(call.path.dropFirst()), files.indices.contains(number) else { return .status(404) }
        let mood = random.withLock { Int.random(in: 0..<20, using: &$0) }
        let file = files[number]
        let headers: Headers = ["ETag": "\"\(number)\"", "Cache-Control": "max-age=\(number % 3 == 0 ? 0 : 3_600)"]
        if mood > 3, call.headers["If-None-Match"] == "\"\(number)\"" { return .status(304, headers: headers) }
        let half = file.count / 2
        switch mood {
        case 0: return .status(503)
        case 1: return .status(404)
        case 2: throw StubTransport.Failure(.connectionFailed)
        case 3: return .chunks([file.prefix(half)], headers: headers).failing(.init(.connectionLost))
        case 4...7: return .data(file, headers: headers).delayed(by: .seconds(mood))
        case 8...11:
            return .chunks([file.prefix(half), file.suffix(from: half)], interval: .seconds(1), headers: headers)
        default: return .data(file, headers: headers)
        }
    }
}
