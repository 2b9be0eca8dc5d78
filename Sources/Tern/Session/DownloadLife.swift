#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The life of a download: the request is opened → its status is validated, before a byte is written → the body goes to a
// temporary file → the destination is asked → the file is moved there in one step.

/// Where a download is to go, and from where it is continued.
struct DownloadPlan: Sendable {
    enum Goal: Sendable {
        case file(String)
        case ask(Download.Destination?)
    }

    let request: RequestPlan
    let goal: Goal
    let options: Download.Options
    /// The partial file that the download continues; nil for a new download.
    var resumed: Resumed?

    struct Resumed: Sendable {
        let data: ResumeData
        /// The folder that the caller names for the partial file; nil for the folder of the destination and the
        /// temporary folder.
        let folder: String?
        /// The path at which the partial file was found.
        var path = ""
    }
}

extension DownloadPlan {
    var operation: Operation<URL> {
        { record throws(NetworkError) in
            try await checkGoal(record)
            guard let resumed else { return try await load(record) }
            // Until the partial file is touched, a failure leaves all as it was.
            record.keep(resumed.data)
            guard let path = try await findPartial(resumed, record) else {
                return try await startingOver(record).load(record)
            }
            return try await claimed(path, record) { () throws(NetworkError) in
                try await withPartial(resumed, path, record).load(record)
            }
        }
    }

    /// Returns the path of the partial file; nil when it no longer exists.
    ///
    /// Searches the folder of the destination and the temporary folder, or only the folder that the caller names. Never
    /// searches the folder in the resume data, because others may have changed that value.
    private func findPartial(_ resumed: Resumed, _ record: TaskRecord) async throws(NetworkError) -> String? {
        var folders = [TemporaryFolder.path]
        if let folder = resumed.folder {
            folders = [folder]
        } else if case .file(let path) = goal {
            folders.insert(FilePath.folder(of: path), at: 0)
        }
        let paths = folders.map { FilePath.join($0, resumed.data.partialFile) }
        for path in paths {
            if await record.context.files.exists(path) { return path }
        }
        if paths.contains(where: { FilePath.folder(of: $0) == resumed.data.folder }) { return nil }
        let reason =
            "the partial file \(resumed.data.partialFile) is not in \(folders.joined(separator: " or ")): "
            + "move it there, or name its folder"
        throw NetworkError(TransferFailure(.fileSystem, reason), request: request.request)
    }

    /// Returns the same download from its beginning.
    private func startingOver(_ record: TaskRecord) -> DownloadPlan {
        record.keep(nil)
        record.meter.startDownload(at: 0)
        return DownloadPlan(request: request, goal: goal, options: options, resumed: nil)
    }

    /// Does `work` as the one download of the process that writes the partial file.
    private func claimed(
        _ path: String, _ record: TaskRecord, _ work: () async throws(NetworkError) -> URL
    ) async throws(NetworkError) -> URL {
        let files = record.context.files
        guard await files.claim(path) else {
            let reason = "another download continues the file \(path)"
            throw NetworkError(TransferFailure(.fileSystem, reason), request: request.request)
        }
        do throws(NetworkError) {
            let place = try await work()
            await files.release(path)
            return place
        } catch {
            await files.release(path)
            throw error
        }
    }

    /// Looks at a file that was given as the destination before anything is sent, unless another may be named later.
    private func checkGoal(_ record: TaskRecord) async throws(NetworkError) {
        let mayBeReplaced =
            request.context.configuration.destination != nil || request.context.hasPolicy
            || request.request.policy != nil
        guard case .file(let path) = goal, !mayBeReplaced else { return }
        do {
            try await record.context.files.checkPlace(path)
        } catch {
            throw fileError("no file can be put in its place: \(error)", error, nil)
        }
    }

    /// Returns the same download, from its beginning if the partial file no longer exists or is too short.
    private func withPartial(
        _ resumed: Resumed, _ path: String, _ record: TaskRecord
    ) async throws(NetworkError) -> DownloadPlan {
        do {
            if try await record.context.files.hasPartial(path, of: resumed.data.offset) {
                var plan = self
                plan.resumed?.path = path
                return plan
            }
        } catch {
            throw fileError("the partial file cannot be continued: \(error)", error, nil)
        }
        return startingOver(record)
    }

