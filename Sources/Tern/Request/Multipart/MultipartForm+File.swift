#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension MultipartForm {
    /// Writes the form to a file instead, and gives the body that sends it: for a transport that needs one, or to keep it.
    ///
    /// The file is written under a temporary name in the same folder and put in its place in one step; what was there is
    /// replaced. Nothing is left behind by a failure or a cancellation. A form with a stream is used up.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` when the file cannot be written, `.requestBody` when a part cannot be read,
    ///   `.cancelled` when the calling task is cancelled.
    @concurrent
    public func write(to file: URL) async throws(NetworkError) -> Request.Body {
        try await write(to: file, FileStore.shared)
    }

    func write(to file: URL, _ files: FileStore) async throws(NetworkError) -> Request.Body {
        let path = file.path
        let partial = FilePath.join(
            FilePath.folder(of: path), ".\(FilePath.name(of: path)).\(boundary.suffix(16)).part")
        let descriptor: Int32
        do {
            descriptor = try await files.create(partial)
        } catch {
            throw NetworkError(.fileSystem, reason: "the form cannot be written: \(error)", underlying: error)
        }
        do {
            try await fill(descriptor, files)
            try await files.close(descriptor)
            _ = try await files.move(partial, to: path, Download.Options())
        } catch {
            // The first failure is the one to tell; the descriptor may be closed already.
            try? await files.close(descriptor)
            try? await files.remove(partial)  // The same.
            throw Self.problem(error)
        }
        return .file(file, contentType: contentType)
    }

    private func fill(_ descriptor: Int32, _ files: FileStore) async throws {
        let source = try await MultipartMessage(self, files).makeSource(files)
        while let chunk = try await source.next() {
            try Task.checkCancellation()
            if let failure = await files.write([chunk], to: descriptor).failure { throw failure }
        }
    }

    private static func problem(_ error: any Error) -> NetworkError {
        if error is CancellationError { return NetworkError(.cancelled, reason: "the task was cancelled") }
        let kind: NetworkError.Kind = error is FileFailure ? .fileSystem : .requestBody
        return NetworkError(kind, reason: "the form cannot be written: \(error)", underlying: error)
    }
}
