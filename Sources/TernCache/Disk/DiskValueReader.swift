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

/// How a value file is read: at once and by the caller, if the system has it all in memory, else on a thread that may
/// wait for the disk. Going to that thread and back costs more than reading 20 KB.
struct DiskValueReader: Sendable {
    typealias Body<Reading> = @Sendable (String, DiskIndex.Location, DiskKey, any DiskFileSystem) -> Reading

    /// Nil if the disk would have to be waited for.
    let atOnce: Body<DiskReading?>
    let waiting: Body<DiskReading>

    /// Into memory of its own.
    static let copying = DiskValueReader { path, location, key, files in
        // Beyond this the way to a thread is little, and the caller's thread is not ours to keep.
        guard location.size <= 1 << 20, let descriptor = files.openAtOnce(path) else { return nil }
        defer { files.close(descriptor) }
        return unsafe read(path, location, key) { buffer, offset in
            unsafe files.readAtOnce(descriptor, into: buffer, at: offset) ? .done : .mustWait
        }
    } waiting: { path, location, key, files in
        let descriptor: Int32
        do throws(DiskCacheError) {
            descriptor = try files.open(path)
        } catch {
            return error.isAbsence ? .gone : .failed(error)
        }
        defer { files.close(descriptor) }
        let reading = unsafe read(path, location, key) { buffer, offset in
            do throws(DiskCacheError) {
                let count = unsafe try files.read(descriptor, into: buffer, at: offset, path)
                return count == buffer.count ? .done : .ended(.damaged)
            } catch {
                return .ended(.failed(error))
            }
        }
        return reading ?? .gone
    }

    /// With the open file, on a thread that may wait.
    static func opening(
        _ body: @escaping @Sendable (DiskValueFile, String, DiskIndex.Location) -> DiskReading
    ) -> DiskValueReader {
        DiskValueReader { _, _, _, _ in
            nil
        } waiting: { path, location, key, files in
            DiskValueFile.withOpen(path, location, key: key, files) { body($0, path, location) }
        }
    }

    private enum Step {
        case done
        case mustWait
        case ended(DiskReading)
    }

    /// Fills memory with the value and its trailer, verified piece by piece while a piece is in the processor's cache; nil
    /// if a piece must be waited for.
    private static func read(
        _ path: String, _ location: DiskIndex.Location, _ key: DiskKey,
        _ fill: (UnsafeMutableRawBufferPointer, Int) -> Step
    ) -> DiskReading? {
        let (size, end) = (location.size, location.size + location.trailer)
        var checksum = DiskChecksum()
        var step = Step.done
        var trailer: DiskTrailer?
        let value = unsafe DiskSlabs.shared.data(size, spare: location.trailer) { memory in
            var start = 0
            while start < end, case .done = step {
                // The trailer comes with the last piece.
                let next = end - start <= Self.piece ? end : min(start + Self.piece, size)
                unsafe step = fill(UnsafeMutableRawBufferPointer(rebasing: memory[start..<next]), start)
                unsafe checksum.update(UnsafeRawBufferPointer(rebasing: memory[start..<max(start, min(next, size))]))
                start = next
            }
            if case .done = step { unsafe trailer = DiskTrailer(UnsafeRawBufferPointer(rebasing: memory[size..<end])) }
        }
        guard let value else { return .failed(.system("memory for", path, code: ENOMEM)) }
        switch step {
        case .mustWait: return nil
        case .ended(let reading): return reading
        case .done: break
        }
        guard let trailer, trailer.size == size else { return .damaged }
        guard trailer.key == key.bytes else { return .otherKey }
        return checksum.value == trailer.checksum ? .found(trailer.entry(value, location)) : .damaged
    }

    private static let piece = 128 << 10
}
