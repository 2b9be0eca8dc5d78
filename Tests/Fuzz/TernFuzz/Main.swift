import CTernFuzz
import Foundation

/// The fuzz program. `TernFuzz TARGET COUNT FIXTURES INPUT [NUMBER]` runs a target on COUNT mutations of its seeds. The
/// file INPUT holds the input in use. After a crash it holds the input that caused it, after eight bytes with its
/// length and before eight bytes with the choice. `TernFuzz TARGET replay INPUT` runs that input again. `TernFuzz list`
/// prints the names of the targets.
@main enum Main {
    static func main() async throws {
        let words = CommandLine.arguments
        if words.count == 2, words[1] == "list" { return print(FuzzTarget.all.map(\.name).joined(separator: " ")) }
        guard words.count >= 4, let target = FuzzTarget.all.first(where: { $0.name == words[1] }) else {
            throw Failure("usage: TernFuzz TARGET COUNT FIXTURES INPUT [NUMBER] | TARGET replay INPUT | list")
        }
        if words[2] == "replay" { return try await replay(target, words[3]) }
        guard words.count >= 5, let count = Int(words[2]) else { throw Failure("\(words[2]) is not a count") }
        guard unsafe tern_fuzz_open(words[4], 2) else { throw Failure("cannot write \(words[4])") }
        let seed = words.count > 5 ? UInt64(words[5]) ?? 1 : 1
        let seeds = try target.seeds(words[3])
        guard !seeds.isEmpty else { throw Failure("\(target.name): \(words[3]) holds no seed") }
        try await fuzz(target, count: count, seeds: seeds, number: seed)
        try FileManager.default.removeItem(atPath: words[4])
    }

    private static func fuzz(_ target: FuzzTarget, count: Int, seeds: [[UInt8]], number seed: UInt64) async throws {
        print("\(target.name): \(count) inputs of \(seeds.count) seeds, number \(seed)")
        let start = ContinuousClock.now
        var mutator = Mutator(seeds: seeds, tokens: target.tokens, numbers: Numbers(state: seed))
        var outcomes: [String: Int] = [:]
        // Processor time: other processes can delay an input.
        var slowest: UInt64 = 0
        // The first tenth fills caches and the sanitizer's quarantine; the rest must add nothing.
        var (allocated, resident) = (0, 0)
        for index in 0..<count {
            var bytes = mutator.input()
            if mutator.numbers.below(8) > 0 { target.repair?(&bytes) }
            let choice = mutator.numbers.next()
            let begin = tern_fuzz_spent()
            let kept = bytes + (0..<8).map { UInt8(truncatingIfNeeded: choice >> ($0 * 8)) }
            unsafe tern_fuzz_begin(kept, kept.count)
            let outcome = try await target.run(Data(bytes), choice)
            tern_fuzz_end()
            slowest = max(slowest, tern_fuzz_spent() - begin)
            let times = outcomes[outcome, default: 0]
            if times == 0 { mutator.keep(bytes) }
            if times > 0 || outcomes.count < 10_000 { outcomes[outcome] = times + 1 }
            if index == count / 10 { (allocated, resident) = (tern_fuzz_allocated(), tern_fuzz_resident()) }
        }
        let grown = tern_fuzz_allocated() - allocated
        let resided = tern_fuzz_resident() - resident
        // Outcomes of rejected inputs begin with "rejected".
        let accepted = outcomes.filter { !$0.key.hasPrefix("rejected") }.values.reduce(0, +)
        print(
            """
            \(target.name): done in \((ContinuousClock.now - start).formatted(.units(allowed: [.seconds]))); \
            \(accepted) accepted, \(outcomes.count) outcomes, slowest \(slowest / 1_000_000) ms, \
            allocated \(grown / 1024) KiB more, resident \(resided / 1024) KiB more
            """)
        // Outcomes and seeds are kept, which takes up to this much memory.
        guard grown < 32 << 20, resided < 64 << 20 else { throw Failure("\(target.name): memory grows") }
    }

    private static func replay(_ target: FuzzTarget, _ path: String) async throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        func number(_ part: some Sequence<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        let length = number(bytes.prefix(8).reversed())
        bytes = Array(bytes.dropFirst(8).prefix(Int(clamping: length)))
        let last = number(bytes.suffix(8).reversed())
        bytes.removeLast(min(8, bytes.count))
        // The same choice as before, and then every other kind of choice.
        var choices = [last]
        for choice in UInt64(0)..<4 {
            choices += [UInt64(0), 0x0A_0A0A_0A, 0x01_3F3F_3F, 0x02_0120_01].map { choice | $0 << 8 }
        }
        for choice in choices { print(try await target.run(Data(bytes), choice)) }
    }
}

/// An error of the fuzz program, with its text.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
