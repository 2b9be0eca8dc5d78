import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
#if os(Linux)
import CTernFiles
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif
#endif

/// A pipe through which the system moves the body of a response from its socket to a file, so that no byte of it is
/// copied through the memory of the process. It carries one body, and is closed with the last reference.
///
/// The transport lends the socket to the download whenever bytes have arrived. The download empties it on the thread of
/// the files, because the event loop must not wait for a disk, and gives it back. The pipe is empty between.
package final class BodyPipe: Sendable {
    /// The limits of a pipe, in bytes.
    package struct Limits: Sendable {
        /// The size of the pipe. It is larger than `portion`, because each piece from a socket occupies a page, which
        /// it seldom fills.
        let capacity: Int
        /// The most bytes that are moved into the pipe at a time, and that a killed process loses.
        let portion: Int
        /// The receive window of the socket, set when it is first lent; 0 to let the system derive it from the sizes of
        /// the reads.
        let window: Int

        package init(capacity: Int, portion: Int, window: Int = 0) {
            self.capacity = capacity
            self.portion = portion
            self.window = window
        }

        /// The limits of an ordinary download. Linux allows a process without privileges no larger pipe.
        package static let usual = Limits(capacity: 1 << 20, portion: 1 << 20)
    }

    /// The bytes that were moved while the socket was lent.
    package struct Moved: Sendable {
        /// The number of bytes in the file.
        package var count: Int64 = 0
        /// The reason why a byte could not be written; nil for none.
        package var failure: FileFailure?
        /// The error number with which the socket failed; 0 for none.
        var code: Int32 = 0
        /// Whether no more bytes can be moved: the connection has ended, or the system cannot move bytes out of this
        /// socket. The transport reads on.
        var cannotMoveMore = false

        package init(failure: FileFailure? = nil) { self.failure = failure }
    }

    private struct State {
        /// A descriptor of the socket, so that its number is not used again while the download has it; −1 for none.
        var socket: Int32 = -1
        var isInUse = false
        /// Whether the body has ended.
        var hasEnded = false

        /// Returns the descriptor to close: nobody uses it any more.
        mutating func takeUnused() -> Int32? {
            guard hasEnded, !isInUse, socket >= 0 else { return nil }
            defer { socket = -1 }
            return socket
        }
    }

    /// The most bytes that are moved before the files of other downloads are served.
    private static let mostBytesPerTurn: Int64 = 4 << 20
    /// The most pipes that are open at a time. Linux limits the memory of all pipes of a user to 64 MiB: beyond it,
    /// even the pipes of other programs become small.
    private static let mostOpen = 32
    private static let openCount = Atomic<Int>(0)

    private let limits: Limits
    private let readEnd: Int32
    private let writeEnd: Int32
    private let state = Lock(State())
    private let isStopped = Atomic<Bool>(false)

    /// Opens a pipe. Returns nil if too many are open, or the system has no room for it; it has none outside Linux.
    package init?(_ limits: Limits = .usual) {
        guard Self.openCount.wrappingAdd(1, ordering: .relaxed).newValue <= Self.mostOpen,
            // The system can forbid the larger size (`fs.pipe-max-size`).
            let (readEnd, writeEnd) = Self.open(limits.capacity) ?? Self.open(limits.portion)
        else {
            Self.openCount.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        self.limits = limits
        self.readEnd = readEnd
        self.writeEnd = writeEnd
    }

    deinit {
        _ = FileCall.close(readEnd)
        _ = FileCall.close(writeEnd)
        Self.openCount.wrappingSubtract(1, ordering: .relaxed)
        let socket = state.withLock { $0.socket }
        if socket >= 0 { _ = FileCall.close(socket) }
    }

    // MARK: The transport's side

    /// Duplicates the descriptor of the body's socket, so that its number stays in use while the download moves bytes.
    /// Returns false if no descriptor is free.
    func holdSocket(_ socket: Int32) -> Bool {
        if state.withLock({ $0.socket }) >= 0 { return true }
        let copy = Self.duplicate(socket)
        if copy >= 0, limits.window > 0 { Self.widen(socket, to: limits.window) }
        state.withLock { $0.socket = copy }
        return copy >= 0
    }

    /// Pauses or resumes the moving of bytes.
    func setStopped(_ stopped: Bool) { isStopped.store(stopped, ordering: .relaxed) }

    /// Releases the socket at the end of the attempt. If the download still uses it, the attempt was given up: the
    /// socket is shut down, so that the peer sees the end at once.
    func releaseSocket() {
        setStopped(true)
        let unused = state.withLock { state in
            state.hasEnded = true
            if state.isInUse { Self.endBoth(state.socket) }
            return state.takeUnused()
        }
        if let unused { _ = FileCall.close(unused) }
    }

    // MARK: The download's side

    /// Returns the socket, which stays open until `endUse()`; nil after the end of the attempt.
    private func use() -> Int32? {
        state.withLock { state in
            guard state.socket >= 0, !state.hasEnded else { return nil }
            state.isInUse = true
            return state.socket
        }
    }

    /// Ends the use of the socket, and closes it if it was released meanwhile.
    private func endUse() {
        let unused = state.withLock { state in
            state.isInUse = false
            return state.takeUnused()
        }
        if let unused { _ = FileCall.close(unused) }
    }

    #if os(Linux)
    private static func open(_ capacity: Int) -> (readEnd: Int32, writeEnd: Int32)? {
        var (readEnd, writeEnd): (Int32, Int32) = (-1, -1)
        return unsafe tern_open_pipe(&readEnd, &writeEnd, Int32(clamping: capacity)) ? (readEnd, writeEnd) : nil
    }

    /// Enlarges the receive window of a socket. SO_RCVLOWAT makes Linux enlarge the buffer, and is then set back to 1.
    /// SO_RCVBUF would be limited by `net.core.rmem_max`, and would end the automatic adjustment.
    private static func widen(_ socket: Int32, to count: Int) {
        for bytes in [Int32(clamping: count), 1] {
            _ = unsafe withUnsafePointer(to: bytes) { bytes in
                unsafe setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, bytes, socklen_t(MemoryLayout<Int32>.size))
            }
        }
    }

    private static func duplicate(_ socket: Int32) -> Int32 { fcntl(socket, F_DUPFD_CLOEXEC, 0) }

    /// Ends both directions of a socket. One that the peer has ended already needs nothing.
    private static func endBoth(_ socket: Int32) { _ = shutdown(socket, Int32(SHUT_RDWR)) }

    /// Moves bytes of the body that have arrived to a file, without waiting for more.
    ///
    /// - Parameters:
    ///   - limit: The number of missing bytes.
    ///   - write: Moves this number of bytes, which are in the pipe, to the file.
    package func move(upTo limit: Int64, _ write: (Int) throws(FileFailure) -> Void) -> Moved {
        var moved = Moved()
        guard let socket = use() else { return moved }
        defer { endUse() }
        let limit = min(limit, Self.mostBytesPerTurn)
        while moved.count < limit, !isStopped.load(ordering: .relaxed) {
            let count = tern_move_bytes(socket, writeEnd, min(limits.portion, Int(limit - moved.count)))
            if count == 0 { moved.cannotMoveMore = true }
            if count < 0 {
                switch errno {
                case EINTR: continue
                case EAGAIN: break
                // The process may not move bytes, or not out of this socket.
                case EINVAL, ENOSYS, EPERM, EOPNOTSUPP: moved.cannotMoveMore = true
                default: moved.code = errno
                }
            }
            if count <= 0 { break }
            do throws(FileFailure) {
                try write(Int(count))
            } catch {
                moved.failure = error
                break
            }
            moved.count += count
        }
        return moved
    }

    /// Moves bytes that are in the pipe to the current position of a file. Returns false, and has moved none, if the
    /// system cannot move bytes to that file.
    func empty(_ count: Int, to descriptor: Int32) throws(FileFailure) -> Bool {
        var rest = count
        while rest > 0 {
            let moved = tern_move_bytes(readEnd, descriptor, rest)
            if moved > 0 {
                rest -= Int(moved)
            } else if moved == 0 || errno != EINTR {
                if moved < 0, errno == EINVAL, rest == count { return false }
                throw FileFailure("write", "", code: moved < 0 ? errno : EIO)
            }
        }
        return true
    }

    /// Takes bytes that are in the pipe.
    package func read(_ count: Int) throws(FileFailure) -> Data {
        var bytes = Data(count: count)
        var filled = 0
        while filled < count {
            let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                return unsafe systemRead(readEnd, into: rest)
            }
            if got > 0 {
                filled += got
            } else if got == 0 || errno != EINTR {
                throw FileFailure("read", "the pipe of the download", code: got < 0 ? errno : EIO)
            }
        }
        return bytes
    }
    #else
    private static func open(_ capacity: Int) -> (readEnd: Int32, writeEnd: Int32)? { nil }

    private static func duplicate(_ socket: Int32) -> Int32 { -1 }

    private static func widen(_ socket: Int32, to count: Int) {}

    private static func endBoth(_ socket: Int32) {}

    package func move(upTo limit: Int64, _ write: (Int) throws(FileFailure) -> Void) -> Moved { Moved() }

    func empty(_ count: Int, to descriptor: Int32) throws(FileFailure) -> Bool { false }

    package func read(_ count: Int) throws(FileFailure) -> Data { Data() }
    #endif
}

#if os(Linux)
private func systemRead(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    unsafe read(descriptor, buffer.baseAddress, buffer.count)
}
#endif
