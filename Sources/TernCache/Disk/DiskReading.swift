#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What came of reading an entry.
enum DiskReading: Sendable {
    case found(DiskCache.Entry)
    /// The entry is not there any more: it was removed or replaced meanwhile, or its file is missing.
    case gone
    /// The bytes are not those that were written.
    case damaged
    /// The entry is of another key with the same hash.
    case otherKey
    case failed(DiskCacheError)
}

/// An open value file, its trailer read and its key compared.
struct DiskValueFile {
    let descriptor: Int32
    let trailer: DiskTrailer

    /// What is made of an open file: file, path, expiry, and the calls to use.
    typealias Reader = @Sendable (DiskValueFile, String, Int64, any DiskFileSystem) -> DiskReading

    enum Opening {
        case open(DiskValueFile)
        case not(DiskReading)
    }

    static func open(
        _ path: String, _ location: DiskIndex.Location, key: DiskKey, _ files: any DiskFileSystem
    ) -> Opening {
        let descriptor: Int32
        do throws(DiskCacheError) {
            descriptor = try files.open(path)
        } catch {
            return .not(error.isAbsence ? .gone : .failed(error))
        }
        do throws(DiskCacheError) {
            var bytes = Data(count: location.trailer)
            let result = unsafe bytes.withUnsafeMutableBytes { buffer -> Result<Int, DiskCacheError> in
                do throws(DiskCacheError) {
                    return .success(unsafe try files.read(descriptor, into: buffer, at: location.size, path))
                } catch {
                    return .failure(error)
                }
            }
            guard try result.get() == location.trailer, let trailer = DiskTrailer(bytes), trailer.size == location.size
            else {
                files.close(descriptor)
                return .not(.damaged)
            }
            guard trailer.key == key.bytes else {
                files.close(descriptor)
                return .not(.otherKey)
            }
            return .open(DiskValueFile(descriptor: descriptor, trailer: trailer))
        } catch {
            files.close(descriptor)
            return .not(.failed(error))
        }
    }

    /// The value in memory of its own, verified piece by piece while a piece is in the processor's cache.
    func read(_ path: String, expires: Int64, _ files: any DiskFileSystem) -> DiskReading {
        let size = trailer.size
        var checksum = DiskChecksum()
        var failure: DiskReading?
        let value = unsafe DiskSlabs.shared.data(size) { memory in
            var done = 0
            while done < size, failure == nil {
                let end = min(done + Self.piece, size)
                let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[done..<end])
                do throws(DiskCacheError) {
                    if unsafe try files.read(descriptor, into: piece, at: done, path) < piece.count {
                        failure = .damaged
                    }
                } catch {
                    failure = .failed(error)
                }
                unsafe checksum.update(UnsafeRawBufferPointer(piece))
                done = end
            }
        }
        guard let value else { return .failed(.system("memory for", path, code: ENOMEM)) }
        if let failure { return failure }
        guard checksum.value == trailer.checksum else { return .damaged }
        return .found(entry(value, expires: expires))
    }

    func entry(_ value: Data, expires: Int64) -> DiskCache.Entry {
        DiskCache.Entry(
            value: value, metadata: trailer.metadata, created: Date(milliseconds: trailer.created),
            expires: expires == .max ? nil : Date(milliseconds: expires))
    }

    private static let piece = 128 << 10
}
