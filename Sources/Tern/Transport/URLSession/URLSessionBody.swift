#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
import Foundation

/// The body of one attempt that comes through a pipe. Called on the delegate queue.
protocol URLSessionBody: AnyObject, Sendable {
    /// `ready` is called once, on the delegate queue: when the system's task can be made.
    func begin(_ ready: @escaping @Sendable (URLSessionUpload) -> Void)
    /// The pipe has bytes again, or has ended.
    func pipeIsReady()
    /// The attempt has ended.
    func close()
    /// The stream to be sent, the first time it is asked for: what was read of it cannot be read again.
    func takeStream() -> InputStream?
}

/// What the system's task sends.
enum URLSessionUpload {
    case none
    case whole(Data)
    case stream
    case failed(TransferFailure)
}

/// Waits for the whole body: FoundationNetworking has no stream that is filled from elsewhere, and reads every stream on
/// the queue that serves all transfers.
final class GatheredUpload: URLSessionBody {
    private struct Shared {
        var bytes = Data()
        var ready: (@Sendable (URLSessionUpload) -> Void)?
    }

    private static let readSize = 256 << 10
    /// Bytes that a body may have.
    static let limit = 64 << 20

    private let pipe: UploadPipe
    private let length: Int64?
    private let shared = Lock(Shared())

    init(_ pipe: UploadPipe, length: Int64?) {
        self.pipe = pipe
        self.length = length
    }

    func begin(_ ready: @escaping @Sendable (URLSessionUpload) -> Void) {
        shared.withLock { $0.ready = ready }
        if let length, length > Self.limit {
            end(.failed(Self.tooLarge))
        } else {
            pipeIsReady()
        }
    }

    func pipeIsReady() {
        var buffer = [UInt8](repeating: 0, count: Self.readSize)
        while shared.withLock({ $0.ready != nil }) {
            let (read, producer) = unsafe buffer.withUnsafeMutableBytes { buffer in unsafe pipe.read(into: buffer) }
            unsafe producer?.resume()
            switch read {
            case .bytes(let count):
                let total = shared.withLock { shared in
                    shared.bytes.append(contentsOf: buffer[..<count])
                    return shared.bytes.count
                }
                if total > Self.limit { end(.failed(Self.tooLarge)) }
            case .wait:
                return
            case .end:
                end(.whole(shared.withLock { $0.bytes }))
            case .failed(let failure):
                end(.failed(failure))
            }
        }
    }

    private func end(_ upload: URLSessionUpload) {
        let ready = shared.withLock { shared in
            defer { shared = Shared() }
            return shared.ready
        }
        ready?(upload)
    }

    func close() {
        shared.withLock { $0 = Shared() }
        pipe.close()
    }

    func takeStream() -> InputStream? { nil }

    private static let tooLarge = TransferFailure(
        .unsupported, "URLSession on this platform cannot stream a body: it is collected, up to \(limit) bytes")
}
#endif
