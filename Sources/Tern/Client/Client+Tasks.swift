#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// The forms with a handle: progress both ways, pause, resume, cancel. They start at once, unless told otherwise, and a
// request that cannot be made gives a task that has already failed.

extension Client {
    /// A task that sends a request and decodes its response.
    public func task<T: Decodable & Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, startsImmediately: Bool = true, as type: T.Type = T.self
    ) -> SessionTask<T> {
        make(method, path, query, headers, body) { request in
            session.valueTask(for: request, decode: .automatic, startsImmediately: startsImmediately)
        }
    }

    /// A task that sends a request and gives the body of its response.
    @discardableResult
    public func task(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, startsImmediately: Bool = true
    ) -> SessionTask<Data> {
        make(method, path, query, headers, body) { request in
            session.valueTask(for: request, decode: .data, startsImmediately: startsImmediately)
        }
    }

    /// Uploads a file, read piece by piece, and decodes the response. `uploadProgress` counts the file's bytes.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, file: URL, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self
    ) -> SessionTask<T> {
        task(method, path, headers: headers, body: .file(file), startsImmediately: startsImmediately, as: type)
    }

    /// Uploads a file, read piece by piece, and gives the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, file: URL, headers: Headers = [:],
        startsImmediately: Bool = true
    ) -> SessionTask<Data> {
        task(method, path, headers: headers, body: .file(file), startsImmediately: startsImmediately)
    }

    /// Uploads any body — data, a file, a stream with or without a length — and decodes the response.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, body: Request.Body, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self
    ) -> SessionTask<T> {
        task(method, path, headers: headers, body: body, startsImmediately: startsImmediately, as: type)
    }

    /// Uploads any body — data, a file, a stream with or without a length — and gives the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, body: Request.Body, headers: Headers = [:],
        startsImmediately: Bool = true
    ) -> SessionTask<Data> {
        task(method, path, headers: headers, body: body, startsImmediately: startsImmediately)
    }

    /// Uploads a multipart form, its parts read piece by piece, and decodes the response.
    public func upload<T: Decodable & Sendable>(
        _ path: String, method: Request.Method = .post, multipart form: MultipartForm, headers: Headers = [:],
        startsImmediately: Bool = true, as type: T.Type = T.self
    ) -> SessionTask<T> {
        task(
            method, path, headers: headers, body: .multipart(form), startsImmediately: startsImmediately, as: type)
    }

    /// Uploads a multipart form, its parts read piece by piece, and gives the body of the response.
    @discardableResult
    public func upload(
        _ path: String, method: Request.Method = .post, multipart form: MultipartForm, headers: Headers = [:],
        startsImmediately: Bool = true
    ) -> SessionTask<Data> {
        task(method, path, headers: headers, body: .multipart(form), startsImmediately: startsImmediately)
    }

    /// Downloads to a file: written under a temporary name in the same folder, put in its place in one step after the
    /// status was accepted and the whole body has come. Nothing is left behind by a failure or cancellation, unless the
    /// download is resumable.
    ///
    /// The task's value is the file's URL: with `.keepBoth`, or a session-wide destination, not the one given.
    ///
    /// A URL with another scheme than `file` fails the task with `.invalidRequest`, a folder, device, pipe or socket at the
    /// destination with `.fileSystem`, whatever `options` say, both before anything is sent.
    @discardableResult
    public func download(
        _ path: String, to file: URL, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true
    ) -> SessionTask<URL> {
        make(.get, path, query, headers, .none) { request in
            session.download(request, to: file, options: options, startsImmediately: startsImmediately)
        }
    }

    /// Downloads to a file that `destination` names once the status was accepted and the whole body has come. nil leaves
    /// the file in the temporary folder; it is then the task's value, and the caller's to delete.
    @discardableResult
    public func download(
        _ path: String, options: Download.Options = Download.Options(), query: Request.Query = [:],
        headers: Headers = [:], startsImmediately: Bool = true, destination: Download.Destination?
    ) -> SessionTask<URL> {
        make(.get, path, query, headers, .none) { request in
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
        startsImmediately: Bool = true
    ) -> SessionTask<URL> {
        make(.get, resumeData.url, [:], headers, .none) { request in
            session.download(
                request, resuming: resumeData, to: file, partialFolder: partialFolder, options: options,
                startsImmediately: startsImmediately)
        }
    }

    /// A response as it comes: chunks, bytes or lines, with back-pressure down to the socket. Starts at once.
    public func stream(
        _ path: String, method: Request.Method = .get, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none
    ) -> ResponseStream {
        do {
            return session.stream(try request(method, path, query: query, headers: headers, body: body))
        } catch {
            return ResponseStream(failed: error, session)
        }
    }

    private func make<Value: Sendable>(
        _ method: Request.Method, _ path: String, _ query: Request.Query, _ headers: Headers, _ body: Request.Body,
        _ task: (Request) -> SessionTask<Value>
    ) -> SessionTask<Value> {
        do {
            return task(try request(method, path, query: query, headers: headers, body: body))
        } catch {
            return session.context.failedTask(nil, error)
        }
    }
}
