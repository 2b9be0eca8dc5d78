#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// The forms with a handle: progress in both directions, pause, resume, cancel. The tasks start at once, unless
// `startsImmediately` is false. `configure` changes the request before it is sent. For a request that cannot be
// created, the task has already failed.

extension Client {
    /// Creates a task that sends a request and decodes its response.
    public func task<T: Decodable & Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, startsImmediately: Bool = true, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) -> SessionTask<T> {
        makeTask(method, path, query: query, headers: headers, body: body, configure: configure) { request in
            session.valueTask(for: request, decode: .automatic, startsImmediately: startsImmediately)
        }
    }

    /// Creates a task that sends a request and returns the body of its response.
    @discardableResult
    public func task(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<Data> {
        makeTask(method, path, query: query, headers: headers, body: body, configure: configure) { request in
            session.valueTask(for: request, decode: .data, startsImmediately: startsImmediately)
        }
    }

    /// Uploads a file piece by piece and decodes the response. `uploadProgress` counts the file's bytes.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, file: URL, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) -> SessionTask<T> {
        task(
            method, path, headers: headers, body: .file(file), startsImmediately: startsImmediately, as: type,
            configure: configure)
    }

    /// Uploads a file piece by piece and returns the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, file: URL, headers: Headers = [:],
        startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<Data> {
        task(
            method, path, headers: headers, body: .file(file), startsImmediately: startsImmediately,
            configure: configure)
    }

    /// Uploads any body (data, a file, a stream with or without a length) and decodes the response.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, body: Request.Body, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) -> SessionTask<T> {
        task(
            method, path, headers: headers, body: body, startsImmediately: startsImmediately, as: type,
            configure: configure)
    }

    /// Uploads any body (data, a file, a stream with or without a length) and returns the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, body: Request.Body, headers: Headers = [:],
        startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<Data> {
        task(
            method, path, headers: headers, body: body, startsImmediately: startsImmediately,
            configure: configure)
    }

    /// Uploads a multipart form piece by piece and decodes the response.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, multipart form: MultipartForm, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) -> SessionTask<T> {
        task(
            method, path, headers: headers, body: .multipart(form), startsImmediately: startsImmediately, as: type,
            configure: configure)
    }

    /// Uploads a multipart form piece by piece and returns the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, multipart form: MultipartForm, headers: Headers = [:],
        startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<Data> {
        task(
            method, path, headers: headers, body: .multipart(form), startsImmediately: startsImmediately,
            configure: configure)
    }

    /// Downloads a response to a file. The file is written under a temporary name in the same folder, and moved to its
    /// destination in one step after the status was accepted and the whole body has arrived. A failed or cancelled
    /// download leaves nothing behind, unless it is resumable.
    ///
    /// The task's value is the URL of the file. With `.keepBoth`, or with a destination of the session, it differs from
    /// `file`.
    ///
    /// If the URL has another scheme than `file`, the task fails with `.invalidRequest`. If a folder, device, pipe or
    /// socket is at the destination, it fails with `.fileSystem` regardless of `options`. Both happen before anything
    /// is sent.
    @discardableResult
    public func download(
        _ path: String, to file: URL, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<URL> {
        makeTask(.get, path, query: query, headers: headers, configure: configure) { request in
            session.download(request, to: file, options: options, startsImmediately: startsImmediately)
        }
    }

    /// Downloads a response to a file that `destination` names once the status was accepted and the whole body has
    /// arrived. nil leaves the file in the temporary folder. Its URL is then the task's value, and the caller deletes
    /// it.
    @discardableResult
    public func download(
        _ path: String, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true, destination: Download.Destination?
    ) -> SessionTask<URL> {
        makeTask(.get, path, query: query, headers: headers) { request in
            session.download(
                request, options: options, startsImmediately: startsImmediately, destination: destination)
        }
    }

    /// Continues a download where it stopped. The server is asked for the rest only if the file is still the same
    /// (If-Range). If the file has changed or the partial file no longer exists, the download starts from the
    /// beginning. While one download continues a partial file, a second download that continues the same file fails
    /// with `.fileSystem`.
    ///
    /// Without `partialFolder`, the partial file is looked for in the folder of `file` and in the temporary folder. It
    /// must be a regular file of this user. If it was made in another folder and is in neither of these, the task fails
    /// with `.fileSystem`.
    ///
    /// - Parameter partialFolder: The only folder in which the partial file is looked for. nil, the default, stands for
    ///   the folder of `file` and the temporary folder.
    @discardableResult
    public func download(
        resuming resumeData: ResumeData, to file: URL, partialFolder: URL? = nil,
        options: Download.Options = Download.Options(isResumable: true), headers: Headers = [:],
        startsImmediately: Bool = true,
        configure: Request.Change = { _ in }
    ) -> SessionTask<URL> {
        makeTask(.get, resumeData.url, headers: headers, configure: configure) { request in
            session.download(
                request, resuming: resumeData, to: file, partialFolder: partialFolder, options: options,
                startsImmediately: startsImmediately)
        }
    }

    /// Sends a request and returns its response as a stream of chunks, bytes or lines, with back-pressure to the
    /// socket. Starts at once.
    public func stream(
        _ path: String, method: Request.Method = .get, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, configure: Request.Change = { _ in }
    ) -> ResponseStream {
        do {
            return session.stream(
                try request(method, path, query: query, headers: headers, body: body, configure: configure))
        } catch {
            return ResponseStream(failed: error, session.tasks)
        }
    }

    private func makeTask<Value: Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers,
        body: Request.Body = .none, configure: Request.Change = { _ in },
        task: (Request) -> SessionTask<Value>
    ) -> SessionTask<Value> {
        do {
            return task(try request(method, path, query: query, headers: headers, body: body, configure: configure))
        } catch {
            return session.tasks.failedTask(nil, error)
        }
    }
}

extension Client {
    /// Downloads a response to the file at a path of the file system, like
    /// ``download(_:to:options:query:headers:startsImmediately:configure:)-(_,URL,_,_,_,_,_)``. A relative path begins
    /// at the current folder of the process. A leading tilde is not expanded.
    @discardableResult
    public func download(
        _ path: String, to filePath: String, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true, configure: Request.Change = { _ in }
    ) -> SessionTask<URL> {
        download(
            path, to: FilePath.url(of: filePath), options: options, query: query, headers: headers,
            startsImmediately: startsImmediately, configure: configure)
    }
}
