import CTernZ

/// Inflates the messages of one connection, piece by piece (RFC 7692 §7.2.2). Only one thread at a time uses it.
///
/// The output goes to the caller in portions, so that a limit is found before the memory is used.
@safe package final class MessageInflater {
    private static let portion = 32 << 10

    private let stream: UnsafeMutablePointer<z_stream>
    private let buffer: UnsafeMutableRawBufferPointer
    /// The end of each message, which the sender has removed (RFC 7692 §7.2.2).
    private let tail: UnsafeMutableRawBufferPointer
    /// Whether each message begins with an empty window.
    private let resets: Bool
    /// Whether the message has no bytes yet, or ends with a final block: no block is to be completed.
    private var isBetweenBlocks = true

    /// Creates an inflater. Returns nil if memory is short.
    ///
    /// - Parameters:
    ///   - windowBits: The base-2 logarithm of the server's window, from 8 to 15.
    ///   - resets: Whether the server begins each message with an empty window.
    package init?(windowBits: Int, resets: Bool) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        unsafe buffer = .allocate(byteCount: Self.portion, alignment: 16)
        unsafe tail = .allocate(byteCount: 4, alignment: 4)
        unsafe tail.storeBytes(of: UInt32(0x0000_FFFF).bigEndian, as: UInt32.self)
        self.resets = resets
        if unsafe tern_inflate_begin(stream, Int32(-windowBits)) != Z_OK { return nil }
    }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
        unsafe buffer.deallocate()
        unsafe tail.deallocate()
    }

    /// Inflates bytes of a message, and passes the output to `receive` in portions.
    ///
    /// - Throws: A failure with the code 1007 for bytes that are not DEFLATE, and the error of `receive`.
    package func inflate(
        _ bytes: UnsafeRawBufferPointer, _ receive: (UnsafeRawBufferPointer) throws(ProtocolFailure) -> Void
    ) throws(ProtocolFailure) {
        // zlib reads from the pointer and never writes through it.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(
            mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
        // A frame's piece is shorter than 4 GiB: it is a part of a chunk of the transport.
        unsafe stream.pointee.avail_in = UInt32(bytes.count)
        defer { unsafe stream.pointee.next_in = nil }
        if unsafe !bytes.isEmpty { isBetweenBlocks = false }
        while true {
            unsafe stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_out = UInt32(buffer.count)
            let code = unsafe CTernZ.inflate(stream, Z_SYNC_FLUSH)
            let count = unsafe buffer.count - Int(stream.pointee.avail_out)
            if count > 0 { try unsafe receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            switch code {
            case Z_OK:
                if unsafe stream.pointee.avail_in == 0, unsafe stream.pointee.avail_out > 0 { return }
            case Z_BUF_ERROR: return
            case Z_STREAM_END:
                // A final block: another one can follow, with the same window (RFC 7692 §7.2.3.4).
                unsafe inflateResetKeep(stream)
                if unsafe stream.pointee.avail_in == 0 {
                    isBetweenBlocks = true
                    return
                }
            default:
                throw Self.notDeflate
            }
        }
    }

    /// Ends a message, whose output was passed on.
    ///
    /// - Throws: A failure with the code 1007 for a message that ends within a block.
    package func end() throws(ProtocolFailure) {
        // An empty message, and one with a final block at its end, need no end. Some senders leave it away completely.
        if !isBetweenBlocks {
            // The end has no output. It has some only if it becomes the last bytes of a stored block that is not whole.
            try unsafe inflate(UnsafeRawBufferPointer(tail)) { _ throws(ProtocolFailure) in throw Self.notDeflate }
            // zlib's state: 128 between two blocks, the low bits for bits that are left over. The window would no
            // longer be that of the server otherwise, and the next message would be another one.
            guard unsafe stream.pointee.data_type & 0xBF == 0x80 else { throw Self.notDeflate }
            isBetweenBlocks = true
        }
        if resets { unsafe inflateReset(stream) }
    }

    private static var notDeflate: ProtocolFailure {
        ProtocolFailure(.invalidPayload, "a message cannot be inflated (RFC 7692 §7.2.2)")
    }
}

/// Deflates the messages of one connection (RFC 7692 §7.2.1). Only one thread at a time uses it.
@safe package final class MessageDeflater {
    private let stream: UnsafeMutablePointer<z_stream>
    private let resets: Bool

    /// Creates a deflater. Returns nil if memory is short, and for a window that zlib cannot compress with.
    ///
    /// - Parameters:
    ///   - windowBits: The base-2 logarithm of the window, from 9 to 15.
    ///   - resets: Whether each message begins with an empty window.
    package init?(windowBits: Int, level: Int, resets: Bool) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        self.resets = resets
        // A stream that was not begun is released like any other.
        guard windowBits > 8, unsafe tern_deflate_begin(stream, Int32(level), Int32(-windowBits)) == Z_OK else {
            return nil
        }
    }

    deinit {
        unsafe deflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Returns the compressed form of a message, without the four bytes at its end (RFC 7692 §7.2.1).
    package func deflate(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count / 2 + 64)
        var rest = unsafe bytes
        repeat {
            // zlib counts its input in 32 bits.
            let piece = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
            unsafe rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
            unsafe deflate(piece, flush: rest.isEmpty ? Z_SYNC_FLUSH : Z_NO_FLUSH, into: &result)
        } while unsafe !rest.isEmpty
        if result.suffix(4) == [0, 0, 0xFF, 0xFF] { result.removeLast(4) }
        // An empty message is one empty block (RFC 7692 §7.2.3.6).
        if result.isEmpty { result = [0] }
        if resets { unsafe deflateReset(stream) }
        return result
    }

    private func deflate(_ piece: UnsafeRawBufferPointer, flush: Int32, into result: inout [UInt8]) {
        unsafe stream.pointee.next_in = UnsafeMutablePointer(
            mutating: piece.baseAddress?.assumingMemoryBound(to: UInt8.self))
        unsafe stream.pointee.avail_in = UInt32(piece.count)
        var isDone = false
        while !isDone {
            let start = result.count
            result.append(contentsOf: repeatElement(0, count: max(256, piece.count / 2)))
            unsafe result.withUnsafeMutableBytes { output in
                let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[start...])
                unsafe stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_out = UInt32(clamping: room.count)
                _ = unsafe CTernZ.deflate(stream, flush)
                isDone = unsafe stream.pointee.avail_out > 0
            }
            let unused = unsafe Int(stream.pointee.avail_out)
            result.removeLast(unused)
        }
        unsafe stream.pointee.next_in = nil
    }
}
