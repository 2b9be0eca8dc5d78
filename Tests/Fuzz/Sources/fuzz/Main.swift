import CFuzz
import Foundation
import TernImages

/// `fuzz TARGET COUNT SEEDS INPUT [NUMBER]`: decodes COUNT mutations of the target's own seeds and of the files in the
/// folder SEEDS. INPUT is where the input at work lies: what is there after a crash is the culprit, behind eight bytes
/// of its length. `fuzz TARGET replay INPUT` decodes that one again.
@main enum Main {
    static func main() throws {
        let words = CommandLine.arguments
        if words.count == 2, words[1] == "list" { return print(Target.all.map(\.name).joined(separator: " ")) }
        guard words.count >= 4, let target = Target.all.first(where: { $0.name == words[1] }) else {
            throw Failure("fuzz TARGET COUNT SEEDS INPUT [NUMBER], or fuzz TARGET replay INPUT, or fuzz list")
        }
        if words[2] == "replay" { return try replay(target, words[3]) }
        guard words.count >= 5, let count = Int(words[2]) else { throw Failure("no count: \(words[2])") }
        guard unsafe cfuzz_open(words[4], 2) else { throw Failure("cannot write \(words[4])") }
        let seed = words.count > 5 ? UInt64(words[5]) ?? 1 : 1
        try fuzz(target, count, try seeds(target, in: words[3]), seed)
        try FileManager.default.removeItem(atPath: words[4])
    }

    private static func fuzz(_ target: Target, _ count: Int, _ seeds: [[UInt8]], _ seed: UInt64) throws {
        print("\(target.name): \(count) inputs of \(seeds.count) seeds, number \(seed)")
        let start = ContinuousClock.now
        var mutator = Mutator(seeds: seeds, numbers: Numbers(state: seed))
        var outcomes: [String: Int] = [:]
        // Of processor time: other processes may hold an input up.
        var slowest: UInt64 = 0
        // The first tenth fills caches and the sanitizer's quarantine; the rest must add nothing.
        var (allocated, resident) = (0, 0)
        for number in 0..<count {
            var bytes = mutator.input()
            if mutator.numbers.below(8) > 0 { target.repair?(&bytes) }
            let choice = mutator.numbers.next()
            let begin = cfuzz_spent()
            unsafe cfuzz_begin(bytes, bytes.count)
            let outcome = target.run(Data(bytes), choice)
            cfuzz_end()
            slowest = max(slowest, cfuzz_spent() - begin)
            let times = outcomes[outcome, default: 0]
            if times == 0 { mutator.keep(bytes) }
            if times > 0 || outcomes.count < 10_000 { outcomes[outcome] = times + 1 }
            if number == count / 10 { (allocated, resident) = (cfuzz_allocated(), cfuzz_resident()) }
        }
        let grown = cfuzz_allocated() - allocated
        let resided = cfuzz_resident() - resident
        let pictures = outcomes.filter { $0.key.hasPrefix("picture") }.values.reduce(0, +)
        print(
            """
            \(target.name): done in \((ContinuousClock.now - start).formatted(.units(allowed: [.seconds]))); \
            \(pictures) pictures, \(outcomes.count) outcomes, slowest \
            \(slowest / 1_000_000) ms, allocated \(grown / 1024) KiB more, resident \
            \(resided / 1024) KiB more
            """)
        // Outcomes and seeds are kept: so much may stay.
        guard grown < 32 << 20, resided < 64 << 20 else { throw Failure("\(target.name): memory grows") }
    }

    /// Small files only: a million of them should take minutes.
    private static func seeds(_ target: Target, in folder: String) throws -> [[UInt8]] {
        var seeds = try encoded().filter { $0.format == target.format }.map { [UInt8]($0.data) }
        for name in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
            let start = Array(bytes.prefix(ImageFormat.sniffedByteCount))
            guard bytes.count <= 4096, unsafe ImageFormat(sniffing: start.span.bytes) == target.format else { continue }
            seeds.append(bytes)
        }
        guard !seeds.isEmpty else { throw Failure("\(target.name): no seed in \(folder)") }
        return seeds
    }

    private static func encoded() throws -> [(format: ImageFormat, data: Data)] {
        let side = 24
        let bytes = (0..<side * side).flatMap { index -> [UInt8] in
            let alpha = index % side * 255 / side
            return [index * 7 % 256, index / side * 10, 128].map { UInt8($0 * alpha / 255) } + [UInt8(alpha)]
        }
        guard let picture = RasterImage(size: PixelSize(width: side, height: side), premultiplied: bytes) else {
            throw Failure("no picture of \(bytes.count) bytes")
        }
        let encodings: [ImageEncoding] = [
            .jpeg(), .jpeg(quality: 30, progressive: true), .png(), .webp(), .losslessWebP,
        ]
        return try encodings.map { ($0.format, try picture.encoded(as: $0)) }
    }

    private static func replay(_ target: Target, _ path: String) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let length = bytes.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
        bytes.removeFirst(8)
        // How it was decoded is not in the file: every way is tried.
        for choice in UInt64(0)..<4 {
            for size in [UInt64(0), 0x0A_0A0A_0A, 0x01_3F3F_3F, 0x02_0120_01] {
                print(target.run(Data(bytes.prefix(length)), choice | size << 8))
            }
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
