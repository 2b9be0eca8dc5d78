import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One transaction for all that waits.
extension DiskStore {
    /// What a transaction changes in memory once it is committed.
    private enum Change: Sendable {
        case put(UInt64, DiskIndex.Location)
        case remove(UInt64)
    }

    /// Commits the letters together; if that fails, each alone, so that one that cannot succeed fails alone.
    ///
    /// If the disk is full, the least recently used entries are evicted, and the transaction is tried again.
    func commit(_ letters: [DiskMailbox.Letter]) -> [Result<Void, DiskCacheError>] {
        do throws(DiskCacheError) {
            try commitMakingSpace(letters)
            return letters.map { _ in .success(()) }
        } catch {
            guard letters.count > 1, error.kind != .corrupt, error.kind != .folderLost else {
                return letters.map { _ in .failure(error) }
            }
            return letters.flatMap { commit([$0]) }
        }
    }

    private func commitMakingSpace(_ letters: [DiskMailbox.Letter]) throws(DiskCacheError) {
        var space = Self.space(for: letters)
        for _ in 0..<8 {
            do throws(DiskCacheError) {
                return try commitTogether(letters)
            } catch {
                guard error.kind == .noSpace, freeSpace(space) else { throw error }
            }
            space *= 2
        }
        try commitTogether(letters)
    }

    /// Returns the bytes that values and rows take, and a log of the changed pages.
    private static func space(for letters: [DiskMailbox.Letter]) -> Int {
        var bytes = letters.count * DiskBudget.removalCost + 6 * DiskSchema.pageSize
        for case .insert(let items) in letters.map(\.request) {
            for item in items {
                bytes += 2 * item.rowBytes
                // The file of a writer is already on the disk.
                if case .bytes = item.content, !item.isInline { bytes += item.size + 8_191 }
            }
        }
        return bytes
    }

    private func commitTogether(_ letters: [DiskMailbox.Letter]) throws(DiskCacheError) {
        try checkFolder()
        try sweep(limit: 32)
        let items = letters.flatMap { letter -> [DiskItem] in
            if case .insert(let items) = letter.request { items } else { [] }
        }
        try prepareRoom(items, removals: letters.count)
        var written: [(item: DiskItem, location: DiskIndex.Location)] = []
        var obsolete: [DiskIndex.Location] = []
        var changes: [Change] = []
        do {
            for item in items { written.append((item, try write(item))) }
            // A file may have taken more than its length let expect.
            try makeRoom(DiskBudget.Need(rowBytes: items.reduce(0) { $0 + $1.rowBytes }))
            try tables.transaction { () throws(DiskCacheError) in
                for row in deadRows { try tables.delete(row) }
                for (item, location) in written {
                    if let old = current(item.key.hash) { obsolete.append(old) }
                    try tables.insert(item, hash: item.key.hash, location)
                    changes.append(.put(item.key.hash, location))
                }
                for letter in letters {
                    guard let (hash, location) = try removal(letter.request) else { continue }
                    obsolete.append(location)
                    changes.append(.remove(hash))
                }
                for old in obsolete { try tables.delete(old) }
            }
        } catch {
            for (item, location) in written where !location.isInline {
                if case .file(let path, _, _) = item.content {
                    try? files.rename(folder.value(location.id), to: path)  // The writer removes it.
                } else {
                    temporaryBytes -= location.allocated
                    // The first failure is the one to tell; an orphan goes with the next opening.
                    try? files.remove(folder.value(location.id))
                }
            }
            throw error
        }
        deadRows.removeAll()
        publish(changes)
        for (_, location) in written where !location.isInline { temporaryBytes -= location.allocated }
        for old in obsolete where !old.isInline { removeFile(old) }
    }

    private func current(_ hash: UInt64) -> DiskIndex.Location? {
        shared.state.withLock { $0.index.location(hash) }
    }

    /// The entry that a letter removes; nil if it is not there or not that of the key.
    private func removal(
        _ request: DiskMailbox.Request
    ) throws(DiskCacheError) -> (hash: UInt64, location: DiskIndex.Location)? {
        switch request {
        case .remove(let key): return current(key.hash).map { (key.hash, $0) }
        case .discard(let hash, let id): return current(hash).flatMap { $0.id == id ? (hash, $0) : nil }
        default: return nil
        }
    }

    private func publish(_ changes: [Change]) {
        shared.state.withLock { state in
            for change in changes {
                switch change {
                case .put(let hash, let location): state.index.insert(hash, location)
                case .remove(let hash): state.index.remove(hash)
                }
            }
        }
    }

    /// Puts a large value into its place; its row follows. A kill between leaves a file that no row tells of.
    private func write(_ item: DiskItem) throws(DiskCacheError) -> DiskIndex.Location {
        let id = shared.state.withLock { $0.index.drawSequence() }
        var location = DiskIndex.Location(
            id: id, size: item.size, trailer: 0, allocated: item.rowBytes, expires: item.expires,
            isTagged: !item.tags.isEmpty)
        if item.isInline { return location }
        switch item.content {
        case .bytes(let value):
            let trailer = item.trailer.encoded()
            let path = temporaryPath()
            let descriptor = try files.create(path)
            defer { files.close(descriptor) }
            do {
                try write(value, to: descriptor, path)
                try write(trailer, to: descriptor, path)
                location.allocated = try files.status(descriptor, path).allocated
                try place(path, id)
            } catch {
                try? files.remove(path)  // The first failure is the one to tell; opening empties this folder.
                throw error
            }
            location.trailer = trailer.count
            temporaryBytes += location.allocated
        case .file(let path, let trailer, let allocated):
            location.trailer = trailer
            location.allocated = allocated
            try place(path, id)
        }
        return location
    }

    /// Moves a finished file to its place in one step, and makes the shard's folder if it is the first there.
    private func place(_ path: String, _ id: Int64) throws(DiskCacheError) {
        do {
            try files.rename(path, to: folder.value(id))
        } catch {
            guard error.isAbsence else { throw error }
            try files.makeFolder(folder.shard(Int(id & (DiskFolder.shardCount - 1))))
            try files.rename(path, to: folder.value(id))
        }
    }

    func write(_ bytes: Data, to descriptor: Int32, _ path: String) throws(DiskCacheError) {
        let result = unsafe bytes.withUnsafeBytes { buffer -> Result<Void, DiskCacheError> in
            do throws(DiskCacheError) {
                return .success(unsafe try files.write(buffer, to: descriptor, path))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    func temporaryPath() -> String {
        temporaryNumber += 1
        return "\(folder.temporary)/\(temporaryNumber)"
    }

    func removeFile(_ location: DiskIndex.Location) {
        do throws(DiskCacheError) {
            try files.remove(folder.value(location.id))
        } catch {
            hub.send(.backgroundFailure(error))
        }
    }
}
