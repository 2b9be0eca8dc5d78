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

/// The process that the crash tests of durable transfers kill. It downloads a URL to a file, uploads a file by tus,
/// uploads a file in one request and writes the trace to another file, or runs a queue in a folder:
///
///     DownloadCrashChild URL FILE SHA256 SEGMENTS
///     DownloadCrashChild upload URL FILE
///     DownloadCrashChild put URL FILE TRACE
///     DownloadCrashChild queue URL FOLDER COUNT
///
/// It ends with 0 when everything is there, and with 1 after an error, which it prints.
@main
struct DownloadCrashChild {
    static func main() async {
        let arguments = CommandLine.arguments
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(session: Session(configuration: configuration))
        do {
            switch arguments.dropFirst().first {
            case "upload" where arguments.count == 4:
                _ = try await client.upload(URL(filePath: arguments[3]), resuming: .tus(arguments[2])).value
            case "put" where arguments.count == 5:
                let put = WholeUpload.put(arguments[2])
                let result = try await client.upload(URL(filePath: arguments[3]), retrying: put).value
                let trace = result.trace.map(\.description).joined(separator: "\n")
                try Data(trace.utf8).write(to: URL(filePath: arguments[4]))
            case "queue" where arguments.count == 5:
                guard let count = Int(arguments[4]) else { exit(2) }
                try await QueueChild(server: arguments[2], folder: arguments[3], count: count).run(client.session)
            default:
                guard arguments.count == 5, let segments = Int(arguments[4]) else { exit(2) }
                let digest = arguments[3] == "none" ? nil : FileDigest.sha256(arguments[3])
                let options = DurableDownloadOptions(digest: digest, segments: segments)
                _ = try await client.download(
                    arguments[1], to: URL(filePath: arguments[2]), resuming: .automatically, options: options
                ).value
            }
        } catch {
            print("\(error)")
            exit(1)
        }
    }
}
