#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// An open value: its bytes can be sent from the file (`sendfile`, `read`) without passing through memory.
    ///
    /// It stays readable after the entry is removed or replaced; it is closed when nobody holds it any more.
    public final class File: Sendable {
        /// Open for reading; the value's bytes are those from 0 to `length`. What follows in the file is the cache's own.
        /// Not to be closed by the caller. Read it by place (`pread`): others may share it.
        public let descriptor: Int32
        /// Bytes of the value.
        public let length: Int
        /// What the insert gave as metadata.
        public let metadata: Data
        /// When the value was inserted.
        public let created: Date
        private let files: any DiskFileSystem

        init(_ descriptor: Int32, _ entry: Entry, _ files: any DiskFileSystem) {
            self.descriptor = descriptor
            length = entry.value.count
            metadata = entry.metadata
            created = entry.created
            self.files = files
        }

        deinit { files.close(descriptor) }
    }

    /// The value of a key as an open file; nil as for `value(for:)`. It is verified before it is returned. A small or
    /// staged value is written to a file without a name for it.
    @concurrent
    public nonisolated func file(for key: String) async throws(DiskCacheError) -> File? {
        let kept = KeptDescriptor()
        let reader = DiskValueReader.opening { file, path, location in
            let reading = file.map(path, location)
            if case .found = reading { kept.keep(fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)) }
            return reading
        }
        let entry = try await look(for: key, reading: reader)
        guard let entry else { return nil }
        if let descriptor = kept.take() {
            guard descriptor >= 0 else { throw .system("another descriptor of", folder.values) }
            return File(descriptor, entry, seams.files)
        }
        return File(try await unnamedFile(entry.value), entry, seams.files)
    }

    private func unnamedFile(_ value: Data) throws(DiskCacheError) -> Int32 {
        let store = try openStore()
        let path = store.temporaryPath()
        let descriptor = try store.files.create(path)
        do throws(DiskCacheError) {
            try store.files.remove(path)
            try store.write(value, to: descriptor, path)
            return descriptor
        } catch {
            store.files.close(descriptor)
            throw error
        }
    }
}

extension DiskValueFile {
    /// The value as a mapping of its file, read once to verify it.
    func map(_ path: String, _ location: DiskIndex.Location) -> DiskReading {
        guard trailer.size > 0 else { return .found(entry(Data(), location)) }
        #if canImport(Darwin)
        let flags = MAP_PRIVATE
        #else
        let flags = MAP_PRIVATE | Int32(MAP_POPULATE)
        #endif
        let memory = unsafe mmap(nil, trailer.size, PROT_READ, flags, descriptor, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            return .failed(.system("map", path))
        }
        let size = trailer.size
        let value = unsafe Data(
            bytesNoCopy: memory, count: size, deallocator: .custom { memory, size in _ = unsafe munmap(memory, size) })
        return DiskChecksum.of(value) == trailer.checksum ? .found(entry(value, location)) : .damaged
    }
}
