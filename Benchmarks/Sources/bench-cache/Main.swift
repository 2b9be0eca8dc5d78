#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `bench-cache PART` measures one part of TernCache and prints its section of RESULTS-caches.md; `bench-cache list`
/// names the parts.
@main
struct BenchCache {
    static let parts = ["memory", "disk"]

    static func main() async {
        switch CommandLine.arguments.dropFirst().first {
        case "list": print(parts.joined(separator: "\n"))
        #if canImport(CTernSQLite)
        case "disk": await DiskBenchmark.run()
        case "disk-mixed": await DiskBenchmark.run("disk-mixed")
        case "disk-reads": await DiskBenchmark.run("disk-reads")
        #endif
        case "memory": await MemoryBenchmark.run()
        case "memory-speed": await MemorySpeed.run()
        case "memory-ratio": MemoryRatio.run()
        default:
            print("usage: bench-cache list | \(parts.joined(separator: " | "))")
            exit(64)
        }
    }
}
