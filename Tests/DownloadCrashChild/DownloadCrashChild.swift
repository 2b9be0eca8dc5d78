import Tern
import TernTransfers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The process that the crash test of durable downloads kills. It downloads a URL to a file:
///
///     DownloadCrashChild URL FILE SHA256 SEGMENTS
///
/// It ends with 0 when the file has its name, and with 1 after an error, which it prints.
@main
struct DownloadCrashChild {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let segments = Int(arguments[4]) else { exit(2) }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(session: Session(configuration: configuration))
        let options = DurableDownloadOptions(digest: .sha256(arguments[3]), segments: segments)
        let task = client.download(
            arguments[1], to: URL(filePath: arguments[2]), resuming: .automatically, options: options)
        do {
            _ = try await task.value
        } catch {
            print("\(error)")
            exit(1)
        }
    }
}
