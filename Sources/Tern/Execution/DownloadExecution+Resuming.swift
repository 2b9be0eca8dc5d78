#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The partial file of a continued download, and the use of the responses to the request for the rest.

extension DownloadExecution {
    // MARK: The partial file of a continued download

    /// Returns the path of the partial file; nil when it no longer exists.
    ///
    /// Searches the folder of the destination and the temporary folder, or only the folder that the caller names. Never
    /// searches the folder in the resume data, because others may have changed that value.
    func findPartial(_ resumed: Resumed) async throws(NetworkError) -> String? {
        var folders = [TemporaryFolder.path]
        if let folder = resumed.folder {
            folders = [folder]
        } else if case .file(let path) = destination {
            folders.insert(FilePath.folder(of: path), at: 0)
        }
        let paths = folders.map { FilePath.join($0, resumed.data.partialFile) }
        for path in paths {
            if await files.exists(path) { return path }
        }
        if paths.contains(where: { FilePath.folder(of: $0) == resumed.data.folder }) { return nil }
        let reason =
            "the partial file \(resumed.data.partialFile) is not in \(folders.joined(separator: " or ")): "
            + "move it there, or name its folder"
        throw NetworkError(FailureCause(.fileSystem, reason), request: request.request)
    }

    /// Returns the same download from its beginning.
    func startingOver() -> DownloadExecution {
        record.setResumeData(nil)
        record.meter.startDownload(at: 0, of: nil)
        return DownloadExecution(request: request, record: record, destination: destination, options: options)
    }

    /// Returns the same download, from its beginning if the partial file no longer exists or is too short.
    func continuing(_ resumed: Resumed, at path: String) async throws(NetworkError) -> DownloadExecution {
        do {
            if try await files.hasPartial(path, of: resumed.data.offset) {
                var execution = self
                execution.resumed?.path = path
                return execution
            }
        } catch {
            throw fileError("the partial file cannot be continued: \(error)", cause: error)
        }
        return startingOver()
    }

    /// Does `work` as the only download of the process that writes the partial file.
    func claiming(
        _ path: String, _ work: () async throws(NetworkError) -> URL
    ) async throws(NetworkError) -> URL {
        guard await files.claim(path) else {
            let reason = "another download continues the file \(path)"
            throw NetworkError(FailureCause(.fileSystem, reason), request: request.request)
        }
        do throws(NetworkError) {
            let place = try await work()
            await files.endClaim(path)
            return place
        } catch {
            await files.endClaim(path)
            throw error
        }
    }

    // MARK: The rest

    /// Returns the accepted response to the request for the rest, or for the whole file in its place. Counts a failure.
    func continuingResponse() async throws(NetworkError) -> IncomingResponse {
        do throws(NetworkError) {
            return try await acceptedResponse()
        } catch {
            if let resumed {
                let counts = resumed.data.counts.after(error, at: resumed.newest.stage)
                record.setResumeData(resumed.data.counting(counts))
            }
            throw error
        }
    }

    /// Keeps the part of a download after the body of its rest has failed. Bytes of a body with too many are cut off.
    func keepPart(_ file: PartialFile, of total: Int64, after error: NetworkError) async {
        guard let data = resumed?.data else { return }
        if error.hasWrongBody {
            file.cut(to: data.offset)
            record.meter.endDownload(at: data.offset, of: total)
        }
        guard let length = await file.closeForResuming(), length >= data.offset else {
            record.setResumeData(nil)
            return await file.discard()
        }
        let counts = length > data.offset ? PartCounts() : data.counts.after(error, at: .body)
        record.setResumeData(
            ResumeData(
                url: request.request.urlString, validator: data.validator, offset: length, partialFile: file.path,
                totalBytes: total, counts: counts))
    }

    /// Returns the data to continue with after a response that was a part of the rest; nil if the file is whole.
    func rest(after response: IncomingResponse) -> ResumeData? {
        guard case .rest(let end, let total) = response.filePlace, end < total, let data = resumed?.data else {
            return nil
        }
        return ResumeData(
            url: data.url, validator: data.validator, offset: end, partialFile: resumed?.path ?? data.partialPath,
            totalBytes: total)
    }

    /// Performs the request. A continued download asks for the rest, and for the whole file if the server no longer has
    /// that rest.
    func responseAtOffset(
        to request: PreparedRequest, through next: any Stage
    ) async throws(NetworkError) -> IncomingResponse {
        guard let resumed else { return try await next.response(to: request, of: record) }
        let resumeRules = resumed.data.resumeRules
        resumed.newest.stage = .rest
        if resumeRules.counts.asksForWhole { return try await wholeFile(request, through: next, checking: resumeRules) }
        record.meter.startDownload(at: resumed.data.offset, of: resumed.data.totalBytes, countsBody: false)
        var response: IncomingResponse
        do throws(NetworkError) {
            response = try await next.response(
                to: request.requestingIdentity(adding: resumeRules.fields), of: record)
        } catch {
            guard resumeRules.decision(after: error) == .askForWhole else { throw error }
            return try await wholeFile(request, through: next, checking: resumeRules)
        }
        // `try?`: an invalid URL has no origin to compare.
        let origin = (try? Target(absolute: resumed.data.url))?.origin
        let (head, isSameOrigin) = (response.head, response.head.target.origin == origin)
        switch resumeRules.decision(on: head.status, headers: head.headers, isSameOrigin: isSameOrigin) {
        case .append(let end, let total):
            response.filePlace = .rest(until: end, total: total)
            return response
        case .replace:
            return response
        case .askForWhole:
            await response.discard()
            return try await wholeFile(request, through: next, checking: resumeRules)
        case .refuse:
            // The validation reports it.
            if response.request.refusal(of: response) != nil { return response }
            let reason = "the server answers the request for the rest of the file with status \(head.status)"
            throw await record.refused(
                response, for: FailureCause(.malformedResponse, reason, underlying: PartProblem.refused))
        }
    }

    /// Asks for the whole file in place of the rest.
    func wholeFile(
        _ request: PreparedRequest, through next: any Stage, checking rules: ResumedDownloadRules
    ) async throws(NetworkError) -> IncomingResponse {
        resumed?.newest.stage = .whole
        record.meter.startDownload(at: 0, of: nil, countsBody: false)
        return try checked(try await next.response(to: request, of: record), by: rules)
    }

    /// Checks the whole file that is asked for because a response did not fit the part.
    func checked(
        _ response: IncomingResponse, by rules: ResumedDownloadRules
    ) throws(NetworkError) -> IncomingResponse {
        // The validation reports it.
        if response.request.refusal(of: response) != nil { return response }
        switch rules.decision(onWholeFile: response.head.status, headers: response.head.headers) {
        case .use(let length):
            var response = response
            response.filePlace = length.map { .whole(length: $0) }
            return response
        case .fail:
            record.cancelAttempt()
            throw contradiction(response.head)
        }
    }

    /// Returns the error of a server that contradicts what it has said about the file.
    func contradiction(_ head: ResponseHead) -> NetworkError {
        let reason = PartProblem.contradiction(of: head, totalBytes: resumed?.data.totalBytes)
        return NetworkError(
            FailureCause(.malformedResponse, reason, underlying: PartProblem.contradicted),
            request: request.request, response: head)
    }
}
