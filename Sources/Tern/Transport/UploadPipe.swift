import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A bounded pipe from a body that is produced piece by piece (a file, a stream) to the transport that sends it.
package final class UploadPipe: Sendable {
    package typealias Wake = UnsafeContinuation<Void, Never>

    /// The result of a read.
    package enum Read {
        /// The number of bytes that were copied.
        case bytes(Int)
        /// No bytes yet. The transport reads again after `AttemptCommand.bodyReady`.
        case wait
        case end
        case failed(FailureCause)
    }

    private enum Ending {
        case open
        case ended(trailers: Headers)
        case failed(FailureCause)
    }

    /// The number of bytes in the pipe at which the producer waits.
    private let capacity: Int
    /// Whether the body can have trailers, which need a transport that sends them.
    package let hasTrailers: Bool

    /// A file that the transport reads itself, as long as its bytes are in memory.
    private struct BorrowedFile {
        let file: OpenFile
        let end: Int64
        var offset: Int64 = 0

        /// Returns the number of bytes copied; 0 if the producer must push the rest of the file.
        mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: end - offset)))
            guard unsafe !part.isEmpty, let count = unsafe file.readInMemory(at: offset, into: part) else { return 0 }
            offset += Int64(count)
            return count
        }

        /// The next bytes, if the system can send them out of the file without a wait for the disk.
        func piece(upTo limit: Int) -> FilePiece? {
            let count = file.countInMemory(at: offset, count: min(limit, Int(clamping: end - offset)))
            return count > 0 ? FilePiece(file: file, offset: offset, count: count) : nil
        }
    }

    /// Bytes of a file that the transport sends without copying them.
    struct FilePiece {
        /// Open as long as this value exists.
        let file: OpenFile
        let offset: Int64
        let count: Int
    }

    @safe private struct Shared {
        var chunks: [Data] = []
        var borrowedFile: BorrowedFile?
        /// The number of bytes of borrowed files that were read.
        var borrowedCount: Int64 = 0
        var offset = 0
        var bufferedBytes = 0
        var ending = Ending.open
        var isClosed = false
        var isStarved = false
        /// Whether the transport has asked for more after the last bytes. Keeps its value when the pipe is closed.
        var isDrained = true
        /// Whether the producer waits until the pipe is drained, and not for room.
        var awaitsDrain = false
        var producer: Wake?

        mutating func takeProducer(_ capacity: Int) -> Wake? {
            let isReady = awaitsDrain ? isDrained : borrowedFile == nil && bufferedBytes < capacity
            guard isClosed || isReady else { return nil }
            defer { unsafe producer = nil }
            return unsafe producer
        }

        mutating func readBorrowedFile(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let count = unsafe borrowedFile?.read(into: buffer) else { return 0 }
            borrowedCount += Int64(count)
            if count == 0 { borrowedFile = nil }
            return count
        }
    }

    private let shared = Lock(Shared())

    package init(capacity: Int = 2 << 20, hasTrailers: Bool = false) {
        self.capacity = capacity
        self.hasTrailers = hasTrailers
    }

    // MARK: The producer's side.

    /// Lets the transport read a file from its beginning up to `end`. Bytes that are in memory go directly into the
    /// transport's own buffer. Stops at the first byte that is not, and at `end`. Returns the number of bytes read; the
    /// caller pushes the rest.
    func sendFile(_ file: OpenFile, upTo end: Int64, wakeTransport: () -> Void) async -> Int64 {
        let isStarved = shared.withLock { shared in
            if !shared.isClosed { shared.borrowedFile = BorrowedFile(file: file, end: end) }
            defer { shared.isStarved = false }
            return shared.isStarved
        }
        if isStarved { wakeTransport() }
        await waitForRoom()
        return shared.withLock { $0.borrowedCount }
    }

    /// Whether the connection has taken all bytes.
    package var isEmpty: Bool { shared.withLock { $0.bufferedBytes == 0 } }

    /// Whether the transport has asked for more bytes after the last ones. Keeps its value when the pipe is closed, and
    /// is false then if bytes were pushed later.
    ///
    /// After a switch to another protocol, the transport reads the pipe only when the system has taken all that it read
    /// before: the bytes of a drained pipe leave unless the connection breaks. Over HTTP/2, they have been handed over
    /// to the connection, which outlives the stream.
    package var isDrained: Bool { shared.withLock { $0.isDrained } }

    /// Waits until the pipe is drained. Returns false if it was closed before. Called by the producer, which pushes
    /// nothing meanwhile; bytes that others offer are waited for, too.
    package func drained() async -> Bool {
        while true {
            await waitForDrainOrEnd()
            let end: Bool? = shared.withLock { shared in
                shared.awaitsDrain = false
                return shared.isDrained ? true : shared.isClosed ? false : nil
            }
            if let end { return end }
        }
    }

    private func waitForDrainOrEnd() async {
        unsafe await withUnsafeContinuation { (producer: Wake) in
            let isReady = shared.withLock { shared in
                if shared.isClosed || shared.isDrained { return true }
                shared.awaitsDrain = true
                unsafe shared.producer = producer
                return false
            }
            if isReady { unsafe producer.resume() }
        }
    }

    /// Waits for room, then adds the bytes. `accepted` is false if nothing will read them. `isStarved` is true if the
    /// transport waits for bytes and must be notified.
    package func push(_ chunk: Data) async -> (accepted: Bool, isStarved: Bool) {
        await waitForRoom()
        return shared.withLock { shared in
            shared.isDrained = false
            guard !shared.isClosed else { return (false, false) }
            shared.chunks.append(chunk)
            shared.bufferedBytes += chunk.count
            defer { shared.isStarved = false }
            return (true, shared.isStarved)
        }
    }

    /// Adds the bytes if there is room, without a wait. `hasRoom` is false if there is none and nothing was added.
    /// Otherwise, the result is that of `push(_:)`.
    package func offer(_ chunk: Data) -> (hasRoom: Bool, accepted: Bool, isStarved: Bool) {
        shared.withLock { shared in
            guard shared.isClosed || shared.borrowedFile == nil && shared.bufferedBytes < capacity else {
                return (false, false, false)
            }
            shared.isDrained = false
            guard !shared.isClosed else { return (true, false, false) }
            shared.chunks.append(chunk)
            shared.bufferedBytes += chunk.count
            defer { shared.isStarved = false }
            return (true, true, shared.isStarved)
        }
    }

    /// Ends the body with its trailers, or fails it. Returns whether the transport waits for bytes and must be
    /// notified.
    package func end(_ result: Result<Headers, FailureCause> = .success([:])) -> Bool {
        shared.withLock { shared in
            shared.ending =
                switch result {
                case .success(let trailers): .ended(trailers: trailers)
                case .failure(let failure): .failed(failure)
                }
            defer { shared.isStarved = false }
            return shared.isStarved
        }
    }

    private func waitForRoom() async {
        unsafe await withUnsafeContinuation { (producer: Wake) in
            let isReady = shared.withLock { shared in
                if shared.isClosed || shared.borrowedFile == nil && shared.bufferedBytes < capacity { return true }
                unsafe shared.producer = producer
                return false
            }
            if isReady { unsafe producer.resume() }
        }
    }

    // MARK: The transport's side.

    /// The fields after the body. Read after `Read.end`.
    package var trailers: Headers {
        shared.withLock { if case .ended(let trailers) = $0.ending { trailers } else { [:] } }
    }

    /// The number of bytes from which on a piece is worth a system call of its own. To copy 16 KiB takes about as long.
    private static let largeCount = 16 << 10

    /// Removes and returns the next piece if it is large: the transport sends it from its place, without a copy. Also
    /// returns the producer to wake.
    func takeLarge() -> (piece: Data?, wake: Wake?) {
        unsafe shared.withLock { shared in
            guard let chunk = shared.chunks.first, chunk.count - shared.offset >= Self.largeCount else {
                return (nil, nil)
            }
            if case .failed = shared.ending { return (nil, nil) }
            shared.chunks.removeFirst()
            let piece = chunk.dropFirst(shared.offset)
            shared.offset = 0
            shared.bufferedBytes -= piece.count
            return unsafe (piece, shared.takeProducer(capacity))
        }
    }

    /// Copies the bytes that are available. Also returns the producer to wake.
    ///
    /// - Parameter leavesLarge: Whether a large piece behind others is left for `takeLarge()`.
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, leavesLarge: Bool = false
    ) -> (read: Read, wake: Wake?) {
        unsafe shared.withLock { shared in
            if case .failed(let failure) = shared.ending { return (.failed(failure), nil) }
            var copied = 0
            var finished = 0
            while copied < buffer.count, finished < shared.chunks.count {
                let chunk = shared.chunks[finished]
                if leavesLarge, finished > 0, chunk.count >= Self.largeCount { break }
                let count = min(chunk.count - shared.offset, buffer.count - copied)
                let start = chunk.startIndex + shared.offset
                unsafe chunk.copyBytes(
                    to: UnsafeMutableRawBufferPointer(rebasing: buffer[copied...]), from: start..<(start + count))
                copied += count
                shared.offset += count
                if shared.offset == chunk.count {
                    finished += 1
                    shared.offset = 0
                }
            }
            shared.chunks.removeFirst(finished)
            shared.bufferedBytes -= copied
            if copied > 0 { return unsafe (.bytes(copied), shared.takeProducer(capacity)) }
            if case .ended = shared.ending {
                shared.isDrained = true
                return unsafe (.end, shared.takeProducer(capacity))
            }
            let borrowed = unsafe shared.readBorrowedFile(into: buffer)
            if borrowed > 0 { return (.bytes(borrowed), nil) }
            shared.isStarved = true
            shared.isDrained = true
            return unsafe (.wait, shared.takeProducer(capacity))
        }
    }

    /// Returns whether the body has ended, without trailers, with the bytes that were read last. The transport then
    /// reads no more. Also returns the producer to wake.
    package func takeEnd() -> (isEnd: Bool, wake: Wake?) {
        unsafe shared.withLock { shared in
            guard !hasTrailers, shared.chunks.isEmpty, shared.borrowedFile == nil, case .ended = shared.ending else {
                return (false, nil)
            }
            shared.isDrained = true
            return unsafe (true, shared.takeProducer(capacity))
        }
    }

    /// Returns the next bytes if they lie in a file, all in memory; nil to read them with `read(into:)`.
    ///
    /// - Parameter limit: The maximum number of bytes, at least 1.
    func filePiece(upTo limit: Int) -> FilePiece? {
        shared.withLock { shared in
            guard shared.chunks.isEmpty, case .open = shared.ending else { return nil }
            return shared.borrowedFile?.piece(upTo: limit)
        }
    }

    /// Tells the pipe that the transport has sent this number of bytes of the last piece of the file.
    func sentFilePiece(_ count: Int) {
        shared.withLock { shared in
            shared.borrowedFile?.offset += Int64(count)
            shared.borrowedCount += Int64(count)
        }
    }

    /// Closes the pipe: nothing reads it any more. Releases the producer, whose further bytes are refused.
    package func close() {
        let producer = unsafe shared.withLock { shared in
            shared.isClosed = true
            shared.borrowedFile = nil
            shared.chunks = []
            shared.bufferedBytes = 0
            return unsafe shared.takeProducer(capacity)
        }
        unsafe producer?.resume()
    }
}

/// Feeds the pipe of one attempt in a Swift task of its own, because the response can end the attempt at any time.
final class BodyPump: Sendable {
    // Owned here and cancelled by `stop` at the end of the attempt. It is not awaited, because a sequence that ignores
    // cancellation must not delay the response.
    private let task: Task<Void, Never>
    private let pipe: UploadPipe

    /// - Parameter task: Fills the pipe, and ends it.
    init(_ pipe: UploadPipe, task: Task<Void, Never>) {
        self.pipe = pipe
        self.task = task
    }

    deinit {
        // The end of the attempt was not awaited: a stream was dropped.
        stop()
    }

    /// Closes the pipe and cancels the production of the body.
    func stop() {
        pipe.close()
        task.cancel()
    }
}
