import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one download: request → validate, before a byte is written → write to a temporary file → ask for the
/// destination → move the file there in one step.
struct DownloadExecution: Sendable {
    /// The place of the finished file.
    enum Destination: Sendable {
        case file(String)
        case ask(Download.Destination?)
    }

    /// The partial file that a download continues.
    struct Resumed: Sendable {
        var data: ResumeData
        /// The folder that the caller names for the partial file; nil for the folder of the destination and the
        /// temporary folder.
        let folder: String?
        /// The path at which the partial file was found.
        var path = ""
        /// The stage of the newest request.
        let newest = NewestRequest()
    }

    /// The stage of the newest request of a continued download. An interceptor can send several.
    final class NewestRequest: Sendable {
        private let state = Lock(PartCounts.Stage.rest)

        var stage: PartCounts.Stage {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    let request: PreparedRequest
    let record: TaskRecord
    let destination: Destination
    let options: Download.Options
    /// The partial file that the download continues; nil for a new download.
    var resumed: Resumed?

    var files: FileStore { record.registry.files }

    // MARK: From call to file

    /// Downloads the file and returns its URL.
    func run() async throws(NetworkError) -> URL {
        try await checkDestination()
        guard let resumed else { return try await requestAndSave() }
        // Until the partial file is opened, a failure leaves everything as it was.
        record.setResumeData(resumed.data)
        guard let path = try await findPartial(resumed) else { return try await startingOver().requestAndSave() }
        return try await claiming(path) { () throws(NetworkError) in
            do throws(NetworkError) {
                return try await continuing(resumed, at: path).requestAndSave()
            } catch {
                guard error.discardsPart else { throw error }
                // The next download begins anew. `try?`: a file that stays only takes space.
                record.setResumeData(nil)
                try? await files.remove(path)
                throw error
            }
        }
    }

    /// Checks a file that was given as the destination before anything is sent, unless another one may be named later.
    private func checkDestination() async throws(NetworkError) {
        let mayBeReplaced =
            request.registry.configuration.destination != nil || request.registry.hasPolicy
            || request.request.policy != nil
        guard case .file(let path) = destination, !mayBeReplaced else { return }
        do {
            try await files.checkPlace(path)
        } catch {
            throw fileError("no file can be moved to the destination: \(error)", cause: error)
        }
    }

    func requestAndSave() async throws(NetworkError) -> URL {
        if resumed == nil { return try await save(try await acceptedResponse()) }
        var execution = self
        let (began, spent) = (MonotonicClock.nanoseconds(), request.timeSpent)
        while true {
            let response = try await execution.continuingResponse()
            let file = try await execution.openFile(for: response)
            try await execution.receive(response, in: file)
            guard let rest = execution.rest(after: response) else {
                return try await execution.finish(file, head: response.head)
            }
            // The server sends the rest in several parts, which have the time limits together.
            record.setResumeData(rest)
            let elapsed = Duration.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- began))
            var resumed = execution.resumed
            resumed?.data = rest
            execution = DownloadExecution(
                request: request.limitingTime(spent: spent + elapsed), record: record, destination: destination,
                options: options, resumed: resumed)
        }
    }

    /// Writes an accepted response to a temporary file and moves that to its destination.
    func save(_ response: IncomingResponse) async throws(NetworkError) -> URL {
        let file = try await openFile(for: response)
        // Claim the file: another task could resume from `task.resumeData` while this one still writes.
        guard options.isResumable, resumed == nil else { return try await save(response, to: file) }
        return try await claiming(file.path) { () throws(NetworkError) in try await save(response, to: file) }
    }

    private func save(_ response: IncomingResponse, to file: PartialFile) async throws(NetworkError) -> URL {
        try await receive(response, in: file)
        return try await finish(file, head: response.head)
    }

    /// Writes the body of a response to a file. After a failure, keeps what can be continued.
    private func receive(_ response: IncomingResponse, in file: PartialFile) async throws(NetworkError) {
        do throws(NetworkError) {
            try await write(response, to: file)
        } catch {
            if error.discardsPart {
                record.setResumeData(nil)
                await file.discard()
            } else if options.isResumable, case .rest(_, let total) = response.filePlace {
                await keepPart(file, of: total, after: error)
            } else {
                await keepOrRemove(file, of: response)
            }
            throw error
        }
        record.setResumeData(nil)
    }

    // MARK: The response

    func acceptedResponse() async throws(NetworkError) -> IncomingResponse {
        let stages = record.registry.stages
        let own = DownloadStage(download: self, next: stages.followUps)
        return try await stages.stages(of: request.request, accepting: own).response(to: request, of: record)
    }

    // MARK: The temporary file

