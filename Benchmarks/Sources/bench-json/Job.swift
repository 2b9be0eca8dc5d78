#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A task of the program, and the text that it works on.
struct Job {
    enum Mode {
        case check
        case decode(warmUp: Int, count: Int)
        case encode(warmUp: Int, count: Int)

        /// Reads `check FILE`, or `decode` or `encode` with `FILE WARM-UP COUNT`.
        init?(_ words: ArraySlice<String>) {
            let numbers = words.dropFirst(2).compactMap { Int($0) }
            switch (words.first, numbers.count) {
            case ("check", 0): self = .check
            case ("decode", 2): self = .decode(warmUp: numbers[0], count: numbers[1])
            case ("encode", 2): self = .encode(warmUp: numbers[0], count: numbers[1])
            default: return nil
            }
        }
    }

    var mode: Mode
    var data: Data

    /// The value or text of the last call is used after the measurement, so that no call is left out.
    func run<Value: Codable>(_ type: Value.Type, with coder: some Coder) throws {
        switch mode {
        case .check:
            print(String(decoding: try coder.encode(coder.decode(type, from: data)), as: UTF8.self))
        case .decode(let warmUp, let count):
            var value = try coder.decode(type, from: data)
            for _ in 0..<warmUp { value = try coder.decode(type, from: data) }
            let start = processorTime()
            for _ in 0..<count { value = try coder.decode(type, from: data) }
            report(processorTime() - start, of: count, bytes: try coder.encode(value).count)
        case .encode(let warmUp, let count):
            let value = try coder.decode(type, from: data)
            var text = try coder.encode(value)
            for _ in 0..<warmUp { text = try coder.encode(value) }
            let start = processorTime()
            for _ in 0..<count { text = try coder.encode(value) }
            report(processorTime() - start, of: count, bytes: text.count)
        }
    }

    private func report(_ seconds: Double, of count: Int, bytes: Int) {
        print("{\"cpu_us\":\(seconds * 1e6 / Double(max(count, 1))),\"bytes\":\(bytes)}")
    }
}

/// The processor time of this process, in seconds.
private func processorTime() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
