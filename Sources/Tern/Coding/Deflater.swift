import CTernZ

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Compresses one body as a zlib stream. It has one user at a time.
@safe final class Deflater {
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        var description: String { "zlib: error \(code)" }
    }

    private let stream: UnsafeMutablePointer<z_stream>
    private static let bufferSize = 64 << 10
    private var buffer = [UInt8](repeating: 0, count: Deflater.bufferSize)

    init(_ compression: Request.Body.Compression) throws(Failure) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let windowBits: Int32 =
            switch compression {
            case .deflate: 15
            case .gzip: 31
            }
        let code = unsafe tern_deflate_begin(stream, Z_DEFAULT_COMPRESSION, windowBits)
        if code != Z_OK {
            unsafe stream.deallocate()
            throw Failure(code: code)
        }
    }

    deinit {
        unsafe deflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Compresses bytes. `isLast` ends the stream. The result can be empty.
    func compress(_ data: Data, isLast: Bool) throws(Failure) -> Data {
        var result = Data()
        var failure: Failure?
        unsafe data.withUnsafeBytes { input in
            // zlib reads from the pointer and never writes through it.
            unsafe stream.pointee.next_in = UnsafeMutablePointer(
                mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
            unsafe stream.pointee.avail_in = UInt32(input.count)
            var isDone = false
            while !isDone, failure == nil {
                unsafe buffer.withUnsafeMutableBufferPointer { output in
                    unsafe stream.pointee.next_out = output.baseAddress
                    unsafe stream.pointee.avail_out = UInt32(output.count)
                    let code = unsafe deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                    // Z_BUF_ERROR means that there was nothing to do, which is not a failure.
                    if code < 0, code != Z_BUF_ERROR { failure = Failure(code: code) }
                    let count = unsafe output.count - Int(stream.pointee.avail_out)
                    unsafe result.append(contentsOf: UnsafeBufferPointer(rebasing: output[..<count]))
                    isDone = unsafe stream.pointee.avail_out > 0
                }
            }
            unsafe stream.pointee.next_in = nil
        }
        if let failure { throw failure }
        return result
    }

    /// Compresses bytes in memory.
    static func compress(_ data: Data, _ compression: Request.Body.Compression) throws -> Data {
        let deflater = try Deflater(compression)
        var result = Data()
        // zlib counts its input in 32 bits.
        var rest = data
        while rest.count > 1 << 30 {
            result += try deflater.compress(rest.prefix(1 << 30), isLast: false)
            rest = rest.dropFirst(1 << 30)
        }
        return result + (try deflater.compress(rest, isLast: true))
    }

    /// Returns the compressed chunks of a source.
    static func source(_ compression: Request.Body.Compression, of source: ChunkSource) -> ChunkSource {
        var deflater: Deflater?
        var hasEnded = false
        return ChunkSource {
            while !hasEnded {
                let current = try deflater ?? Deflater(compression)
                deflater = current
                let chunk = try await source.next()
                hasEnded = chunk == nil
                let compressed = try current.compress(chunk ?? Data(), isLast: hasEnded)
                if !compressed.isEmpty { return compressed }
            }
            return nil
        }
    }
}
