#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An open value file, its trailer read and its key compared.
struct DiskValueFile {
    let descriptor: Int32
    let trailer: DiskTrailer

    private enum Opening {
        case open(DiskValueFile)
        case not(DiskReading)
    }

    /// Opens the file, gives it to `body`, and closes it. May wait for the disk.
    static func withOpen(
        _ path: String, _ location: DiskIndex.Location, key: DiskKey, _ files: any DiskFileSystem,
        _ body: (DiskValueFile) -> DiskReading
    ) -> DiskReading {
        switch open(path, location, key: key, files) {
        case .not(let reading): return reading
        case .open(let file):
            defer { files.close(file.descriptor) }
            return body(file)
        }
    }

    private static func open(
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

    func entry(_ value: Data, _ location: DiskIndex.Location) -> DiskCache.Entry { trailer.entry(value, location) }
}

extension DiskTrailer {
    func entry(_ value: Data, _ location: DiskIndex.Location) -> DiskCache.Entry {
        let expires = location.expires
        return DiskCache.Entry(
            value: value, metadata: metadata, created: Date(milliseconds: created),
            expires: expires == .max ? nil : Date(milliseconds: expires))
    }
}