    private func openFile(for response: IncomingResponse) async throws(NetworkError) -> PartialFile {
        do {
            if let resumed {
                record.setResumeData(nil)
                if case .rest(let end, let total) = response.filePlace {
                    record.meter.countRest(until: end, of: total)
                    let offset = resumed.data.offset
                    let file = try await PartialFile(continuing: resumed.path, at: offset, files)
                    record.registry.observe {
                        $0.didResumeDownload(at: offset, of: total, of: AnySessionTask(record))
                    }
                    return file
                }
                // The server sends the whole file again: the bytes in the partial file are replaced.
                record.meter.countWhole(of: response.filePlace?.end)
                return try await PartialFile(continuing: resumed.path, at: 0, files)
            }
            if case .file(let path) = destination, options.createsFolders {
                try await files.makeFolders(FilePath.folder(of: path))
            }
            if case .file(let path) = destination { await OrphanSweeper.shared.sweep(beside: path) }
            let isPartial = options.isResumable && Self.validator(of: response.head) != nil
            return try await PartialFile(creating: temporaryPlace(isPartial: isPartial), files)
        } catch {
            record.cancelAttempt()
            let reason = "the file for the download\(destinationText) cannot be written: \(error)"
            throw fileError(reason, cause: error, head: response.head)
        }
    }

    /// Returns a place beside the destination, so that the last move is one step, or else in the temporary folder.
    private func temporaryPlace(isPartial: Bool) -> TemporaryPlace {
        guard case .file(let path) = destination else {
            return TemporaryPlace(folder: TemporaryFolder.path, destination: nil, isPartial: isPartial)
        }
        let (folder, name) = (FilePath.folder(of: path), FilePath.name(of: path))
        return TemporaryPlace(folder: folder, destination: name, isPartial: isPartial)
    }

    private func write(_ response: IncomingResponse, to file: PartialFile) async throws(NetworkError) {
        do {
            // A killed process runs no code at its end, so the resume data are kept up to date during the download.
            let beginning = resumeData(for: file, of: response)
            let end = response.filePlace?.end ?? response.head.partLength
            // The reader waits where it writes, so that a portion costs one wake-up. A body that must be decompressed
            // does not hold up the files of others.
            let place: (any Actor)? = response.isDecompressed ? nil : files
            try await writeChunks(of: response, to: file, until: end, resumable: beginning, isolation: place)
            let outcome = await response.finalOutcome()
            if let failure = outcome.failure { throw response.request.error(failure, outcome) }
            // A transport can collect the body of a task whose response became a download.
            if file.writtenLength == 0, !outcome.body.isEmpty { try await file.write([outcome.body]) }
            if case .whole(let length) = response.filePlace, file.writtenLength != length {
                throw contradiction(response.head)
            }
            if let end, file.writtenLength < end {
                let reason = "the part (206) ended after \(file.writtenLength) of \(end) bytes"
                let isEmpty = file.writtenLength == resumed?.data.offset && response.head.hasMarkedEnd
                throw response.request.error(
                    FailureCause(.truncatedBody, reason, underlying: isEmpty ? PartProblem.empty : nil), outcome)
            }
            // Another part follows: the next response opens the file again.
            if rest(after: response) != nil { return try await file.suspend() }
            try await file.close()
        } catch let error as NetworkError {
            throw error
        } catch {
            record.cancelAttempt()
            let reason = "the download\(destinationText) cannot be written: \(error)"
            throw fileError(reason, cause: error, head: response.head)
        }
    }

    private func writeChunks(
        of response: IncomingResponse, to file: PartialFile, until end: Int64?, resumable beginning: ResumeData?,
        isolation: isolated (any Actor)?
    ) async throws {
        let pipe = response.openPipe()
        while let piece = await response.piece(pipe) {
            let count = piece.chunks.reduce(piece.missingCount ?? 0) { $0 + Int64($1.count) }
            if let end, file.writtenLength + count > end {
                record.cancelAttempt()
                if case .whole = response.filePlace { throw contradiction(response.head) }
                let reason = "the part (206) has more bytes than its Content-Range says"
                throw response.request.error(
                    FailureCause(.malformedResponse, reason, underlying: PartProblem.otherLength),
                    await response.finalOutcome())
            }
            if !piece.chunks.isEmpty { try await file.write(piece.chunks) }
            if let pipe, let limit = piece.missingCount {
                let moved = await file.move(upTo: limit, through: pipe)
                // Bytes in the pipe are lost after a failure, and the socket has no use.
                if let failure = moved.failure { throw failure }
                response.giveSocketBack(moved)
            }
            if let beginning { record.setResumeData(beginning.at(file.writtenLength)) }
        }
    }

