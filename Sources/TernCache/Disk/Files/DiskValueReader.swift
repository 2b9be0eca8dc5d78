import Dispatch
import TernConcurrency

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

/// The result of reading an entry.
enum DiskReadResult: Sendable {
    case found(DiskCache.Entry)
    /// The entry is no longer there: it was removed or replaced in the meantime, or its file is missing.
    case gone
    /// The bytes differ from those that were written.
    case damaged
    /// The entry belongs to another key with the same hash.
    case otherKey
    case failed(DiskCacheError)

    /// Creates the result of a value file that could not be opened.
    fileprivate init(opening error: DiskCacheError) {
        self = error.isAbsence ? .gone : error.isOfLink ? .damaged : .failed(error)
    }
}

/// The value file of an entry, to be read.
struct DiskReadTarget: Sendable {
    let path: String
    let location: DiskIndex.Location
    let key: DiskKey
    let files: any DiskFileSystem
}

/// A way to read a value file: immediately by the caller, if the system has the whole file in memory, or else on a
/// thread that may wait for the disk. Switching to that thread and back costs more than reading 20 KB.
struct DiskValueReader: Sendable {
    /// Reads the file without waiting. Returns nil if that needs the disk.
    let readCached: @Sendable (DiskReadTarget) -> DiskReadResult?
    /// Reads the file, and may wait for the disk.
    let read: @Sendable (DiskReadTarget) -> DiskReadResult

    /// Reads the value into memory.
    static let copying = DiskValueReader { target in
        // Switching threads costs little beside a larger value, and the caller's thread is not the cache's to block.
        guard target.location.size <= 1 << 20, let descriptor = target.files.openCached(target.path) else { return nil }
        defer { target.files.close(descriptor) }
        return unsafe read(target) { buffer, offset in
            unsafe target.files.readCached(descriptor, into: buffer, at: offset) ? .done : .mustWait
        }
    } read: { target in
        let descriptor: Int32
        do throws(DiskCacheError) {
            descriptor = try target.files.open(target.path)
        } catch {
            return DiskReadResult(opening: error)
        }
        defer { target.files.close(descriptor) }
        let result = unsafe read(target) { buffer, offset in
            do throws(DiskCacheError) {
                let count = unsafe try target.files.read(
                    descriptor, into: buffer, at: offset, path: target.path)
                return count == buffer.count ? .done : .ended(.damaged)
            } catch {
                return .ended(.failed(error))
            }
        }
        return result ?? .gone
    }

    /// Returns a reader that passes the open file to `body`, on a thread that may wait.
    static func opening(
        _ body: @escaping @Sendable (DiskValueFile, DiskReadTarget) -> DiskReadResult
    ) -> DiskValueReader {
        DiskValueReader { _ in
            nil
        } read: { target in
            DiskValueFile.withOpen(target) { body($0, target) }
        }
    }

    private enum Step {
        case done
        case mustWait
        case ended(DiskReadResult)
    }

    /// Fills memory with the value and its trailer, and verifies each piece while it is in the processor's cache.
    /// Returns nil if a piece needs the disk.
    private static func read(
        _ target: DiskReadTarget, fill: (UnsafeMutableRawBufferPointer, Int) -> Step
    ) -> DiskReadResult? {
        let location = target.location
        let (size, end) = (location.size, location.size + location.trailer)
        var checksum = DiskChecksum()
        var step = Step.done
        var trailer: DiskTrailer?
        let value = unsafe DiskBufferPool.shared.data(size, spare: location.trailer) { memory in
            var start = 0
            while start < end, case .done = step {
                // The trailer is read with the last piece.
                let next = end - start <= Self.piece ? end : min(start + Self.piece, size)
                unsafe step = fill(UnsafeMutableRawBufferPointer(rebasing: memory[start..<next]), start)
                unsafe checksum.update(UnsafeRawBufferPointer(rebasing: memory[start..<max(start, min(next, size))]))
                start = next
            }
            if case .done = step { unsafe trailer = DiskTrailer(UnsafeRawBufferPointer(rebasing: memory[size..<end])) }
        }
        guard let value else { return .failed(.system("allocate memory for", target.path, code: ENOMEM)) }
        switch step {
        case .mustWait: return nil
        case .ended(let result): return result
        case .done: break
        }
        guard let trailer, trailer.size == size else { return .damaged }
        guard trailer.key == target.key.bytes else { return .otherKey }
        return checksum.value == trailer.checksum ? .found(trailer.entry(value, location)) : .damaged
    }

    private static let piece = 128 << 10
}

/// An open value file whose trailer was read and whose key matches.
struct DiskValueFile {
    let descriptor: Int32
    let trailer: DiskTrailer

    private enum Opening {
        case open(DiskValueFile)
        case failed(DiskReadResult)
    }

    /// Opens the file, passes it to `body`, and closes it. May wait for the disk.
    static func withOpen(_ target: DiskReadTarget, body: (DiskValueFile) -> DiskReadResult) -> DiskReadResult {
        switch open(target) {
        case .failed(let result): return result
        case .open(let file):
            defer { target.files.close(file.descriptor) }
            return body(file)
        }
    }

