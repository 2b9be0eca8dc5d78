import Tern
import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Copies the files below a page of nginx's autoindex.
///
/// The process can be killed at any instant: each file has its name only if it is whole, and the part of a file that
/// was under way is continued by the next process.
struct IndexMirror {
    /// The error of a server whose folders do not end.
    struct TooDeep: Error, CustomStringConvertible {
        let url: URL
        var description: String { "\(url.absoluteString) is deeper than \(IndexMirror.maximumDepth) folders" }
    }

    /// The error of a server with too many folders.
    struct TooManyFolders: Error, CustomStringConvertible {
        let url: URL
        var description: String { "\(url.absoluteString) has more than \(IndexMirror.maximumFolders) folders" }
    }

    /// The numbers of files.
    struct Summary {
        var received = 0
        var unchanged = 0
        var failed = 0
    }

    private struct File: Sendable {
        let entry: MirrorIndex.Entry
        let place: URL
    }

    private let url: URL
    private let client: Client
    private let folder: URL
    /// The number of files that are received at the same time.
    private let count = 6
    /// The number of levels of folders.
    private static let maximumDepth = 64
    /// The number of folders in all, each of which is a page.
    private static let maximumFolders = 10_000

    init(of url: URL, in folder: URL, session: Session = .shared) {
        self.url = url
        client = Client(session: session)
        self.folder = folder
    }

    /// Copies every file that is missing or has changed, and reports each in one line.
    ///
    /// - Throws: The error of a page of the index, or `CancellationError` if the caller is cancelled: then all
    ///   downloads have ended. The failure of a file is only reported and counted.
    func run(_ report: (String) -> Void) async throws -> Summary {
        var summary = Summary()
        let files = try await files()
        let missing = files.filter { !isPresent($0) }
        summary.unchanged = files.count - missing.count
        // At most `count` at a time: the next one begins when one ends.
        await withTaskGroup(of: (String, isReceived: Bool).self) { group in
            for (index, file) in missing.enumerated() {
                if index >= count, let ended = await group.next() { add(ended, to: &summary, report) }
                guard group.addTaskUnlessCancelled(operation: { await receive(file) }) else { break }
            }
            for await ended in group { add(ended, to: &summary, report) }
        }
        try Task.checkCancellation()
        return summary
    }

    private func add(_ ended: (String, isReceived: Bool), to summary: inout Summary, _ report: (String) -> Void) {
        report(ended.0)
        if ended.isReceived { summary.received += 1 } else { summary.failed += 1 }
    }

    /// Reads the pages of all folders. Each page is small, and each is asked for again until it arrives.
    private func files() async throws -> [File] {
        var files: [File] = []
        var folders = [(url: url, place: folder, depth: 0)]
        var count = 1
        while let next = folders.popLast() {
            let page = try await client.get(next.url, as: String.self) { request in
                request.interceptors = [RetryInterceptor()]
            }
            for entry in MirrorIndex(page, at: next.url).entries {
                let place = next.place.appending(path: entry.name)
                if entry.isFolder {
                    if next.depth == Self.maximumDepth { throw TooDeep(url: entry.url) }
                    count += 1
                    if count > Self.maximumFolders { throw TooManyFolders(url: url) }
                    folders.append((entry.url, place, next.depth + 1))
                } else {
                    files.append(File(entry: entry, place: place))
                }
            }
        }
        return files
    }

    /// Returns whether the file is here, has the size of the server's file, and is younger than its last change.
    private func isPresent(_ file: File) -> Bool {
        // `try?`: a file without attributes is missing.
        guard let found = try? FileManager.default.attributesOfItem(atPath: file.place.path),
            let size = found[.size] as? UInt, let date = found[.modificationDate] as? Date
        else { return false }
        guard let expected = file.entry.size, let changed = file.entry.changed else { return false }
        // A process was killed after the file got its name. Its download finds that out, and removes what is left.
        let control = file.place.deletingLastPathComponent().appending(path: ".\(file.entry.name).tern.json")
        if FileManager.default.fileExists(atPath: control.path) { return false }
        // The page states minutes.
        return Int64(size) == expected && date >= changed.addingTimeInterval(60)
    }

    private func receive(_ file: File) async -> (String, isReceived: Bool) {
        var options = DurableDownloadOptions(expectedSize: file.entry.size)
        options.createsFolders = true
        let task = client.download(
            file.entry.url.absoluteString, to: file.place, resuming: .automatically, options: options)
        do {
            // A download goes on without its handle. A caller that is cancelled ends it, and waits for its end.
            let result = try await withTaskCancellationHandler {
                try await Task { try await task.value }.value
            } onCancel: {
                task.cancel()
            }
            return ("\(file.entry.name): \(result.bytes) bytes", true)
        } catch {
            return ("\(file.entry.name): \(error)", false)
        }
    }
}
