import TernConcurrency

#if canImport(Darwin)
import Foundation

/// Gives a body to URLSession as it comes: a pair of streams, bound to each other, whose one end is filled from the pipe
/// whenever it has room.
// Sendable by hand: the streams and `waiting` are touched on `queue` alone, after `init`; the input end is not touched
// again once it was given away.
final class StreamedUpload: NSObject, URLSessionBody, StreamDelegate, @unchecked Sendable {
    /// Bytes between the two ends, and of one read.
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

    /// The output end opens when the input end is wanted, not before: a task may never come to send.
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
        // The reading end has gone: the system's task tells why.
        case .errorOccurred, .endEncountered: finish()
        default: break
        }
    }

    /// On `queue`. Writes only into free room, which does not block.
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

    /// Whether there is something to write.
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