    private func load(_ record: TaskRecord) async throws(NetworkError) -> URL {
        let arrival = try await arrival(record)
        let file = try await temporaryFile(for: arrival, record)
        // Whoever reads `resumeData` meanwhile can name the file to another download.
        guard options.isResumable, resumed == nil else { return try await fill(file, arrival, record) }
        return try await claimed(file.path, record) { () throws(NetworkError) in
            try await fill(file, arrival, record)
        }
    }

    private func fill(_ file: PartialFile, _ arrival: Arrival, _ record: TaskRecord) async throws(NetworkError) -> URL {
        do throws(NetworkError) {
            try await write(arrival, to: file, record)
        } catch {
            await keepOrRemove(file, arrival, record)
            throw error
        }
        record.keep(nil)
        return try await place(file, arrival.head, record)
    }

    private func arrival(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        if !request.hasInterceptors { return try await accepted(request, record) }
        let chain = InterceptorChain(plan: request, record: record) { plan throws(NetworkError) in
            try await accepted(plan, record)
        }
        return try await chain.run()
    }

    private func accepted(_ plan: RequestPlan, _ record: TaskRecord) async throws(NetworkError) -> Arrival {
        let arrival = try await openAtOffset(plan, record)
        if let refusal = arrival.plan.refusal(of: arrival) { throw await arrival.error(refusal) }
        return arrival
    }

    /// A continued download asks for the rest, and for the whole if the server has no such rest any more.
    private func openAtOffset(_ plan: RequestPlan, _ record: TaskRecord) async throws(NetworkError) -> Arrival {
        guard let resumed else { return try await plan.travel(record) }
        let continuation = resumed.data.continuation
        record.meter.startDownload(at: resumed.data.offset)
        var arrival = try await plan.askingForIdentity(adding: continuation.fields).travel(record)
        // `try?`: an invalid URL has no origin to compare.
        let origin = (try? Target(absolute: resumed.data.url))?.origin
        let (head, isSameOrigin) = (arrival.head, arrival.head.target.origin == origin)
        switch continuation.decision(on: head.status, headers: head.headers, isSameOrigin: isSameOrigin) {
        case .append(let total):
            arrival.continuedTotal = total
            return arrival
        case .replace:
            return arrival
        case .startOver:
            await arrival.discard()
            record.meter.startDownload(at: 0)
            return try await plan.travel(record)
        }
    }

    private func temporaryFile(for arrival: Arrival, _ record: TaskRecord) async throws(NetworkError) -> PartialFile {
        let files = record.context.files
        do {
            if let resumed {
                record.keep(nil)
                if arrival.continuedTotal != nil {
                    return try await PartialFile(continuing: resumed.path, at: resumed.data.offset, files)
                }
                // The server sends the whole again: what was there of it is of no use any more.
                record.meter.startDownload(at: 0)
                return try await PartialFile(continuing: resumed.path, at: 0, files)
            }
            if case .file(let path) = goal, options.createsFolders {
                try await files.makeFolders(FilePath.folder(of: path))
            }
            if case .file(let path) = goal { await OrphanSweeper.shared.sweep(besides: path) }
            let isPartial = options.isResumable && Self.validator(of: arrival.head) != nil
            return try await PartialFile(creating: temporaryPlace(isPartial: isPartial), files)
        } catch {
            record.cancelTransfer()
            throw fileError("the file for the download cannot be written: \(error)", error, arrival.head)
        }
    }

    /// Beside the destination where that is known, so that the last move is one step; else in the temporary folder.
    private func temporaryPlace(isPartial: Bool) -> TemporaryPlace {
        guard case .file(let path) = goal else {
            return TemporaryPlace(folder: TemporaryFolder.path, destination: nil, isPartial: isPartial)
        }
        let (folder, name) = (FilePath.folder(of: path), FilePath.name(of: path))
        return TemporaryPlace(folder: folder, destination: name, isPartial: isPartial)
    }

