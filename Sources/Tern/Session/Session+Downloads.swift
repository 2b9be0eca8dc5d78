#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session {
    /// A task that downloads a response to a file. Starts at once unless told otherwise.
    ///
    /// A URL with another scheme than `file` fails the task with `.invalidRequest`, a folder, device, pipe or socket at the
    /// destination with `.fileSystem`, whatever `options` say, both before anything is sent.
    public nonisolated func download(
        _ request: Request, to file: URL, options: Download.Options = Download.Options(),
        startsImmediately: Bool = true
    ) -> SessionTask<URL> {
        makeDownload(request, to: file, options, nil, startsImmediately)
    }

    /// A task that downloads a response to a file that `destination` names after the body has come; nil leaves it in the
    /// temporary folder. Starts at once unless told otherwise.
    public nonisolated func download(
        _ request: Request, options: Download.Options = Download.Options(), startsImmediately: Bool = true,
        destination: Download.Destination?
    ) -> SessionTask<URL> {
        makeDownload(request, .ask(destination), options, nil, startsImmediately)
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
        do throws(FilePath.NoFile) {
            let folder = try partialFolder.map { url throws(FilePath.NoFile) in try FilePath.of(url) }
            let resumed = DownloadPlan.Resumed(data: resumeData, folder: folder)
            return makeDownload(request, to: file, options, resumed, startsImmediately)
        } catch {
            let failure = TransferFailure(.invalidRequest, "the folder of the partial file: \(error)")
            return context.failedTask(request, NetworkError(failure, request: request))
        }
    }

    private nonisolated func makeDownload(
        _ request: Request, to file: URL, _ options: Download.Options, _ resumed: DownloadPlan.Resumed?,
        _ startsImmediately: Bool
    ) -> SessionTask<URL> {
        do throws(FilePath.NoFile) {
            return makeDownload(request, .file(try FilePath.of(file)), options, resumed, startsImmediately)
        } catch {
            let failure = TransferFailure(.invalidRequest, "the destination \(error)")
            return context.failedTask(request, NetworkError(failure, request: request))
        }
    }

    private nonisolated func makeDownload(
        _ request: Request, _ goal: DownloadPlan.Goal, _ options: Download.Options, _ resumed: DownloadPlan.Resumed?,
        _ startsImmediately: Bool
    ) -> SessionTask<URL> {
        do throws(NetworkError) {
            var plan = try RequestPlan(request, context, delivery: .streamed)
            if resumed != nil, plan.headers.contains("Range") || plan.headers.contains("If-Range") {
                let reason = "a download that is continued sets Range and If-Range itself"
                throw NetworkError(TransferFailure(.invalidRequest, reason), request: request)
            }
            if let problem = resumed?.data.invalidity {
                let failure = TransferFailure(.invalidRequest, "the download cannot be continued: \(problem)")
                throw NetworkError(failure, request: request)
            }
            if options.isResumable || resumed != nil { plan = plan.askingForIdentity() }
            let download = DownloadPlan(request: plan, goal: goal, options: options, resumed: resumed)
            let task = context.makeTask(plan, startsImmediately: false, download.operation)
            // Whoever asks before the start is told of the offset too.
            if let resumed { task.record.meter.startDownload(at: resumed.data.offset) }
            if startsImmediately { task.resume() }
            return task
        } catch {
            return context.failedTask(request, error)
        }
    }

    /// A response as it comes. Starts at once.
    public nonisolated func stream(_ request: Request) -> ResponseStream {
        do {
            let plan = try RequestPlan(request, context, delivery: .streamed)
            return ResponseStream(plan, context)
        } catch {
            return ResponseStream(failed: error, self)
        }
    }
}
