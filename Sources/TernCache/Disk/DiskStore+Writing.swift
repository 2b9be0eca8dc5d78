#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file that a writer fills.
struct DiskTemporary: Sendable {
    let path: String
    let descriptor: Int32
    /// The store that made it: a folder that was lost, or an index that was rebuilt, takes its files with it.
    let store: ObjectIdentifier
    var allocated = 0
}

extension DiskStore {
    func createTemporary() throws(DiskCacheError) -> DiskTemporary {
        try checkFolder()
        let path = temporaryPath()
        return DiskTemporary(path: path, descriptor: try files.create(path), store: ObjectIdentifier(self))
    }

    /// Adds bytes to a file; room is made first.
    func append(_ bytes: Data, to file: inout DiskTemporary) throws(DiskCacheError) {
        guard file.store == ObjectIdentifier(self) else {
            throw DiskCacheError(.folderLost, "the file of this writer went with the folder or the index")
        }
        let room = (bytes.count + 8_191) & ~4_095
        try makeRoom(DiskBudget.Need(fileBytes: room))
        try write(bytes, to: file.descriptor, file.path)
        let allocated = try files.status(file.descriptor, file.path).allocated
        temporaryBytes += allocated - file.allocated
        file.allocated = allocated
    }

    func abandon(_ file: DiskTemporary) throws(DiskCacheError) {
        files.close(file.descriptor)
        guard file.store == ObjectIdentifier(self) else { return }
        temporaryBytes -= file.allocated
        try files.remove(file.path)
    }
}
