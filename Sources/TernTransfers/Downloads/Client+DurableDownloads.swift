public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Client {
    /// Downloads a file, and continues by itself whatever interrupts it: a connection that breaks, a server that is
    /// busy, a machine without a network, and the end of the process.
    ///
    /// ```swift
    /// let task = client.download("big.iso", to: file, resuming: .automatically)
    /// for await progress in task.progress { print(progress.fractionCompleted ?? 0) }
    /// let file = try await task.value.file
    /// ```
    ///
    /// The bytes so far are beside the destination in `.big.iso.tern`, and their description in `.big.iso.tern.json`,
    /// which only their owner can read. The next download to the same destination continues them, in this process or a
    /// later one, and also after the folder was moved. The file gets its name in one step when it is complete and
    /// verified; the two files are then gone. A killed process loses at most 256 KiB of what it read from an HTTP/1
    /// connection.
    ///
    /// The part is continued only if a strong validator proves that the file is the same (RFC 9110 §13.1.5). Otherwise
    /// the download starts over, and its trace says why. The download starts at once. Only one download can have a
    /// destination at a time: ``TernTransfers/DurableDownloadOptions/contention``.
    ///
    /// - Parameters:
    ///   - path: The path, resolved against the base URL, or an absolute URL.
    ///   - file: The destination. Its URL has the scheme `file`.
    ///   - resumption: `.automatically`.
    ///   - options: The verification, the limits, and the rules for trying again.
    ///   - query: The items of the query.
    ///   - headers: The header fields, without `Range` and `If-Range`.
    ///   - configure: Changes the request before it is sent.
    @discardableResult
    public func download(
        _ path: String, to file: URL, resuming resumption: DownloadResumption,
        options: DurableDownloadOptions = DurableDownloadOptions(), query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) -> DurableDownloadTask {
        let request = Result { () throws(NetworkError) in
            try self.request(.get, path, query: query, headers: headers, configure: configure)
        }
        return DurableDownloadTask(download: .started(request, session: session, to: file, options: options))
    }
}

extension Session {
    /// Downloads a file like `Client.download(_:to:resuming:options:query:headers:configure:)`. The method of the
    /// request is GET.
    @discardableResult
    public nonisolated func download(
        _ request: Request, to file: URL, resuming resumption: DownloadResumption,
        options: DurableDownloadOptions = DurableDownloadOptions()
    ) -> DurableDownloadTask {
        DurableDownloadTask(download: .started(.success(request), session: self, to: file, options: options))
    }
}