    private func write(_ arrival: Arrival, to file: PartialFile, _ record: TaskRecord) async throws(NetworkError) {
        do {
            // A process that is killed says nothing at its end: what is needed to go on is there at any moment.
            let beginning = resumeData(for: file, arrival)
            let end = arrival.continuedTotal ?? arrival.head.partLength
            while let chunks = await arrival.chunks() {
                if let end, chunks.reduce(file.writtenLength, { $0 + Int64($1.count) }) > end {
                    record.cancelTransfer()
                    let reason = "the part (206) has more bytes than its Content-Range says"
                    throw arrival.plan.error(TransferFailure(.malformedResponse, reason), await arrival.ended())
                }
                try await file.write(chunks)
                if let beginning { record.keep(beginning.at(file.writtenLength)) }
            }
            let outcome = await arrival.ended()
            if let failure = outcome.failure { throw arrival.plan.error(failure, outcome) }
            if let end, file.writtenLength < end {
                let reason = "the part (206) ended after \(file.writtenLength) of \(end) bytes"
                throw arrival.plan.error(TransferFailure(.truncatedBody, reason), outcome)
            }
            try await file.close()
        } catch let error as NetworkError {
            throw error
        } catch {
            record.cancelTransfer()
            throw fileError("the download cannot be written: \(error)", error, arrival.head)
        }
    }

    /// A partial file is kept only if it was asked for and can be continued; else nothing is left behind.
    private func keepOrRemove(_ file: PartialFile, _ arrival: Arrival, _ record: TaskRecord) async {
        guard let beginning = resumeData(for: file, arrival), let length = await file.closeKeeping(), length > 0 else {
            record.keep(nil)
            await file.discard()
            return
        }
        record.keep(beginning.at(length))
    }

    /// What the file is continued by, at its beginning; nil where nobody asked for it, or the response has no means.
    private func resumeData(for file: PartialFile, _ arrival: Arrival) -> ResumeData? {
        guard options.isResumable else { return nil }
        let (validator, total): (String?, Int64?) =
            if let total = arrival.continuedTotal {
                (resumed?.data.validator, total)
            } else {
                (Self.validator(of: arrival.head), arrival.head.contentLength)
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

    /// The session's destination is asked first, then the task's; nil from both leaves the file where it is.
    private func place(
        _ file: PartialFile, _ head: ResponseHead, _ record: TaskRecord
    ) async throws(NetworkError) -> URL {
        do {
            // A file that can stay in the temporary folder no longer belongs to a download, and no sweep may remove it.
            if case .ask = goal { await file.release() }
            let temporary = URL(filePath: file.path)
            guard let chosen = try await chosenPath(temporary, head, record) else {
                await file.unlock()
                return temporary
            }
            if record.isCancelled { throw NetworkError(TransferFailure.cancelled, request: request.request) }
            let place = URL(filePath: try await file.move(to: chosen, options))
            record.context.ledger.publish { .fileMoved(AnySessionTask(record), to: place) }
            return place
        } catch {
            await file.discard()
            if let error = error as? NetworkError { throw error }
            let failure = fileError("the file cannot be put in its place: \(error)", error, head)
            record.context.ledger.publish { .moveFailed(AnySessionTask(record), failure) }
            throw failure
        }
    }

    private func chosenPath(_ temporary: URL, _ head: ResponseHead, _ record: TaskRecord) async throws -> String? {
        if let url = try request.context.configuration.destination?(temporary, head) { return try FilePath.of(url) }
        let answer = try await request.policies?.ask(about: request.request) { policy in
            try await policy.destination(for: temporary, response: head, of: AnySessionTask(record))
        }
        if let answer { return try FilePath.of(answer) }
        switch goal {
        case .file(let path): return path
        case .ask(let destination): return try destination?(temporary, head).map(FilePath.of)
        }
    }

    private func fileError(_ reason: String, _ error: any Error, _ head: ResponseHead?) -> NetworkError {
        NetworkError(
            TransferFailure(.fileSystem, reason, underlying: error), request: request.request, response: head)
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
