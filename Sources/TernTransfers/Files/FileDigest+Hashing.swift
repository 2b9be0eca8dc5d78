public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension FileDigest {
    /// Returns the SHA-256 digest of a file.
    ///
    /// ```swift
    /// let digest = try await FileDigest.sha256(of: file)
    /// request.headers["Repr-Digest"] = "sha-256=:\(digest.bytes.base64EncodedString()):"
    /// ```
    ///
    /// - Throws: As `init(_:of:)` does.
    public static func sha256(of file: URL) async throws(NetworkError) -> FileDigest {
        try await FileDigest(.sha256, of: file)
    }

    /// Hashes a file. It is read in pieces on the thread that does all file operations of Tern, and hashed off the
    /// caller's actor.
    ///
    /// - Throws: `NetworkError` of kind `.fileSystem` if the file cannot be read, `.cancelled` if the Swift task was
    ///   cancelled, and `.unsupported` for a function that the system's configuration forbids.
    public init(_ algorithm: Algorithm, of file: URL) async throws(NetworkError) {
        do {
            let source = try await FileStore.shared.reader(ofFile: FilePath.of(file))
            self = try await Self.hash(source, algorithm)
        } catch {
            throw Self.problem(error, "the file")
        }
    }

    /// Hashes chunks of bytes, such as those of a `ResponseStream`, off the caller's actor.
    ///
    /// - Throws: `NetworkError`: that of the sequence, or of kind `.requestBody` with any other error of the sequence as
    ///   the `underlying` error; `.cancelled` if the Swift task was cancelled; `.unsupported` for a function that the
    ///   system's configuration forbids.
    public init<Chunks: AsyncSequence & Sendable>(
        _ algorithm: Algorithm, of chunks: Chunks
    ) async throws(NetworkError) where Chunks.Element == Data {
        do {
            self = try await Self.hash(ChunkSource(chunks), algorithm)
        } catch {
            throw Self.problem(error, "the sequence")
        }
    }

    /// Hashes the bytes of a form, as they are sent.
    init(_ algorithm: Algorithm, of form: MultipartForm) async throws(NetworkError) {
        do {
            self = try await Self.hash(try await form.makeSource(), algorithm)
        } catch {
            throw Self.problem(error, "the form")
        }
    }

    @concurrent
    private static func hash(_ source: sending ChunkSource, _ algorithm: Algorithm) async throws -> FileDigest {
        guard let hash = FileHash(algorithm) else {
            let reason = "the system's configuration forbids \(algorithm.rawValue)"
            throw NetworkError(.unsupported, reason: reason)
        }
        while let bytes = try await source.next() {
            try Task.checkCancellation()
            hash.update(bytes)
        }
        try Task.checkCancellation()
        return hash.finalize()
    }

    private static func problem(_ error: any Error, _ source: String) -> NetworkError {
        if let error = error as? NetworkError { return error }
        if error is CancellationError { return NetworkError(.cancelled, reason: "the task was cancelled") }
        let isFile = error is FileFailure || error is FilePath.NotAFile
        let reason = "\(source) cannot be read: \(error)"
        return NetworkError(isFile ? .fileSystem : .requestBody, reason: reason, underlying: error)
    }
}
