import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one upload of a file in one request: lock → send everything, as often as needed.
///
/// The functions stand in the order in which they run. The file is read on the thread of ``UploadFile``. The control
/// file holds the lock, and tells a later process that this one had begun; nothing of the URL is in it.
actor RetriedUpload: RunningUpload {
    nonisolated let attempts: UploadAttempts
    private let options: DurableUploadOptions
    nonisolated let source: URL
    private let form: WholeUpload.Form?
    private let system: any FileSystem

    private var schedule: RetrySchedule
    /// The file as the first attempt has found it; nil before.
    private var identity: DiskCall.Identity?
    /// The reason why the next attempt begins again; nil for the first one.
    private var restart: UploadStartOverReason?
    /// Whether the present attempt has sent bytes.
    private var hasMovedBytes = false

    /// The statuses after which the protocols of resumable uploads ask the server, and that have another meaning here.
    private static let protocolStatuses: Set = [409, 460]

    init(
        _ source: URL, _ request: Result<Request, NetworkError>, form: WholeUpload.Form?, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) {
        attempts = DurableAttempts(
            request, session: session, retry: options.retry, clock: options.clock, newURL: options.url,
            continues: false)
        self.source = source
        self.form = form
        self.options = options
        self.system = system
        var retry = options.retry
        retry.policy.statuses.subtract(Self.protocolStatuses)
        schedule = RetrySchedule(retry)
    }

    /// Returns an upload that has started.
    static func started(
        _ source: URL, _ request: Result<Request, NetworkError>, form: WholeUpload.Form?, session: Session,
        options: DurableUploadOptions, system: any FileSystem = PosixFileSystem()
    ) -> RetriedUpload {
        let upload = RetriedUpload(source, request, form: form, session: session, options: options, system: system)
        upload.attempts.start(on: upload) { () throws(NetworkError) in try await upload.perform() }
        return upload
    }

    /// The file and the request, without secrets. Nonisolated: both never change.
    nonisolated var description: String { attempts.description(of: source) }

    nonisolated func resume() {
        attempts.resume(on: self) { () throws(NetworkError) in try await self.perform() }
    }

    // MARK: From call to response

    private func perform() async throws(NetworkError) -> DurableUploadResult {
        let request = try attempts.firstRequest.get()
        // A signature of the URL changes from call to call.
        let digest = ControlFile.digest(of: request.urlString)
        let file = try attempts.file(source, options, problem: options.wholeProblem, digest: digest, system: system)
        do throws(NetworkError) {
            let identity = try await attempts.fileCall("the file cannot be read", try await file.open())
            try checkUnchanged(identity)
            if attempts.count == 0 { publish(0, of: identity.length) }
            try await lock(UploadSource(file: file, identity: identity, endpointDigest: digest))
            let response = try await send(try await content(of: file, identity.length))
            let result = try result(response, bytes: identity.length)
            if let hooks = options.hooks { try await hooks.store(result, of: request) }
            await file.close(keepsControl: false)
            return result
        } catch {
            await file.close(keepsControl: false)
            throw attempts.ending(error, rest: "the server keeps none")
        }
    }

    /// Throws if the file is not the one of the first attempt. A pause can be between both.
    private func checkUnchanged(_ found: DiskCall.Identity) throws(NetworkError) {
        guard identity == nil || identity == found else {
            throw attempts.error(
                .requestBody, "the file cannot be read: \(source.path) changed between two attempts of the upload")
        }
        identity = found
    }

    /// Takes the lock, and finds out whether an earlier process was ended while it sent the file.
    private func lock(_ source: UploadSource) async throws(NetworkError) {
        switch try await attempts.lock(source.file, of: self.source) {
        case .nothing, .laterVersion: break
        case .control(let control) where control.kind == .whole:
            restart = control.describes(source.identity) ? .notResumable : .fileChanged
        case .control, .invalid: restart = .controlInvalid
        }
        let control = UploadControl(
            kind: .whole, endpointDigest: source.endpointDigest, url: "", file: source.identity)
        try await attempts.fileCall("the control file cannot be written", try await source.file.store(control))
    }

    private func result(_ response: Response<Data>, bytes: Int64) throws(NetworkError) -> DurableUploadResult {
        guard let url = Self.url(named: response.head) else {
            throw attempts.error(.invalidRequest, "the URL of the uploaded file is not valid")
        }
        publish(bytes, of: bytes)
        return DurableUploadResult(
            url: url, bytes: bytes, sentBytes: attempts.movedBytes, attempts: attempts.count,
            duration: attempts.time.elapsed(), response: response, trace: attempts.trace)
    }

    /// Returns the URL of what was uploaded, without a query, which can hold a signature.
    private static func url(named head: ResponseHead) -> URL? {
        var target = head.target
        // `try?`: without a valid location, the URL is that of the request.
        if head.status == 201, let location = head.headers["Location"], let named = try? target.resolving(location),
            named.isSecure || !target.isSecure
        {
            target = named
        }
        return URL(string: target.origin + target.path)
    }

    private func publish(_ sent: Int64, of length: Int64) {
        attempts.meter.store(sent: sent, of: length, received: 0, of: nil)
    }

    // MARK: The body

    /// The body of each attempt, and the fields that describe it.
    private struct Content {
        let file: UploadFile
        let body: Request.Body
        let fields: Headers
        /// The size of the file.
        let length: Int64
        /// The number of bytes of the body before those of the file.
        let start: Int64

        /// Returns the number of bytes of the file among the first bytes of the body.
        func fileBytes(_ sent: Int64) -> Int64 { min(max(0, sent - start), length) }
    }

    private func content(of file: UploadFile, _ length: Int64) async throws(NetworkError) -> Content {
        let throttle = options.sharedThrottle(attempts.time)
        let range = FileRange(file: file, start: 0, end: length, throttle: throttle)
        // Read without the limit on the rate, for the digest.
        let plain = FileRange(file: file, start: 0, end: length)
        var (body, fields, start) = (Request.Body.none, Headers(), Int64(0))
        if let form {
            let empty = form.withoutFile
            func adding(_ range: FileRange) -> MultipartForm {
                form.adding(
                    range, to: empty, filename: source.lastPathComponent, length: length,
                    contentType: options.contentType)
            }
            let message = adding(range)
            start = try await formLength(message) - length - message.lengthBehindLastPart
            body = .multipart(message)
            if let algorithm = options.checksum {
                let hashed = adding(plain)
                let digest = await Result { () async throws(NetworkError) in
                    try await FileDigest(algorithm, of: hashed)
                }
                fields["Content-Digest"] = try field(digest)
            }
        } else {
            body = .chunks(range, length: length, contentType: options.contentType)
            if let algorithm = options.checksum {
                let digest = await Result { () async throws(NetworkError) in
                    try await FileDigest(algorithm, of: plain)
                }
                // Without a coding, the content is the representation.
                for name in ["Content-Digest", "Repr-Digest"] { fields[name] = try field(digest) }
            }
        }
        if throttle == nil, let rate = options.throttle {
            body = body.throttled(.bytesPerSecond(rate, clock: options.clock))
        }
        return Content(file: file, body: body, fields: fields, length: length, start: start)
    }

    private func formLength(_ form: MultipartForm) async throws(NetworkError) -> Int64 {
        do {
            return try await form.length()
        } catch {
            throw attempts.error(.requestBody, "the form cannot be sent: \(error)", underlying: error)
        }
    }

    /// Returns a digest as a field has it, or throws the error of the upload.
    private func field(_ digest: Result<FileDigest, NetworkError>) throws(NetworkError) -> String {
        switch digest {
        case .success(let digest): return UploadMessages.digestField(digest)
        case .failure(let error): throw attempts.error(error.kind, error.reason, underlying: error.underlying)
        }
    }

    // MARK: Attempts

    /// Sends the file, in as many attempts as it takes.
    private func send(_ content: Content) async throws(NetworkError) -> Response<Data> {
        while true {
            hasMovedBytes = false
            do throws(NetworkError) {
                return try await attempt(content)
            } catch {
                // The file cannot be read, or has changed.
                if error.kind == .requestBody { throw error }
                var request = try attempts.request.get()
                // The caller has asked for the repetition of a request that the server can have received.
                request.method = .put
                schedule = try await attempts.next(
                    schedule,
                    after: RetrySchedule.Failure(error: error, request: request, hasMovedBytes: hasMovedBytes))
            }
        }
    }

    private func attempt(_ content: Content) async throws(NetworkError) -> Response<Data> {
        attempts.begin()
        if let hooks = options.hooks {
            attempts.setRequest(try await hooks.request(try attempts.firstRequest.get()))
        }
        let problem = "the file cannot be read"
        try await attempts.fileCall(problem, kind: .requestBody, try await content.file.checkInPlace())
        var request = try attempts.prepared(try attempts.request.get())
        request.headers = request.headers.overriding(with: content.fields)
        request.body = content.body
        attempts.record(restart.map { DurableUploadEvent.startedOver($0) } ?? .started)
        restart = .notResumable
        attempts.meter.beginAttempt(sending: content.length)
        let task = attempts.session.task(for: request, startsImmediately: true)
        let meter = attempts.meter
        // Ends with the task.
        async let watching: Void = {
            var attempt = 1
            for await progress in task.uploadProgress where progress.totalBytes != 0 || content.length == 0 {
                // The session sends a request again by itself, such as after a redirect.
                if progress.attempt > attempt { meter.beginAttempt(sending: content.length) }
                attempt = progress.attempt
                let sent = content.fileBytes(progress.completedBytes)
                meter.store(sent: sent, of: content.length, received: 0, of: nil)
            }
        }()
        let result = await task.end
        await watching
        switch result {
        case .success(let response):
            attempts.addMoved(content.length)
            return response
        case .failure(let error):
            attempts.addMoved(content.fileBytes(error.metrics?.sentBytes ?? 0))
            hasMovedBytes = task.uploadProgressNow.completedBytes > 0
            throw error
        }
    }
}

extension WholeUpload.Form {
    /// The form with all fields but the file.
    fileprivate var withoutFile: MultipartForm {
        var form = MultipartForm()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { form.append(value, named: name) }
        return form
    }

    /// Returns the form with the file as its last field.
    fileprivate func adding(
        _ chunks: FileRange, to form: MultipartForm, filename: String, length: Int64, contentType: String
    ) -> MultipartForm {
        var form = form
        form.append(
            replayable: chunks, length: length, named: fileField, filename: filename, contentType: contentType)
        return form
    }
}
