#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session {
    /// Creates a task that downloads a response to a file. The task starts at once, unless `startsImmediately` is
    /// false.
    ///
    /// If the URL has another scheme than `file`, the task fails with `.invalidRequest`. If a folder, device, pipe or
    /// socket is at the destination, it fails with `.fileSystem` regardless of `options`. Both happen before anything
    /// is sent.
    public nonisolated func download(
        _ request: Request, to file: URL, options: Download.Options = Download.Options(),
        startsImmediately: Bool = true
    ) -> SessionTask<URL> {
        makeDownload(request, to: file, options: options, startsImmediately: startsImmediately)
    }

    /// Creates a task that downloads a response to a file that `destination` names after the body has arrived; nil
    /// leaves the file in the temporary folder. The task starts at once, unless `startsImmediately` is false.
    public nonisolated func download(
        _ request: Request, options: Download.Options = Download.Options(), startsImmediately: Bool = true,
        destination: Download.Destination?
    ) -> SessionTask<URL> {
        makeDownload(request, destination: .ask(destination), options: options, startsImmediately: startsImmediately)
    }

    /// Creates a task that continues a download where it stopped. The task starts at once, unless `startsImmediately`
    /// is false.
    ///
    /// Without `partialFolder`, the partial file is looked for in the folder of `file` and in the temporary folder. It
    /// must be a regular file of this user. If it no longer exists in the folder that it was made in, the download
    /// starts from the beginning. If it was made in another folder and is in neither of these, the task fails with
    /// `.fileSystem`.
    ///
    /// - Parameter partialFolder: The only folder in which the partial file is looked for. nil, the default, stands for
    ///   the folder of `file` and the temporary folder.
    public nonisolated func download(
        _ request: Request, resuming resumeData: ResumeData, to file: URL, partialFolder: URL? = nil,
        options: Download.Options = Download.Options(isResumable: true), startsImmediately: Bool = true
    ) -> SessionTask<URL> {
        do throws(FilePath.NotAFile) {
            let folder = try partialFolder.map { url throws(FilePath.NotAFile) in try FilePath.of(url) }
            let resumed = DownloadExecution.Resumed(data: resumeData, folder: folder)
            return makeDownload(
                request, to: file, options: options, resumed: resumed, startsImmediately: startsImmediately)
        } catch {
            let failure = FailureCause(.invalidRequest, "the folder of the partial file: \(error)")
            return tasks.failedTask(request, NetworkError(failure, request: request))
        }
    }

    private nonisolated func makeDownload(
        _ request: Request, to file: URL, options: Download.Options, resumed: DownloadExecution.Resumed? = nil,
        startsImmediately: Bool
    ) -> SessionTask<URL> {
        do throws(FilePath.NotAFile) {
            return makeDownload(
                request, destination: .file(try FilePath.of(file)), options: options, resumed: resumed,
                startsImmediately: startsImmediately)
        } catch {
            let failure = FailureCause(.invalidRequest, "the destination \(error)")
            return tasks.failedTask(request, NetworkError(failure, request: request))
        }
    }

    private nonisolated func makeDownload(
        _ request: Request, destination: DownloadExecution.Destination, options: Download.Options,
        resumed: DownloadExecution.Resumed? = nil, startsImmediately: Bool
    ) -> SessionTask<URL> {
        do throws(NetworkError) {
            var prepared = try PreparedRequest(request, registry: tasks, delivery: .streamed)
            if resumed != nil, prepared.headers.contains("Range") || prepared.headers.contains("If-Range") {
                let reason = "a download that is continued sets Range and If-Range itself"
                throw NetworkError(FailureCause(.invalidRequest, reason), request: request)
            }
            if let problem = resumed?.data.invalidity {
                let failure = FailureCause(.invalidRequest, "the download cannot be continued: \(problem)")
                throw NetworkError(failure, request: request)
            }
            if options.isResumable || resumed != nil { prepared = prepared.requestingIdentity() }
            let task = tasks.makeTask(prepared, startsImmediately: startsImmediately) {
                [prepared] record throws(NetworkError) in
                try await DownloadExecution(
                    request: prepared, record: record, destination: destination, options: options, resumed: resumed
                ).run()
            }
            // The progress shows the offset before the start, too.
            if let data = resumed?.data {
                task.record.meter.startDownload(at: data.offset, of: data.totalBytes)
            }
            if startsImmediately { task.resume() }
            return task
        } catch {
            return tasks.failedTask(request, error)
        }
    }
}
