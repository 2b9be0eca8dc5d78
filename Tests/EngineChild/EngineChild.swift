import Synchronization
import Tern

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

/// The process of tests about events that would end a whole process. It uploads a file a number of times, several at a
/// time:
///
///     EngineChild upload URL FILE COUNT
///
/// A signal that the program does not handle ends it. Otherwise it prints the number of failed uploads, and ends with
/// 0.
@main
struct EngineChild {
    /// The number of uploads at a time.
    private static let width = 4

    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, arguments[1] == "upload", let count = Int(arguments[4]) else { exit(2) }
        // The parent can have ignored the signal, which a child inherits.
        signal(SIGPIPE, SIG_DFL)
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(session: Session(configuration: configuration))
        let (url, file) = (arguments[2], URL(filePath: arguments[3]))
        let uploads = Uploads(client: client, url: url, file: file, count: count)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<width { group.addTask { await uploads.run() } }
        }
        print(uploads.failures.load(ordering: .relaxed))
        exit(0)
    }
}

/// The uploads that several tasks share.
private final class Uploads: Sendable {
    let failures = Atomic<Int>(0)
    private let started = Atomic<Int>(0)
    private let client: Client
    private let url: String
    private let file: URL
    private let count: Int

    init(client: Client, url: String, file: URL, count: Int) {
        self.client = client
        self.url = url
        self.file = file
        self.count = count
    }

    /// Uploads, one time after the other, until all uploads have begun.
    func run() async {
        while started.add(1, ordering: .relaxed).newValue <= count {
            do {
                _ = try await client.upload(url, file: file).value
            } catch {
                failures.add(1, ordering: .relaxed)
            }
        }
    }
}
