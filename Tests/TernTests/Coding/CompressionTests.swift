import Foundation
import Tern
import Testing

/// Checks the compression of bytes in memory by `Request.Body.Compression`.
@Suite("Compression of bytes in memory")
struct CompressionTests {
    private static let formats: [Request.Body.Compression] = [.gzip, .deflate]
    private static let text = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5) })

    private func error(_ body: () throws(NetworkError) -> Data) -> NetworkError.Kind? {
        do throws(NetworkError) {
            _ = try body()
            return nil
        } catch {
            return error.kind
        }
    }

    @Test(arguments: formats, [0, 1, 4_095, 4_096, 20_000])
    func bytesComeBack(format: Request.Body.Compression, count: Int) throws {
        let bytes = Self.text.prefix(count)
        let compressed = try format.compress(bytes)
        #expect(try format.decompress(compressed, upTo: count) == bytes)
        // A slice does not begin at 0.
        let slice = (Data([1, 2, 3]) + compressed).dropFirst(3)
        #expect(try format.decompress(slice, upTo: count) == bytes)
    }

    @Test(arguments: formats) func aLongerContentIsRefused(format: Request.Body.Compression) throws {
        let compressed = try format.compress(Data(count: 10 << 20))
        #expect(compressed.count < 20_000)
        #expect(
            error { () throws(NetworkError) in try format.decompress(compressed, upTo: (10 << 20) - 1) } == .tooLarge)
        #expect(error { () throws(NetworkError) in try format.decompress(compressed, upTo: 0) } == .tooLarge)
        #expect(try format.decompress(compressed, upTo: 10 << 20).count == 10 << 20)
    }

    @Test(arguments: formats) func shortBytesAreRefused(format: Request.Body.Compression) throws {
        let compressed = try format.compress(Self.text.prefix(300))
        for count in 0..<compressed.count {
            let kind = error { () throws(NetworkError) in try format.decompress(compressed.prefix(count), upTo: 300) }
            #expect(kind == .truncatedBody, "\(count) of \(compressed.count)")
        }
    }

    @Test(arguments: formats) func otherBytesAreRefused(format: Request.Body.Compression) throws {
        let compressed = try format.compress(Self.text.prefix(300))
        let other: Request.Body.Compression = format == .gzip ? .deflate : .gzip
        for bytes in [compressed + Data([0]), try other.compress(Self.text), Data("no format at all".utf8)] {
            #expect(
                error { () throws(NetworkError) in try format.decompress(bytes, upTo: 1 << 20) } == .malformedResponse)
        }
    }

    @Test(arguments: formats) func damageIsNoContent(format: Request.Body.Compression) throws {
        let bytes = Self.text.prefix(300)
        let compressed = try format.compress(bytes)
        var refused = 0
        for index in compressed.indices {
            var damaged = compressed
            damaged[index] ^= 0x10
            // `try?`: the header of gzip has bytes without meaning here, and all others are checked.
            if let content = try? format.decompress(damaged, upTo: 1 << 20) {
                #expect(content == bytes, "\(index)")
            } else {
                refused += 1
            }
        }
        #expect(refused > compressed.count - 10)
    }
}
