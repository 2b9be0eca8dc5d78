import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes a compressed body in pieces of any size.
@Suite struct ContentDecoderTests {
    private static let text = "hello, compressed world"
    // Computed on each access: a Data that lives as long as the process is a leak to the address sanitizer, because
    // Data tags the pointer to its bytes.
    private static var bodies: [(coding: String, body: Data)] {
        let zlib = base64("eJzLSM3JyddRSM7PLShKLS5OTVEozy/KSQEAaLII3g==")
        return [
            ("gzip", base64("H4sIAAAAAAACA8tIzcnJ11FIzs8tKEotLk5NUSjPL8pJAQAInjQ1FwAAAA==")),
            ("x-gzip", base64("H4sIAAAAAAACA8tIzcnJ11FIzs8tKEotLk5NUSjPL8pJAQAInjQ1FwAAAA==")),
            ("deflate", zlib),
            // Without the header and the checksum of zlib, as some servers send it.
            ("deflate", zlib.dropFirst(2).dropLast(4)),
            ("br", base64("obAAwC8JQlaWg2wCTJZwUUdy+kHvAA==")),
            ("zstd", base64("KLUv/SQXuQAAaGVsbG8sIGNvbXByZXNzZWQgd29ybGQANxEW")),
        ]
    }

    private static func base64(_ text: String) -> Data { Data(base64Encoded: text) ?? Data() }

    /// A generator that gives the same numbers in each run (Knuth's 64-bit generator, its upper half).
    private struct Damage: RandomNumberGenerator {
        private var state: UInt64 = 8

