import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Opening: the entries are loaded, and what a killed owner left behind is put right.
extension DiskStore {
    /// Reads the index into memory, in the order of use.
    func load() throws(DiskCacheError) {
        let seed = try loadSeed()
        var ranks: [Int64: Int64] = [:]
        let ranked = try tables.database.prepare("SELECT id, tick FROM recency")
        while try ranked.step() { ranks[ranked.number(0)] = ranked.number(1) }
        var rows: [(tick: Int64, hash: UInt64, location: DiskIndex.Location)] = []
        let entries = try tables.database.prepare(
            "SELECT id, hash, size, trailer, allocated, expires, tagged FROM entries ORDER BY id")
        while try entries.step() {
            let rank = ranks[entries.number(0)]
            let location = DiskIndex.Location(
                id: entries.number(0), size: Int(entries.number(2)), trailer: Int(entries.number(3)),
                allocated: Int(entries.number(4)), expires: entries.number(5), isTagged: entries.number(6) != 0,
                isRanked: rank != nil)
            rows.append((max(location.id, rank ?? 0), UInt64(bitPattern: entries.number(1)), location))
        }
        if !ranks.isEmpty { rows.sort { $0.tick < $1.tick } }
        var index = DiskIndex()
        index.reserve(rows.count)
        for row in rows {
            // Two rows of one hash cannot be written; of a damaged index, the later entry is believed.
            if let other = index.location(row.hash) {
                deadRows.append(other.id < row.location.id ? other : row.location)
                if other.id > row.location.id { continue }
            }
            index.insert(row.hash, row.location, tick: row.tick)
            index.advanceSequence(past: max(row.tick, row.location.id))
        }
        shared.setSeed(seed)
        let loaded = index
        shared.state.withLock { $0.index = loaded }
    }

    private func loadSeed() throws(DiskCacheError) -> UInt64 {
        if let seed = try tables.database.number("SELECT value FROM facts WHERE name = 'seed'") {
            return UInt64(bitPattern: seed)
        }
        let seed = UInt64.random(in: 1 ... .max)
        try tables.database.prepare("INSERT INTO facts VALUES('seed', ?1)").run(Int64(bitPattern: seed))
        return seed
    }

    /// Brings files and index together after opening.
    func settle(isClean: Bool, setAside reason: DiskCacheError?) throws(DiskCacheError) {
        identity = try files.status(of: folder.index)?.identity ?? 0
        for name in try files.names(in: folder.temporary) { try files.remove("\(folder.temporary)/\(name)") }
        setAsideBytes = try files.status(of: folder.setAside)?.allocated ?? 0
        try measureTrash()
        if let reason {
            let count = try rebuild()
            // A new folder is no event.
            if count > 0 || reason.reason != Self.noIndex {
                hub.send(.indexSetAside(reason: reason.reason, rebuiltEntries: count))
            }
        } else if !isClean {
            let (orphans, missing) = try reconcile()
            if orphans + missing > 0 { hub.send(.recovered(orphanFiles: orphans, missingFiles: missing)) }
        }
        do throws(DiskCacheError) {
            try makeRoom(DiskBudget.Need(), mindingDisk: false)
            try deleteDeadRows()
        } catch {
            // A full disk can still be read. The next transaction removes the rows.
            guard error.kind == .noSpace else { throw error }
            hub.send(.backgroundFailure(error))
        }
    }

    /// Removes files that no row tells of (their insert was not acknowledged, or their removal was cut short), and rows
    /// whose file is gone (their eviction was cut short). Names are enough: no file is opened.
    private func reconcile() throws(DiskCacheError) -> (orphans: Int, missing: Int) {
        let index = shared.state.withLock { $0.index }
        var expected: [Int64: UInt64] = [:]
        for hash in index.hashes {
            if let location = index.location(hash), !location.isInline { expected[location.id] = hash }
        }
        var orphans = 0
        for (path, id) in try valueFiles() where id.flatMap({ expected.removeValue(forKey: $0) }) == nil {
            try files.remove(path)
            orphans += 1
        }
        for (id, hash) in expected { forget(hash, id: id) }
        return (orphans, expected.count)
    }

    /// Makes the rows anew from the files' trailers. Of two files of one key the later one stays.
    private func rebuild() throws(DiskCacheError) -> Int {
        var found: [(trailer: DiskTrailer, hash: UInt64, location: DiskIndex.Location)] = []
        let hasher = shared.hasher
        for (path, id) in try valueFiles() {
            guard let id, let (trailer, location) = try examine(path, id) else {
                try files.remove(path)
                continue
            }
            found.append((trailer, hasher.key(trailer.key).hash, location))
        }
        found.sort { $0.location.id < $1.location.id }
        var latest: [UInt64: Int] = [:]
        for (number, entry) in found.enumerated() {
            if let older = latest.updateValue(number, forKey: entry.hash) {
                try files.remove(folder.value(found[older].location.id))
            }
        }
        let kept = latest.values.sorted()
        for start in stride(from: 0, to: kept.count, by: 1_000) {
            let step = kept[start..<min(start + 1_000, kept.count)]
            try tables.transaction { () throws(DiskCacheError) in
                for number in step {
                    try tables.insert(found[number].trailer, hash: found[number].hash, found[number].location)
                }
            }
            try tables.database.checkpoint()
        }
        let entries = kept.map { (found[$0].hash, found[$0].location) }
        shared.state.withLock { state in
            for (hash, location) in entries {
                state.index.insert(hash, location)
                state.index.advanceSequence(past: location.id)
            }
        }
        return kept.count
    }

    /// What a value file says of itself; nil if it is damaged.
    private func examine(
        _ path: String, _ id: Int64
    ) throws(DiskCacheError) -> (DiskTrailer, DiskIndex.Location)? {
        let descriptor = try files.open(path)
        defer { files.close(descriptor) }
        let status = try files.status(descriptor, path)
        guard let footer = try bytes(descriptor, DiskTrailer.footerCount, status.size - DiskTrailer.footerCount, path),
            let count = DiskTrailer.count(footer: footer),
            let trailer = try bytes(descriptor, count, status.size - count, path).flatMap({ DiskTrailer($0) }),
            trailer.size + count == status.size
        else { return nil }
        let location = DiskIndex.Location(
            id: id, size: trailer.size, trailer: count, allocated: status.allocated, expires: trailer.expires,
            isTagged: !trailer.tags.isEmpty)
        return (trailer, location)
    }

    private func bytes(
        _ descriptor: Int32, _ count: Int, _ offset: Int, _ path: String
    ) throws(DiskCacheError) -> Data? {
        guard offset >= 0 else { return nil }
        var data = Data(count: count)
        let result = unsafe data.withUnsafeMutableBytes { buffer -> Result<Int, DiskCacheError> in
            do throws(DiskCacheError) {
                return .success(unsafe try files.read(descriptor, into: buffer, at: offset, path))
            } catch {
                return .failure(error)
            }
        }
        return try result.get() == count ? data : nil
    }

    /// Every file in the folders of values, with its number; nil for what is not named like one.
    func valueFiles() throws(DiskCacheError) -> [(path: String, id: Int64?)] {
        var found: [(path: String, id: Int64?)] = []
        for number in 0..<Int(DiskFolder.shardCount) {
            let shard = folder.shard(number)
            for name in try files.names(in: shard) {
                let id = DiskFolder.id(name).flatMap { Int($0 & (DiskFolder.shardCount - 1)) == number ? $0 : nil }
                found.append(("\(shard)/\(name)", id))
            }
        }
        return found
    }
}
