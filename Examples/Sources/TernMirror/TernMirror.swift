import Dispatch
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

/// Performs work that Ctrl-C or the cancellation of the caller cancels, and returns when the work has ended. A second
/// Ctrl-C ends the process at once.
func untilInterrupted<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    // First of all: until the source is registered, the signal has no effect. Later, this call would take the signal
    // from the source, which has a handler of its own on Linux.
    signal(SIGINT, SIG_IGN)
    let (registrations, registration) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
        // The work begins when the source receives signals.
        for await _ in registrations {}
        return try await work()
    }
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "interrupt"))
    source.setRegistrationHandler { registration.finish() }
    source.setEventHandler {
        if task.isCancelled { exit(130) }
        task.cancel()
    }
    source.activate()
    defer {
        source.cancel()
        // Ctrl-C has its usual effect again.
        signal(SIGINT, SIG_DFL)
    }
    // The process goes on until the work has closed its files.
    return try await withTaskCancellationHandler {
        try await task.value
    } onCancel: {
        task.cancel()
    }
}

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
            let summary = try await untilInterrupted {
                try await IndexMirror(of: url, in: URL(filePath: arguments[2])).run { print($0) }
            }
            print("\(summary.received) received, \(summary.unchanged) unchanged, \(summary.failed) failed")
            exit(summary.failed == 0 ? 0 : 1)
        } catch {
            let isStopped = error is CancellationError || (error as? NetworkError)?.isCancelled == true
            print(isStopped ? "stopped; run the same command to continue" : "tern-mirror: \(error)")
            exit(isStopped ? 130 : 1)
        }
    }
}
