public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Client {
    /// Uploads a file, and continues by itself whatever interrupts it: a connection that breaks, a server that is busy,
    /// a machine without a network, and the end of the process.
    ///
    /// ```swift
    /// let task = client.upload(file, resuming: .tus("files/"))
    /// for await progress in task.progress { print(progress.fractionCompleted ?? 0) }
    /// print(try await task.value.url)
    /// ```
    ///
    /// The server must have one of the protocols of ``TernTransfers/UploadResumption``. The upload's description is
    /// beside the file, in a hidden file that only its owner can read. The next upload of the same file to the same
    /// place asks the server how much it has, and sends the rest, in this process or a later one. A file that has
    /// changed since starts over; one that changes while it is sent fails with `.requestBody`. The description is
    /// removed when the server has the whole file.
    ///
    /// A request of the upload that fails in a way that can pass is followed by another one, by the rules of
    /// ``TernTransfers/DurableUploadOptions/retry``. The upload starts at once. Only one upload of a file to the same
    /// place can run at a time; another one fails with ``Tern/NetworkError/Kind/uploadInProgress``.
    ///
    /// - Parameters:
    ///   - file: The file. Its URL has the scheme `file`.
    ///   - resumption: The protocol, and the place where uploads are created.
    ///   - options: The description of the file, the limits, and the rules for trying again.
    ///   - headers: The header fields of each request. Secret fields are sent to the origin of the endpoint alone.
    ///   - configure: Changes the request before it is sent.
    @discardableResult
    public func upload(
        _ file: URL, resuming resumption: UploadResumption, options: DurableUploadOptions = DurableUploadOptions(),
        headers: Headers = [:], configure: Request.Change = { _ in }
    ) -> DurableUploadTask {
        let request = Result { () throws(NetworkError) in
            try self.request(resumption.method, resumption.endpoint, headers: headers, configure: configure)
        }
        return DurableUploadTask(
            upload: DurableUpload.started(
                file, request, kind: resumption.kind, session: session, options: options))
    }

    /// Uploads a file in one request to any server, and sends all of it again after a failure that can pass: a
    /// connection that breaks, a server that is busy, and a machine without a network.
    ///
    /// ```swift
    /// let task = client.upload(photo, retrying: .put(presignedURL))
    /// print(try await task.value.bytes)
    /// ```
    ///
    /// Nothing is continued: after a failure, and in a later process, the upload begins again with the first byte, and
    /// its trace says so. The server can receive the file more than once, because a response can be lost. A failure that
    /// does not pass, such as the 403 of a presigned URL that has expired, ends the upload at once, unless
    /// ``TernTransfers/DurableUploadOptions/url`` gives another URL.
    ///
    /// A file that changes between two attempts, or while it is sent, fails with `.requestBody`. The hidden file beside
    /// the file, which a killed process leaves, has nothing of the URL. The upload starts at once. Only one upload of a
    /// file to the same place can run at a time; another one fails with
    /// ``Tern/NetworkError/Kind/uploadInProgress``. Items of the query that sign a URL do not count for the place.
    ///
    /// - Parameters:
    ///   - file: The file. Its URL has the scheme `file`.
    ///   - upload: The request, with or without a form.
    ///   - options: The description of the file, the limits, and the rules for trying again.
    ///   - headers: The header fields of each attempt.
    ///   - configure: Changes the request before it is sent.
    @discardableResult
    public func upload(
        _ file: URL, retrying upload: WholeUpload, options: DurableUploadOptions = DurableUploadOptions(),
        headers: Headers = [:], configure: Request.Change = { _ in }
    ) -> DurableUploadTask {
        let method: Request.Method = upload.form == nil ? .put : .post
        let request = Result { () throws(NetworkError) in
            try self.request(method, upload.endpoint, headers: headers, configure: configure)
        }
        return DurableUploadTask(
            upload: RetriedUpload.started(file, request, form: upload.form, session: session, options: options))
    }
}
