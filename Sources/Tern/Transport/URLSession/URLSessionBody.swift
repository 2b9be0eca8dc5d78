#if TERN_URLSESSION || !os(Linux)
import Foundation
import TernConcurrency

/// A request's body that arrives through a pipe. Called on the delegate queue.
protocol URLSessionBody: AnyObject, Sendable {
    /// Calls `ready` once, on the delegate queue, when the system's task can be created.
    func begin(_ ready: @escaping @Sendable (URLSessionUpload) -> Void)
    /// Called when the pipe has bytes again, or has ended.
    func pipeIsReady()
    /// Called when the attempt has ended.
    func close()
    /// Returns the stream to send, once. Bytes that were read from it cannot be read again.
    func takeStream() -> InputStream?
}

/// The body that the system's task sends.
enum URLSessionUpload {
    case none
    case whole(Data)
    case stream
    /// No body: the messages of a socket follow its handshake.
    case socket
    case failed(FailureCause)
}

/// Collects the whole body. FoundationNetworking has no stream that other code fills, and reads every stream on the
/// queue that serves all attempts.
final class GatheredUpload: URLSessionBody {
    private struct Shared {
        var bytes = Data()
        var ready: (@Sendable (URLSessionUpload) -> Void)?
    }

    private static let readSize = 256 << 10
    /// The maximum number of bytes of a body.
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

    private static let tooLarge = FailureCause(
        .unsupported, "URLSession on this platform cannot stream a body: it is collected, up to \(limit) bytes")
}
#if canImport(Darwin)
import Foundation

/// Sends a body to URLSession as it is produced, through a pair of bound streams. The output end is filled from the
/// pipe whenever it has room.
// `@unchecked`: after `init`, the streams and `waiting` are used only on `queue`, and the input end is not used again
// once it was returned.
final class StreamedUpload: NSObject, URLSessionBody, StreamDelegate, @unchecked Sendable {
    /// The number of bytes between the two ends, and of one read.
    private static let bufferSize = 256 << 10

    private let pipe: UploadPipe
    private let queue = DispatchQueue(label: "tern.urlsession.body")
    private let isTaken = Lock(false)
    private var input: InputStream?
    private var output: OutputStream?
    private var waiting: ArraySlice<UInt8> = []
    private var ready: (@Sendable (URLSessionUpload) -> Void)?

    init(_ pipe: UploadPipe) {
        self.pipe = pipe
        super.init()
        unsafe Stream.getBoundStreams(withBufferSize: Self.bufferSize, inputStream: &input, outputStream: &output)
    }

    func begin(_ ready: @escaping @Sendable (URLSessionUpload) -> Void) {
        self.ready = ready
        ready(.stream)
    }

    /// Opens the output end only when the input end is requested, because a task may never send its body.
    func takeStream() -> InputStream? {
        let isFirst = isTaken.withLock { isTaken in
            defer { isTaken = true }
            return !isTaken
        }
        guard isFirst, let input else { return nil }
        queue.async { [self] in
            guard let output else { return }
            output.delegate = self
            CFWriteStreamSetDispatchQueue(output, queue)
            output.open()
        }
        return input
    }

    func pipeIsReady() {
        queue.async { [self] in fill() }
    }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        switch event {
        case .hasSpaceAvailable: fill()
        // The input end was closed; the system's task reports the reason.
        case .errorOccurred, .endEncountered: finish()
        default: break
        }
    }

    /// Called on `queue`. Writes only into free room, which does not block.
    private func fill() {
        while let output, output.streamStatus == .open || output.streamStatus == .writing, output.hasSpaceAvailable {
            if waiting.isEmpty, !read() { return }
            let count = unsafe waiting.withUnsafeBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return 0 }
                return unsafe output.write(start, maxLength: bytes.count)
            }
            guard count > 0 else { return }
            waiting.removeFirst(count)
        }
    }

    /// Reads from the pipe. Returns whether there are bytes to write.
    private func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
        let (read, producer) = unsafe buffer.withUnsafeMutableBytes { buffer in unsafe pipe.read(into: buffer) }
        unsafe producer?.resume()
        switch read {
        case .bytes(let count):
            waiting = buffer[..<count]
            return true
        case .wait:
            return false
        case .end:
            finish()
            return false
        case .failed(let failure):
            ready?(.failed(failure))
            finish()
            return false
        }
    }

    private func finish() {
        output?.delegate = nil
        output?.close()
        output = nil
        ready = nil
    }

    func close() {
        pipe.close()
        queue.async { [self] in finish() }
    }
}
#endif
#endif