    /// Keeps a partial file that was requested and can be continued. Removes any other one.
    private func keepOrRemove(_ file: PartialFile, of response: IncomingResponse) async {
        guard let start = resumeData(for: file, of: response), let length = await file.closeForResuming(), length > 0
        else {
            record.setResumeData(nil)
            await file.discard()
            return
        }
        record.setResumeData(start.at(length))
    }

    /// Returns the resume data for offset 0; nil if the caller did not ask for them or the response has no validator.
    private func resumeData(for file: PartialFile, of response: IncomingResponse) -> ResumeData? {
        guard options.isResumable else { return nil }
        let (validator, total): (String?, Int64?) =
            if case .rest(_, let total) = response.filePlace {
                (resumed?.data.validator, total)
            } else {
                (Self.validator(of: response.head), response.head.contentLength)
            }
        guard let validator else { return nil }
        return ResumeData(
            url: request.request.urlString, validator: validator, offset: 0, partialFile: file.path, totalBytes: total)
    }

    /// Returns the validator for If-Range: a strong ETag or else a date. A compressed body has no offset to continue
    /// at. Neither has a part that the caller requested, because its offsets differ from those of the whole file.
    private static func validator(of head: ResponseHead) -> String? {
        let headers = head.headers
        if head.status == 206 || !head.contentCodings.isEmpty || headers["Accept-Ranges"]?.lowercased() == "none" {
            return nil
        }
        guard let validator = headers["ETag"] ?? headers["Last-Modified"], ResumeData.isValidator(validator) else {
            return nil
        }
        return validator
    }

    // MARK: The destination

    private func finish(_ file: PartialFile, head: ResponseHead) async throws(NetworkError) -> URL {
        // A file that may stay in the temporary folder no longer belongs to a download, and no sweep may remove it.
        if case .ask = destination { await file.release() }
        do throws(NetworkError) {
            let temporary = URL(filePath: file.path)
            let place = try await move(temporary, head: head) { path in try await file.move(to: path, options) }
            if place == nil { await file.unlock() }
            return place ?? temporary
        } catch {
            await file.discard()
            throw error
        }
    }

    /// Moves a finished file to its destination and reports that. The destination of the session is asked first, then
    /// those of the policies and of the task. Returns nil, and leaves the file in place, if none names a destination.
    func move(
        _ temporary: URL, head: ResponseHead, by move: (_ path: String) async throws -> String
    ) async throws(NetworkError) -> URL? {
        do {
            guard let path = try await destination(of: temporary, head: head) else { return nil }
            if record.isCancelled { throw NetworkError(FailureCause.cancelled, request: request.request) }
            let place = URL(filePath: try await move(path))
            record.registry.publish { .fileMoved(AnySessionTask(record), to: place) }
            return place
        } catch let error as NetworkError {
            throw error
        } catch {
            let failure = fileError("the file cannot be moved to its destination: \(error)", cause: error, head: head)
            record.registry.publish { .moveFailed(AnySessionTask(record), failure) }
            throw failure
        }
    }

    private func destination(of temporary: URL, head: ResponseHead) async throws -> String? {
        if let url = try request.registry.configuration.destination?(temporary, head) { return try FilePath.of(url) }
        let answer = try await request.policies?.ask(about: request.request) { policy in
            try await policy.destination(for: temporary, response: head, of: AnySessionTask(record))
        }
        if let answer { return try FilePath.of(answer) }
        switch destination {
        case .file(let path): return path
        case .ask(let destination): return try destination?(temporary, head).map(FilePath.of)
        }
    }

    /// The destination, for an error; empty if it is named at the end.
    private var destinationText: String {
        if case .file(let path) = destination { " to \(path)" } else { "" }
    }

    func fileError(_ reason: String, cause: any Error, head: ResponseHead? = nil) -> NetworkError {
        NetworkError(
            FailureCause(.fileSystem, reason, underlying: cause), request: request.request, response: head)
    }
}

/// Accepts or refuses the response to a download. One that is continued asks for the rest first.
private final class DownloadStage: Stage {
    private let download: DownloadExecution
    private let next: any Stage

    init(download: DownloadExecution, next: any Stage) {
        self.download = download
        self.next = next
    }

    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        let response = try await download.responseAtOffset(to: request, through: next)
        if let refusal = task.refusal(of: response) { throw await task.refused(response, for: refusal) }
        return response
    }
}

extension ResponseHead {
    /// The number of bytes of a part (206) by its Content-Range; nil for other responses, and for a compressed body.
    fileprivate var partLength: Int64? {
        guard status == 206, contentCodings.isEmpty, let field = headers["Content-Range"].flatMap({ ContentRange($0) }),
            field.unit == "bytes", let range = field.range
        else { return nil }
        let (count, overflows) = (range.upperBound - range.lowerBound).addingReportingOverflow(1)
        return overflows ? nil : count
    }
}
