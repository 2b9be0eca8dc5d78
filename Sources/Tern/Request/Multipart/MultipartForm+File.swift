#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension MultipartForm {
    /// Writes the form to a file instead, and gives the body that sends it: for a transport that needs one, or to keep it.
    ///
    /// The form is written under a temporary name in the same folder, with permissions for its owner alone, and then
    /// moved to its place in one step, where it replaces an existing file. A failure or a cancellation leaves nothing
    /// behind. A form with a stream is used up.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be written, `.requestBody` when a part cannot be read,
    ///   `.cancelled` when the calling task is cancelled.
    @concurrent
    public func write(to file: URL) async throws(NetworkError) -> Request.Body {
        try await write(to: file, FileStore.shared)
    }

    func write(to file: URL, _ files: FileStore) async throws(NetworkError) -> Request.Body {
        let path = file.path
        let place = TemporaryPlace(folder: FilePath.folder(of: path), destination: FilePath.name(of: path))
        let partial: PartialFile
        do {
            partial = try await PartialFile(creating: place, files)
        } catch {
            throw NetworkError(.fileSystem, reason: "the form cannot be written: \(error)", underlying: error)
        }
        do {
            try await fill(partial, files)
            try await partial.close()
            _ = try await partial.move(to: path, Download.Options())
        } catch {
            await partial.discard()
            throw Self.problem(error)
        }
        return .file(file, contentType: contentType)
    }

    private func fill(_ file: PartialFile, _ files: FileStore) async throws {
        let source = try await MultipartMessage(self, files).makeSource(files)
        while let chunk = try await source.next() {
            try Task.checkCancellation()
            try await file.write([chunk])
        }
    }

    private static func problem(_ error: any Error) -> NetworkError {
        if error is CancellationError { return NetworkError(.cancelled, reason: "the task was cancelled") }
        let kind: NetworkError.Kind = error is FileFailure ? .fileSystem : .requestBody
        return NetworkError(kind, reason: "the form cannot be written: \(error)", underlying: error)
    }
}
