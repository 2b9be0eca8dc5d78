import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tern-mirror URL FOLDER`: copies the files below a page of nginx's autoindex, and continues where an earlier process
/// ended.
@main
struct TernMirror {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[1]) else {
            print("usage: tern-mirror URL FOLDER")
            exit(64)
        }
        do {
            let summary = try await IndexMirror(of: url, in: URL(filePath: arguments[2])).run { print($0) }
            print("\(summary.received) received, \(summary.unchanged) unchanged, \(summary.failed) failed")
            exit(summary.failed == 0 ? 0 : 1)
        } catch {
            print("tern-mirror: \(error)")
            exit(1)
        }
    }
}
