import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The attempts of a durable upload of either kind.
typealias UploadAttempts = DurableAttempts<DurableUploadEvent, DurableUploadResult>

/// The actor of a durable upload of either kind, as its handle sees it.
protocol RunningUpload: Actor {
    nonisolated var attempts: UploadAttempts { get }
    /// The file.
    nonisolated var source: URL { get }
    /// The file and the place, without secrets.
    nonisolated var description: String { get }
    /// Continues a paused upload.
    nonisolated func resume()
}

extension RunningUpload {
    /// Gives the progress the size of the file as its total, before the upload itself does.
    nonisolated func measure() async {
        // `try?`: the upload reports a file that cannot be read.
        if let length = try? await FileStore.shared.length(ofFile: source.path) {
            attempts.meter.setMeasuredBody(length)
        }
    }
}

extension UploadAttempts {
    /// Checks everything that needs no file, and returns the files of an upload.
    ///
    /// - Parameters:
    ///   - problem: The reason why no upload can have its options; nil if they are valid.
    ///   - digest: The digest that identifies the place.
    func file(
        _ source: URL, _ options: DurableUploadOptions, problem: String?, digest: String, system: any FileSystem
    ) throws(NetworkError) -> UploadFile {
        let path = try path(of: source, problem: problem)
        let control = FilePath.join(
            options.controlFolder ?? FilePath.folder(of: path),
            UploadControl.name(of: FilePath.name(of: path), endpointDigest: digest))
        return UploadFile(path: path, controlPath: control, system: system)
    }

    /// Takes the lock of an upload, and returns what the control file says.
    func lock(_ file: UploadFile, of source: URL) async throws(NetworkError) -> UploadFile.Found {
        let found = try await fileCall("the control file cannot be locked", try await file.acquire())
        guard let found else { throw inProgress(source) }
        if case .laterVersion(let version) = found {
            await file.close(keepsControl: true)
            throw error(
                .unsupportedControlFile,
                "a later version of Tern wrote the control file (version \(version)): \(file.controlPath)")
        }
        return found
    }

    func inProgress(_ source: URL) -> NetworkError {
        error(.uploadInProgress, "another upload of \(source.path) is running")
    }

    /// The file and the request, without secrets.
    func description(of source: URL) -> String {
        switch firstRequest {
        case .success(let request): "\(source.path) to \(request)"
        case .failure(let error): "\(error)"
        }
    }
}

extension DurableUploadOptions {
    /// Returns the limit on the rate of an upload of a queue, which can change and is shared with others; nil for any
    /// other upload.
    func sharedThrottle(_ time: TransferTime) -> DownloadThrottle? {
        hooks.map { DownloadThrottle(rate: throttle, time: time, shared: $0.throttles) }
    }
}