        mutating func next() -> UInt64 {
            func half(_ state: inout UInt64) -> UInt64 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return state >> 32
            }
            return half(&state) << 32 | half(&state)
        }
    }

    private func decoder(_ coding: String, limit: Int64 = 1 << 30) -> ContentDecoder {
        ContentDecoder([coding], host: "example.test", limit: limit)
    }

    /// Returns all output for pieces of `size` bytes.
    private func decoded(_ decoder: ContentDecoder, _ body: Data, by size: Int) -> Data {
        var result = Data()
        var rest = body[...]
        while !rest.isEmpty {
            decoder.add([Data(rest.prefix(size))])
            rest = rest.dropFirst(size)
            while case let chunks = decoder.next(), !chunks.isEmpty { for chunk in chunks { result += chunk } }
        }
        return result
    }

    @Test func allCodingsThatAreOfferedAreDecodedInPiecesOfEachSize() {
        for (coding, body) in Self.bodies where coding == "x-gzip" || ContentDecoder.acceptEncoding.contains(coding) {
            for size in 1...body.count {
                let decoder = decoder(coding)
                #expect(String(decoding: decoded(decoder, body, by: size), as: UTF8.self) == Self.text)
                #expect(decoder.failureOfEnd == nil)
                #expect(decoder.produced == Int64(Self.text.utf8.count))
            }
        }
    }

    @Test func gzipAndDeflateAreOfferedEverywhere() {
        #expect(ContentDecoder.acceptEncoding.hasPrefix("gzip, deflate"))
    }

    @Test func aBodyThatIsCutAnywhereIsTruncated() {
        for (coding, body) in Self.bodies where coding == "x-gzip" || ContentDecoder.acceptEncoding.contains(coding) {
            for length in 1..<body.count {
                let decoder = decoder(coding)
                _ = decoded(decoder, body.prefix(length), by: body.count)
                #expect(decoder.failureOfEnd?.kind == .truncatedBody, "\(coding), \(length) of \(body.count)")
            }
        }
    }

    @Test func emptyBodyIsComplete() {
        for coding in ["gzip", "deflate", "br", "zstd", "unknown"] { #expect(decoder(coding).failureOfEnd == nil) }
    }

    @Test func severalMembersFormOneBody() throws {
        let twice = Self.bodies[0].body + Self.bodies[0].body
        for size in 1...twice.count {
            let decoder = decoder("gzip")
            #expect(String(decoding: decoded(decoder, twice, by: size), as: UTF8.self) == Self.text + Self.text)
            #expect(decoder.failureOfEnd == nil)
        }
    }

    @Test func dataAfterTheEndIsIgnored() {
        for size in [1, 7, 100] {
            let decoder = decoder("gzip")
            let body = Self.bodies[0].body + Data([0, 0, 0, 0])
            #expect(String(decoding: decoded(decoder, body, by: size), as: UTF8.self) == Self.text)
            #expect(decoder.failureOfEnd == nil)
        }
    }

    @Test func bodyThatDoesNotMatchItsCodingIsMalformed() {
        for coding in ["gzip", "deflate", "br", "zstd"] where ContentDecoder.acceptEncoding.contains(coding) {
            let decoder = decoder(coding)
            _ = decoded(decoder, Data(repeating: 0xFF, count: 100), by: 10)
            #expect(decoder.failure?.kind == .malformedResponse, "\(coding)")
            #expect(decoder.failure?.reason.contains("cannot be decompressed") == true)
            #expect(decoder.next().isEmpty)
        }
    }

    /// A frame that states the window that its decoder needs, and holds five uncompressed bytes.
    @Test(
        .enabled(if: ContentDecoder.acceptEncoding.contains("zstd")), arguments: [(23, true), (24, false), (31, false)])
    func frameBeyondTheWindowLimitOfHTTPIsRefused(windowLog: UInt8, isAllowed: Bool) {
        let decoder = decoder("zstd")
        let frame = Data([0x28, 0xB5, 0x2F, 0xFD, 0, (windowLog - 10) << 3, 5 << 3 | 1, 0, 0]) + Data("hello".utf8)
        let text = String(decoding: decoded(decoder, frame, by: frame.count), as: UTF8.self)
        #expect(text == (isAllowed ? "hello" : ""))
        #expect(decoder.failure?.kind == (isAllowed ? nil : .malformedResponse))
        if !isAllowed { #expect(decoder.failure?.reason.contains("RFC 9659") == true) }
    }

    /// Hostile input: decoding ends, within the limit, whatever the server sends.
    @Test func damagedBodiesEndWithinTheLimit() {
        var random = Damage()
        for (coding, body) in Self.bodies where coding == "x-gzip" || ContentDecoder.acceptEncoding.contains(coding) {
            for _ in 0..<1_000 {
                var damaged = Array(body + body)
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(in: 0...255, using: &random)
                }
                let decoder = decoder(coding, limit: 4_096)
                let size = Int.random(in: 1...damaged.count, using: &random)
                let text = decoded(decoder, Data(damaged), by: size)
                #expect(text.count <= 4_096)
                if decoder.failure == nil, decoder.failureOfEnd == nil {
                    #expect(decoder.produced == Int64(text.count))
                }
            }
        }
    }

    @Test func unrequestedCodingWithBytesIsMalformed() {
        let decoder = decoder("compress")
        decoder.add([Data([1])])
        #expect(decoder.next().isEmpty)
        #expect(decoder.failure?.kind == .malformedResponse)
        #expect(decoder.failure?.reason.contains("is encoded as compress") == true)
    }

    @Test func bombIsDecodedInPortionsAndStoppedAtTheLimit() throws {
        let bomb = try Deflater.compress(Data(count: 64 << 20), .gzip)
        let decoder = decoder("gzip", limit: 10 << 20)
        decoder.add([bomb])
        var count = 0
        while case let chunks = decoder.next(), !chunks.isEmpty {
            let portion = chunks.reduce(0) { $0 + $1.count }
            #expect(portion <= 2 << 20)
            count += portion
        }
        #expect(decoder.failure?.kind == .tooLarge)
        #expect(count <= 10 << 20)
    }

    @Test func unreadRestIsNotAFailure() throws {
        let decoder = decoder("gzip")
        decoder.add([try Deflater.compress(Data(count: 64 << 20), .gzip)])
        #expect(!decoder.next().isEmpty)
        #expect(decoder.failureOfEnd == nil)
    }

    /// gzip reduces 64 MiB of zeros to about a thousandth.
    @Test(arguments: [(64, 200, false), (64, 2_000, true), (10, 200, true), (11, 200, false)])
    func bodyBeyondTheRatioIsRefused(mebibytes: Int, ratio: Int, isAllowed: Bool) throws {
        let decoder = ContentDecoder(["gzip"], host: "example.test", limit: 1 << 30, ratio: ratio)
        decoder.add([try Deflater.compress(Data(count: mebibytes << 20), .gzip)])
        var count = 0
        while case let chunks = decoder.next(), !chunks.isEmpty { count += chunks.reduce(0) { $0 + $1.count } }
        #expect(decoder.failure?.kind == (isAllowed ? nil : .tooLarge))
        #expect(isAllowed ? count == mebibytes << 20 : count <= 11 << 20)
        if !isAllowed { #expect(decoder.failure?.reason.contains("more than 200 times its size") == true) }
    }

    /// Checks every split of the body.
    @Test func onlyZerosCanFollowTheLastMember() {
        let member = Self.bodies[0].body
        let others = [
            Data([0, 0x1F]), Data([0, 0x1F, 0]) + member, Data(count: 9) + member, Data([10]), Data([0, 10, 0]),
        ]
        for other in others {
            let body = member + other
            for size in 1...body.count {
                let decoder = decoder("gzip")
                #expect(String(decoding: decoded(decoder, body, by: size), as: UTF8.self) == Self.text)
                #expect(decoder.failure?.kind == .malformedResponse && decoder.failureOfEnd != nil)
            }
        }
    }

    @Test func onlyZerosCanFollowABodyWithoutMembers() {
        for coding in ["deflate", "br"] where ContentDecoder.acceptEncoding.contains(coding) {
            for body in Self.bodies where body.coding == coding {
                for (rest, isAllowed) in [
                    ([0, 0], true), ([0, 10, 0], false), ([1], false), (Array(body.body), false),
                ] {
                    for size in [1, 2, 7, 1_000] {
                        let decoder = decoder(coding)
                        let text = decoded(decoder, body.body + Data(rest), by: size)
                        #expect(String(decoding: text, as: UTF8.self) == Self.text)
                        #expect(
                            decoder.failureOfEnd?.kind == (isAllowed ? nil : .malformedResponse), "\(coding) \(rest)")
                    }
                }
            }
        }
    }

    // MARK: Several codings

    private static var gzipOfDeflate: Data {
        base64("H4sIAAAAAAACA6uYc9rj7MmT1wM9zp3X1fDS1fPzDdQ4r3/Kk5EhYxPHPQDttoAkHwAAAA==")
    }

    private static var fiveCodings: Data {
        base64(
            "eJyT7+ZgAAEmZkZrhiP/K+ZMfv8sgYFR7dlV465827riok+labeLi9fH/y14+er5+T3hOteuz59lE2gY+WOH7uHbubxanxy2MsSbiod4OijUWQ"
                + "NNAgB3CSJ2")
    }

    private func chain(_ codings: [String], limit: Int64 = 1 << 30, ratio: Int = 200) -> ContentDecoder {
        ContentDecoder(codings, host: "example.test", limit: limit, ratio: ratio)
    }

    @Test func severalCodingsAreRemovedInReverse() {
        let bodies = [
            (["deflate", "gzip"], Self.gzipOfDeflate),
            (["deflate", "gzip", "deflate", "gzip", "deflate"], Self.fiveCodings),
        ]
        for (codings, body) in bodies {
            for size in 1...body.count {
                let decoder = chain(codings)
                #expect(String(decoding: decoded(decoder, body, by: size), as: UTF8.self) == Self.text)
                #expect(decoder.failureOfEnd == nil && decoder.produced == Int64(Self.text.utf8.count))
            }
            for length in 1..<body.count {
                let decoder = chain(codings)
                _ = decoded(decoder, body.prefix(length), by: body.count)
                #expect(decoder.failureOfEnd?.kind == .truncatedBody, "\(length) of \(body.count)")
            }
            let decoder = chain(codings)
            _ = decoded(decoder, body + Data([1]), by: 3)
            #expect(decoder.failureOfEnd?.kind == .malformedResponse)
        }
        let other = chain(["gzip", "deflate"])
        _ = decoded(other, Self.gzipOfDeflate, by: 10)
        #expect(other.failure?.kind == .malformedResponse)
    }

    @Test func moreThanFiveCodingsAreRefused() {
        let decoder = chain(Array(repeating: "gzip", count: 6))
        #expect(decoded(decoder, Self.bodies[0].body, by: 100).isEmpty)
        #expect(decoder.failure?.reason.contains("is encoded more than 5 times over") == true)
        let unknown = chain(["compress", "gzip"])
        #expect(decoded(unknown, Self.bodies[0].body, by: 100).isEmpty)
        #expect(unknown.failure?.reason.contains("is encoded as compress") == true)
    }

    /// 269 bytes, which become 65,250 and then 64 MiB.
    @Test func theLimitsHoldOverAllCodings() throws {
        let bomb = try Deflater.compress(try Deflater.compress(Data(count: 64 << 20), .gzip), .gzip)
        for (limit, ratio) in [(Int64(10 << 20), 1 << 40), (1 << 30, 2_000)] {
            let decoder = chain(["gzip", "gzip"], limit: limit, ratio: ratio)
            decoder.add([bomb])
            var count = 0
            while case let chunks = decoder.next(), !chunks.isEmpty { count += chunks.reduce(0) { $0 + $1.count } }
            #expect(decoder.failure?.kind == .tooLarge)
            #expect(count <= 11 << 20)
        }
        // The size after the first step counts, too.
        let inner = chain(["gzip", "gzip"], limit: 1_000)
        #expect(decoded(inner, bomb, by: 1_000).isEmpty)
        #expect(inner.failure?.kind == .tooLarge)
    }
}
