import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Counts the bytes of data tasks and throws them away.
final class DiscardDelegate: NSObject, URLSessionDataDelegate {
    private struct Running {
        var bytes = 0
        var continuation: CheckedContinuation<Int, any Error>?
    }

    private let running = Mutex<[Int: Running]>([:])

    /// Runs the task and returns the size of its body in bytes.
    func count(_ task: URLSessionDataTask) async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            running.withLock { $0[task.taskIdentifier] = Running(continuation: continuation) }
            task.resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        running.withLock { $0[dataTask.taskIdentifier, default: Running()].bytes += data.count }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let ended = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error {
            ended.continuation?.resume(throwing: error)
        } else if (task.response as? HTTPURLResponse)?.statusCode != 200 {
            ended.continuation?.resume(throwing: URLError(.badServerResponse))
        } else {
            ended.continuation?.resume(returning: ended.bytes)
        }
    }
}
