import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The bounded way from a body that is produced piece by piece (a file, a stream) to the transport that sends it.
package final class UploadPipe: Sendable {
    package typealias Wake = UnsafeContinuation<Void, Never>

    /// What a read gave.
    package enum Read {
        /// So many bytes were copied.
        case bytes(Int)
        /// Nothing now: `TransferCommand.bodyReady` tells when to read again.
        case wait
        case end
        case failed(TransferFailure)
    }

    private enum Ending {
        case open
        case ended
        case failed(TransferFailure)
    }

    /// Bytes that may wait in the pipe before the producer does.
    private let capacity: Int

    /// A file that the transport reads itself, as long as its bytes lie in memory.
    private struct Lent {
        let file: OpenFile
        let end: Int64
        var offset: Int64 = 0

        /// Bytes copied; 0 where the file's bytes have to be pushed from here on.
        mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: end - offset)))
            guard unsafe !part.isEmpty, let count = unsafe file.readInMemory(at: offset, into: part) else { return 0 }
            offset += Int64(count)
            return count
        }
    }

    @safe private struct Shared {
        var chunks: [Data] = []
        var lent: Lent?
        /// How much of a lent file was read.
        var lentCount: Int64 = 0
        var offset = 0
        var bufferedBytes = 0
        var ending = Ending.open
        var isClosed = false
        var isStarved = false
        var producer: Wake?

        mutating func takeProducer(_ capacity: Int) -> Wake? {
            guard isClosed || lent == nil && bufferedBytes < capacity else { return nil }
            defer { unsafe producer = nil }
            return unsafe producer
        }

        mutating func readLent(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            guard let count = unsafe lent?.read(into: buffer) else { return 0 }
            lentCount += Int64(count)
            if count == 0 { lent = nil }
            return count
        }
    }

    private let shared = Lock(Shared())

    package init(capacity: Int = 2 << 20) { self.capacity = capacity }

    // MARK: The producer's side.

    /// Lets the transport read a file from its beginning up to `end`: where its bytes lie in memory they go straight into
    /// the transport's own buffer. Returns how many did: at the first that do not, and at `end`, the rest is to be pushed.
    func lend(_ file: OpenFile, upTo end: Int64, _ wakeTransport: () -> Void) async -> Int64 {
        let isStarved = shared.withLock { shared in
            if !shared.isClosed { shared.lent = Lent(file: file, end: end) }
            defer { shared.isStarved = false }
            return shared.isStarved
        }
        if isStarved { wakeTransport() }
        await waitForRoom()
        return shared.withLock { $0.lentCount }
    }

    /// Waits for room, then adds the bytes. `accepted`: false once nobody will read them. `isStarved`: the transport
    /// stands still for want of bytes and must be told.
    package func push(_ chunk: Data) async -> (accepted: Bool, isStarved: Bool) {
        await waitForRoom()
        return shared.withLock { shared in
            guard !shared.isClosed else { return (false, false) }
            shared.chunks.append(chunk)
            shared.bufferedBytes += chunk.count
            defer { shared.isStarved = false }
            return (true, shared.isStarved)
        }
    }

    /// Ends the body, or fails it. Returns whether the transport stands still and must be told.
    package func end(failure: TransferFailure? = nil) -> Bool {
        shared.withLock { shared in
            shared.ending = failure.map { .failed($0) } ?? .ended
            defer { shared.isStarved = false }
            return shared.isStarved
        }
    }

    private func waitForRoom() async {
        unsafe await withUnsafeContinuation { (producer: Wake) in
            let isReady = shared.withLock { shared in
                if shared.isClosed || shared.lent == nil && shared.bufferedBytes < capacity { return true }
                unsafe shared.producer = producer
                return false
            }
            if isReady { unsafe producer.resume() }
        }
    }

    // MARK: The transport's side.

    /// Copies what is there. The producer to be woken comes back beside it.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> (read: Read, wake: Wake?) {
        unsafe shared.withLock { shared in
            if case .failed(let failure) = shared.ending { return (.failed(failure), nil) }
            var copied = 0
            var finished = 0
            while copied < buffer.count, finished < shared.chunks.count {
                let chunk = shared.chunks[finished]
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
            if case .ended = shared.ending { return (.end, nil) }
            let lent = unsafe shared.readLent(into: buffer)
            if lent > 0 { return (.bytes(lent), nil) }
            shared.isStarved = true
            return unsafe (.wait, shared.takeProducer(capacity))
        }
    }

    /// Nobody reads any more: the producer is released, and what it pushes is refused.
    package func close() {
        let producer = unsafe shared.withLock { shared in
            shared.isClosed = true
            shared.lent = nil
            shared.chunks = []
            shared.bufferedBytes = 0
            return unsafe shared.takeProducer(capacity)
        }
        unsafe producer?.resume()
    }
}
