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

/// The process that the crash tests of durable transfers kill. It downloads a URL to a file, or uploads a file by tus:
///
///     DownloadCrashChild URL FILE SHA256 SEGMENTS
///     DownloadCrashChild upload URL FILE
///
/// It ends with 0 when the file is there, and with 1 after an error, which it prints.
@main
struct DownloadCrashChild {
    static func main() async {
        let arguments = CommandLine.arguments
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(session: Session(configuration: configuration))
        if arguments.count == 4 {
            do {
                _ = try await client.upload(URL(filePath: arguments[3]), resuming: .tus(arguments[2])).value
            } catch {
                print("\(error)")
                exit(1)
            }
            return
        }
        guard arguments.count == 5, let segments = Int(arguments[4]) else { exit(2) }
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
