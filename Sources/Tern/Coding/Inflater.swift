import CTernZ

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decompresses bytes in memory that are one zlib stream or one member of gzip, whole. For bodies of responses, whose
/// servers write less strictly, see `ContentDecoder`.
enum Inflater {
    private static let bufferSize = 64 << 10

    /// Returns the content of the bytes, which has at most `limit` bytes.
    static func decompress(
        _ bytes: Data, _ compression: Request.Body.Compression, upTo limit: Int
    ) throws(FailureCause) -> Data {
        // zlib counts its input in 32 bits.
        guard let inputCount = UInt32(exactly: bytes.count) else {
            throw FailureCause(.tooLarge, "\(bytes.count) bytes are more than 4 GiB")
        }
        var stream = unsafe z_stream()
        let windowBits: Int32 =
            switch compression {
            case .deflate: 15
            case .gzip: 31
            }
        guard unsafe tern_inflate_begin(&stream, windowBits) == Z_OK else {
            throw FailureCause(.malformedResponse, "zlib has no memory to decompress \(bytes.count) bytes")
        }
        defer { unsafe inflateEnd(&stream) }
        var content = Data()
        var code = Z_OK
        unsafe bytes.withUnsafeBytes { input in
            // zlib reads from the pointer and never writes through it.
            unsafe stream.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            unsafe stream.avail_in = inputCount
            var buffer = [UInt8](repeating: 0, count: min(bufferSize, max(4 << 10, input.count * 4)))
            var isFull = true
            while isFull, code == Z_OK, content.count <= limit {
                unsafe buffer.withUnsafeMutableBufferPointer { output in
                    unsafe stream.next_out = output.baseAddress
                    unsafe stream.avail_out = UInt32(output.count)
                    code = unsafe inflate(&stream, Z_NO_FLUSH)
                    let made = unsafe output.count - Int(stream.avail_out)
                    unsafe content.append(contentsOf: UnsafeBufferPointer(rebasing: output[..<made]))
                    isFull = made == output.count
                }
            }
            // There was nothing to do, which is no failure.
            if code == Z_BUF_ERROR { code = Z_OK }
            unsafe stream.next_in = nil
        }
        let unread = unsafe Int(stream.avail_in)
        if content.count > limit {
            throw FailureCause(.tooLarge, "\(bytes.count) bytes decompress to more than \(limit) bytes")
        }
        guard code == Z_STREAM_END else {
            let isShort = code == Z_OK
            let reason = isShort ? "end before their content does" : "are not in the \(compression.rawValue) format"
            throw FailureCause(isShort ? .truncatedBody : .malformedResponse, "\(bytes.count) bytes \(reason)")
        }
        if unread > 0 {
            let reason = "\(unread) of \(bytes.count) bytes follow the end of the \(compression.rawValue) content"
            throw FailureCause(.malformedResponse, reason)
        }
        return content
    }
}