    private static func open(_ target: DiskReadTarget) -> Opening {
        let (files, location) = (target.files, target.location)
        let descriptor: Int32
        do throws(DiskCacheError) {
            descriptor = try files.open(target.path)
        } catch {
            return .failed(DiskReadResult(opening: error))
        }
        do throws(DiskCacheError) {
            var bytes = Data(count: location.trailer)
            let result = unsafe bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(DiskCacheError) in
                    unsafe try files.read(descriptor, into: buffer, at: location.size, path: target.path)
                }
            }
            guard try result.get() == location.trailer, let trailer = DiskTrailer(bytes), trailer.size == location.size
            else {
                files.close(descriptor)
                return .failed(.damaged)
            }
            guard trailer.key == target.key.bytes else {
                files.close(descriptor)
                return .failed(.otherKey)
            }
            return .open(DiskValueFile(descriptor: descriptor, trailer: trailer))
        } catch {
            files.close(descriptor)
            return .failed(.failed(error))
        }
    }

    /// Maps the value into memory, and reads it once to verify it.
    func map(_ target: DiskReadTarget) -> DiskReadResult {
        let size = trailer.size
        guard size > 0 else { return .found(trailer.entry(Data(), target.location)) }
        #if canImport(Darwin)
        let flags = MAP_PRIVATE
        #else
        let flags = MAP_PRIVATE | Int32(MAP_POPULATE)
        #endif
        let memory = unsafe mmap(nil, size, PROT_READ, flags, descriptor, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            return .failed(.system("map", target.path))
        }
        let value = unsafe Data(
            bytesNoCopy: memory, count: size, deallocator: .custom { memory, size in _ = unsafe munmap(memory, size) })
        return DiskChecksum.of(value) == trailer.checksum ? .found(trailer.entry(value, target.location)) : .damaged
    }

    /// The size in bytes up to which a part of a value is copied. Mapping costs more than copying a few pages.
    private static let copyLimit = 256 << 10
    private static let piece = 128 << 10

    /// Verifies the whole value, and copies or maps a part of it.
    func map(_ target: DiskReadTarget, _ range: Range<Int>) -> DiskReadResult {
        let size = trailer.size
        let isCopied = range.count <= Self.copyLimit
        var checksum = DiskChecksum()
        var part = Data()
        var piece = Data(count: min(size, Self.piece))
        var start = 0
        while start < size {
            let end = min(start + Self.piece, size)
            let result = unsafe piece.withUnsafeMutableBytes { buffer in
                Result { () throws(DiskCacheError) in
                    let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<(end - start)])
                    let count = unsafe try target.files.read(descriptor, into: bytes, at: start, path: target.path)
                    unsafe checksum.update(UnsafeRawBufferPointer(bytes))
                    return count == end - start
                }
            }
            switch result {
            case .failure(let error): return .failed(error)
            case .success(false): return .damaged
            case .success(true): break
            }
            let wanted = range.clamped(to: start..<end)
            if isCopied { part += piece[wanted.lowerBound - start..<wanted.upperBound - start] }
            start = end
        }
        guard checksum.value == trailer.checksum else { return .damaged }
        if isCopied { return .found(trailer.entry(part, target.location)) }
        // A mapping begins with a page.
        let offset = range.lowerBound % Int(sysconf(Int32(_SC_PAGESIZE)))
        let length = offset + range.count
        let first = off_t(range.lowerBound - offset)
        let memory = unsafe mmap(nil, length, PROT_READ, MAP_PRIVATE, descriptor, first)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            return .failed(.system("map", target.path))
        }
        let value = unsafe Data(
            bytesNoCopy: memory + offset, count: range.count,
            deallocator: .custom { memory, _ in _ = unsafe munmap(memory - offset, length) })
        return .found(trailer.entry(value, target.location))
    }
}

extension DiskTrailer {
    func entry(_ value: Data, _ location: DiskIndex.Location) -> DiskCache.Entry {
        let expires = location.expires
        return DiskCache.Entry(
            value: value, metadata: metadata, created: Date(milliseconds: created),
            expires: expires == .max ? nil : Date(milliseconds: expires))
    }
}

/// The serial queues that read value files. They need nothing of the index, and so do not wait for a commit.
final class DiskReadQueues: Sendable {
    private let queues: [DispatchQueue]

    init(count: Int) { queues = (0..<max(1, count)).map { DispatchQueue(label: "tern.disk-cache.reader-\($0)") } }

    /// Runs `body` on the queue that `number` selects, and returns its result.
    func run<Result: Sendable>(_ number: Int64, _ body: @escaping @Sendable () -> Result) async -> Result {
        let queue = queues[Int(UInt64(bitPattern: number) % UInt64(queues.count))]
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}

/// Passes a descriptor from a read queue to the caller, and closes it if nobody takes it.
final class DescriptorHolder: Sendable {
    private let descriptor = Lock<Int32?>(nil)

    func store(_ descriptor: Int32) { self.descriptor.withLock { $0 = descriptor } }

    func take() -> Int32? { descriptor.withLock { $0.take() } }

    deinit {
        if let left = take(), left >= 0 { close(left) }
    }
}
