import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Segments, and the end of the files: the move, the removal, and the rest that is kept for the next download.

extension DownloadPart {
    // MARK: Segments

    /// Reserves the space of a file that is written in segments, and of the table behind it. Called when the first
    /// bytes arrive: to reserve 128 MiB can take 35 ms, which would otherwise delay the requests for the segments.
    private func allocate(_ plan: SegmentPlan) throws(FileFailure) {
        guard isUnallocated, let descriptor else { return }
        try DiskCall.allocate(plan.lengthWithTable, for: descriptor, path: partialPath)
        isUnallocated = false
    }

    /// Returns the numbers of bytes of the segments; nil if the table is not valid.
    func counts(of plan: SegmentPlan) throws(FileFailure) -> [Int64]? {
        let table = try read(partialPath, at: plan.size, until: plan.lengthWithTable)
        guard let counts = plan.counts(from: table) else { return nil }
        length = counts.reduce(0, +)
        isAdopted = true
        return counts
    }

    /// Writes bytes of a segment, and then the number of its bytes.
    func write(_ bytes: Data, at offset: Int64, segment index: Int, of plan: SegmentPlan) throws(FileFailure) {
        guard let descriptor else { throw FileFailure("write", partialPath, code: DiskCall.notThere) }
        try allocate(plan)
        try DiskCall.write(bytes, to: descriptor, at: offset, path: partialPath)
        let count = offset + Int64(bytes.count) - plan.ranges[index].lowerBound
        // Without it, the table could reach the disk before the bytes that it counts.
        if synchronizes { try DiskCall.synchronize(descriptor, partialPath) }
        try DiskCall.write(
            SegmentPlan.entry(count), to: descriptor, at: plan.position(ofEntry: index), path: partialPath)
        length += Int64(bytes.count)
    }

    /// Takes the last bytes of a segment back.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the segment that stay.
    ///   - discarded: The number of bytes after them.
    func cut(
        segment index: Int, to count: Int64, before discarded: Int64, of plan: SegmentPlan
    ) throws(FileFailure) {
        guard discarded > 0, let descriptor else { return }
        try DiskCall.write(
            SegmentPlan.entry(count), to: descriptor, at: plan.position(ofEntry: index), path: partialPath)
        length -= discarded
    }

    /// Cuts the table off.
    func endSegments(of plan: SegmentPlan) throws(FileFailure) {
        try resume(at: plan.size)
    }

    // MARK: The end

    /// Returns the number of bytes that are missing on the disk for a file of this size; nil if there is room.
    func missingSpace(for size: Int64) -> (needed: Int64, free: Int64)? {
        // A small file is written in one go, which fails if there is no room.
        if unwritten != nil { return nil }
        let needed = size - length
        guard let free = DiskCall.freeSpace(in: folder), needed > free else { return nil }
        return (needed, free)
    }

    func checkDestination() async throws(FileFailure) { try await files.checkPlace(destination) }

    /// Gives the complete, verified file its name. Returns the path of the file. The control file stays until
    /// `remove()`.
    func move(_ options: Download.Options) async throws(FileFailure) -> String {
        if let unwritten { return try await move(unwritten, options) }
        guard let descriptor, var control else { throw FileFailure("move", partialPath, code: DiskCall.notThere) }
        if synchronizesEnd { try DiskCall.synchronize(descriptor, partialPath) }
        // A process that is killed after the move finds by this number that it has happened.
        control.complete(DiskCall.identity(of: descriptor), length)
        try store(control)
        let place = try await files.move(partialPath, lock: descriptor, to: destination, options: options)
        isMoved = true
        if let takenPermissions { DiskCall.setPermissions(takenPermissions, of: descriptor) }
        if synchronizesEnd { DiskCall.synchronize(folder: folder) }
        return place
    }

