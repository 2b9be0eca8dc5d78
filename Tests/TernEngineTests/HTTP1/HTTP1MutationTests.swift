import Testing

@testable import TernEngine

/// Changes valid responses at random, with a fixed seed, and compares the whole input with its splits.
@Suite(.timeLimit(.minutes(1))) struct HTTP1MutationTests {
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private static let samples: [[UInt8]] = [
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nfirst",
        "HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200\nX: a\n b\nContent-Length: 2\n\nokHTTP/1.1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n01\r\nd\r\n0\r\nX: 1\r\n y\r\nHost: a\r\n\r\nrest",
        "HTTP/1.0 404 Not Found\r\nSet-Cookie: a=b\r\n\r\nuntil the end",
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbytes",
    ].map { Array($0.utf8) }

    private static let pieces: [[UInt8]] = [
        "\r", "\n", "\r\n", " ", "\t", ":", "\0", "0", "5", "f", ";", ",", "close", "chunked", "Content-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\n", "HTTP/1.1 ", "\r\n\r\n", "100", "\u{7F}",
    ].map { Array($0.utf8) }

    private static func mutate(_ bytes: inout [UInt8], with random: inout Generator) {
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes.remove(at: index)
            case 1: bytes[index] = UInt8.random(in: .min ... .max, using: &random)
            case 2: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: index)
            case 3: bytes.removeSubrange(index..<min(bytes.count, index + 4))
            default: bytes.insert(contentsOf: bytes[index..<min(bytes.count, index + 12)], at: index)
            }
        }
    }

    @Test(arguments: samples.indices) func anySplitOfAMutationGivesTheSameResult(sample: Int) {
        var random = Generator(state: UInt64(sample) + 1)
        for _ in 0..<3_000 {
            var bytes = Self.samples[sample]
            Self.mutate(&bytes, with: &random)
            let request = HTTP1Parser.Request.test(
                isHead: Int.random(in: 0..<16, using: &random) == 0, allowsUpgrade: Bool.random(using: &random),
                headLimit: Int.random(in: 0..<8, using: &random) == 0 ? 40 : 4_096)
            let ends = Bool.random(using: &random)
            let whole = ParsedResponse(bytes, request: request, ends: ends)
            var splits = [Array(1..<max(1, bytes.count))]
            for _ in 0..<4 where !bytes.isEmpty {
                splits.append((0..<3).map { _ in Int.random(in: 0..<bytes.count, using: &random) }.sorted())
            }
            for split in splits {
                let other = ParsedResponse(bytes, splits: split, request: request, ends: ends)
                guard other == whole else {
                    Issue.record(
                        "\(String(decoding: bytes, as: UTF8.self).debugDescription) at \(split): \(other), \(whole)")
                    return
                }
            }
        }
    }

    /// A head that was accepted is accepted again in the form in which it is handed on, and means the same.
    @Test(arguments: samples.indices) func anAcceptedHeadIsStable(sample: Int) {
        var random = Generator(state: UInt64(sample) + 100)
        for _ in 0..<3_000 {
            var bytes = Self.samples[sample]
            Self.mutate(&bytes, with: &random)
            let result = ParsedResponse(bytes, request: .test(allowsUpgrade: true))
            for head in result.interims + (result.head.map { [$0] } ?? []) {
                let again = ParsedResponse(head.bytes, request: .test(allowsUpgrade: true))
                #expect((again.head ?? again.interims.first) == head, "\(bytes)")
                #expect(Self.isRegular(head.bytes), "\(bytes)")
            }
            if !result.trailers.isEmpty { #expect(Self.isRegular(result.trailers + [0x0D, 0x0A]), "\(bytes)") }
        }
    }

    /// Returns whether all lines end in CRLF, none is folded, only the last is empty, and no other control occurs.
    private static func isRegular(_ bytes: [UInt8]) -> Bool {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        guard lines.popLast()?.isEmpty == true, lines.popLast() == [0x0D] else { return false }
        return lines.allSatisfy { line in
            guard line.last == 0x0D, let first = line.first, first > 0x20 else { return false }
            return line.dropLast().allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
        }
    }
}