    /// Writes a small file and moves it at once. It is created with the permissions of the destination.
    private func move(_ bytes: [Data], _ options: Download.Options) async throws(FileFailure) -> String {
        let whole = length
        // Until all bytes are written, nothing is kept.
        (unwritten, length) = (nil, 0)
        let opened = try system.open(partialPath, .createPublic)
        descriptor = opened
        if options.existing == .overwrite { _ = PosixFileSystem.copyPermissions(from: destination, to: opened) }
        do throws(FileFailure) {
            try named { () throws(FileFailure) in
                for chunk in bytes { try system.write(chunk, to: opened) }
            }
            length = whole
            if synchronizesEnd {
                // A queue, whose list outlives the process, asks later whether the file was moved.
                try describe(opened)
                try DiskCall.synchronize(opened, partialPath)
            }
            let place = try await files.move(partialPath, lock: nil, to: destination, options: options)
            isMoved = true
            if synchronizesEnd { DiskCall.synchronize(folder: folder) }
            return place
        } catch {
            system.setPermissions(of: opened, true, folder: folder)
            if length > 0, isControlEmpty {
                // Without a description, nothing could continue the part. That of a queue has failed above. `try?`: the
                // first failure is the one to report.
                if synchronizesEnd || (try? describe(opened)) == nil { length = 0 }
            }
            throw error
        }
    }

    /// Writes the description of a complete part to the empty control file.
    private func describe(_ part: Int32) throws(FileFailure) {
        guard var control else { return }
        control.complete(DiskCall.identity(of: part), length)
        try lock.write(control)
        (self.control, isControlEmpty) = (control, false)
    }

    /// Removes what is left of a download whose file has its name.
    func remove() {
        // A control file that cannot be removed costs little, and its file is finished.
        try? system.remove(controlPath)
        close()
    }

    /// Removes the files if they are those of a URL with this digest.
    func discard(partOf urlDigest: String) throws(FileFailure) {
        defer { close() }
        let found = try load()
        if isControlEmpty || found.control?.urlDigest == urlDigest { try discard() }
    }

    /// Removes the control file if its file is at the destination already. Releases the lock in any case.
    func removeIfFinished() throws(FileFailure) {
        defer { close() }
        if try load().finishedLength != nil { remove() }
    }

    /// Removes the partial file and the control file.
    func discard() throws(FileFailure) {
        defer { close() }
        unwritten = nil
        do throws(FileFailure) {
            try system.remove(partialPath)
            (length, isAdopted) = (0, false)
            try system.remove(controlPath)
            isControlEmpty = false
        } catch {
            notRemoved = error
            throw error
        }
    }

    /// The rest of a download that has not finished.
    enum Rest: Sendable, Equatable {
        case nothing
        /// A part of this length, which can be continued.
        case part(Int64)
        /// The whole file, at its destination. Its control file says so to the next download.
        case file
        /// Files that could not be removed, with the reason.
        case notRemoved(String)
    }

    /// Whether there are bytes to keep: written ones, or the table of segments behind reserved space.
    private var hasBytes: Bool { length > 0 || control?.segments != nil && !isUnallocated }

    /// Ends the use of the files. A part that can be continued stays, and one that cannot is removed. A part that this
    /// download has not continued stays as it is. Returns the rest.
    @discardableResult
    func closeKeepingPart() -> Rest {
        defer { close() }
        if let notRemoved { return .notRemoved("\(notRemoved)") }
        if isMoved { return .file }
        do throws(FileFailure) {
            guard let control, isAdopted else {
                if isControlEmpty { try system.remove(controlPath) }
                return .nothing
            }
            let hasValidator = control.etag != nil || control.lastModified != nil
            // A part that cannot be written is lost. The download ends with its own error.
            if hasBytes, hasValidator { try? writeToDisk() }
            if hasBytes, hasValidator || control.completedFile != nil {
                // The part is right without this, and only costs a repeated request after a power failure.
                try? synchronize()
                return .part(length)
            }
            try discard()
            return .nothing
        } catch {
            return .notRemoved("\(error)")
        }
    }

    /// Releases the lock, and leaves the files as they are.
    func close() {
        // Each byte was written, and a failure to close loses none.
        if let descriptor { try? system.close(descriptor) }
        lock.release()
        (descriptor, unwritten) = (nil, nil)
    }
}
