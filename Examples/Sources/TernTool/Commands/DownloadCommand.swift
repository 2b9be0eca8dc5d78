import ArgumentParser
import Tern
import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern download`: writes responses to files, each complete or not at all, with live progress.
struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Download to files, whatever interrupts it.",
        discussion: """
            A file gets its name when it is complete and verified. Until then its bytes are beside it in .NAME.tern. A \
            connection that breaks is taken up again. After a failure, or after the process was killed, the same command \
            continues if the server proves that its file is the same.

            Without -o, and in the folder of -o, the file is named as the server suggests for a single URL, and otherwise by \
            the path of its URL. An existing file stays, and the new one gets a number. The URLs of a list need different names.

            To run a list again, use -c: it leaves files that are complete and have not changed, and receives the others.
            """)

    @Argument(
        help: "The URLs; without a scheme, http for localhost and addresses, and https for other hosts.",
        transform: URLText.complete)
    var urls: [String] = []

    @Option(
        name: [.short, .long],
        help: """
            The file to write, for a single URL; one that exists is replaced at the end. A folder is for the files of all \
            URLs. - is standard output, which cannot be continued.
            """,
        completion: .file())
    var output: String?

    @Flag(
        name: [.customShort("O"), .long],
        help: "Name the file of a single URL by its URL, and not as the server suggests.")
    var remoteName = false

    @Option(name: [.short, .long], help: "Download the URLs in this file, one on each line; - is standard input.")
    var inputFile: String?

    @Flag(
        name: [.customShort("c"), .long],
        help: """
            Also continue a file that is there, such as an unfinished one of curl or wget, if the server's file has not changed \
            since. A complete one is left, and nothing is received. Keep the part after Ctrl-C; without -c, Ctrl-C removes it if \
            this command began the download.
            """)
    var resume = false

    @Flag(
        help: """
            Like -c, without the check that the server's file has not changed since the unfinished file was begun. The server \
            must still send a strong ETag, or a Last-Modified that is old enough.
            """)
    var forceContinue = false

    @Option(
        help: ArgumentHelp("Receive each file in this many segments at the same time, 1 to 16.", valueName: "number"))
    var segments = 1

    @Option(
        help: ArgumentHelp(
            "Limit the rate of all downloads together, in bytes per second; k and M are 1,024 and 1,048,576.",
            valueName: "rate"),
        transform: SizeText.bytes)
    var limitRate: Int?

    @Option(
        help: ArgumentHelp(
            "Keep the file only if it has this digest, for a single URL. The functions are sha256, sha512, sha1 and md5.",
            valueName: "sha256:…"),
        transform: DigestText.digest)
    var checksum: FileDigest?

    @Option(name: [.short, .long], help: "The number of files that are downloaded at the same time.")
    var jobs = 6

    @OptionGroup var body: BodyOptions

    @OptionGroup var connection: ConnectionOptions

    func validate() throws {
        if urls.isEmpty, inputFile == nil { throw ValidationError("give a URL, or a file of URLs with --input-file") }
        if urls.count > 1 || inputFile != nil {
            if checksum != nil { throw ValidationError("--checksum is for a single URL") }
        }
        try PathText.check(output)
        if writesToOutput, checksum != nil || segments > 1 || resume || forceContinue {
            throw ValidationError("--checksum, --segments and -c are for files, not for standard output")
        }
        if !(1...16).contains(segments) { throw ValidationError("--segments takes 1 to 16") }
        if !(1...64).contains(jobs) { throw ValidationError("--jobs takes 1 to 64") }
    }

    private var writesToOutput: Bool { output.map(PathText.isStandardOutput) ?? false }

    func run() async throws {
        try await CommandRun.run(connection.messages) { interrupt, terminal in
            let place = try place()
            var urls = urls
            if let inputFile { urls += try FileText.lines(inputFile).map(URLText.complete) }
            guard !urls.isEmpty else { throw ValidationError("the input file has no URL") }
            let single = urls.count == 1 && inputFile == nil
            var connection = connection
            if single { connection.takeUser(from: &urls[0]) }
            var configuration = try connection.configuration(for: urls, terminal)
            // Each file of a list can have its segments.
            configuration.maximumConnectionsPerHost = max(32, jobs * segments)
            // Retries the request for the name, and a download to standard output. Durable downloads retry by
            // themselves.
            if single { configuration.interceptors.insert(RetryInterceptor(retryPolicy), at: 0) }
            let client = Client(
                session: ToolSession.make(configuration), headers: connection.header.headers)
            for url in urls {
                connection.tell(
                    try client.request(.get, url), place.curlWords(isNamed: single), on: terminal)
            }
            if writesToOutput { return try await write(urls[0], client, interrupt, terminal) }
            let start = ContinuousClock.now
            let names = single ? [try await name(of: urls[0], at: place, client, interrupt)] : try names(of: urls)
            // The names of a list are those of files in one folder, which is found out once.
            var folder = single ? "" : PathText.currentFolder
            if case .folder(let path) = place { folder = path }
            var options = options(at: place)
            // The time limit includes the request for the name.
            if let limit = connection.timeLimit {
                options.retry.maximumTime = max(.milliseconds(1), limit - (.now - start))
            }
            let jobs = zip(urls, names).map { DownloadJob(url: $0, file: PathText.url(folder + $1), name: $1) }
            let run = DownloadRun(
                client: client, options: options, limit: limitRate, keepsPart: resume || forceContinue,
                isVerbose: connection.verbose)
            if single {
                try await run.one(jobs[0], interrupt, terminal)
            } else {
                try await run.all(jobs, count: self.jobs, interrupt, terminal)
            }
        }
    }

    /// The place of `-o`; the current folder without it.
    ///
    /// - Throws: An error for a folder that is missing, and for a file of several URLs.
    private func place() throws -> PathText.Place? {
        guard let output else { return nil }
        let place = try PathText.place(output)
        switch place {
        case .file where urls.count > 1 || inputFile != nil:
            throw ValidationError("-o is for a single URL, or the name of a folder")
        case .device(let path): throw ValidationError("\(path) is no file: 'tern get' writes to devices")
        case .output, .file, .folder: return place
        }
    }

    private func options(at place: PathText.Place?) -> DurableDownloadOptions {
        var options = DurableDownloadOptions(throttle: limitRate, digest: checksum, segments: segments)
        if case .file = place { options.existing = .overwrite } else { options.existing = .keepBoth }
        options.foreignPart = forceContinue ? .continued : resume ? .continuedIfUnchanged : .ignored
        if let retry = connection.retry { options.retry.policy.limit = retry }
        return options
    }

    /// The retries of a request that is not a durable download. A name is not worth many of them: the URL has one, too.
    private var retryPolicy: RetryPolicy {
        var policy = RetryPolicy()
        policy.limit = writesToOutput ? connection.retry ?? 9 : min(2, connection.retry ?? 2)
        if !writesToOutput { policy.maximumRetryAfter = .seconds(5) }
        return policy
    }

    /// Returns the name of the file of a single URL. A server that does not answer HEAD names it by the URL.
    private func name(
        of url: String, at place: PathText.Place?, _ client: Client, _ interrupt: Interrupt
    ) async throws -> String {
        if case .file(let path) = place { return path }
        if remoteName { return URLText.fileName(url) }
        // Uses at most half of the time limit, so that time remains for the download.
        let task = client.task(.head, url) {
            $0.timeouts.total = connection.timeLimit.map { $0 / 2 } ?? .seconds(60)
        }
        interrupt.cancels(task)
        do throws(NetworkError) {
            _ = try await task.value
            return await task.response?.suggestedFilename ?? URLText.fileName(url)
        } catch {
            switch error.kind {
            case .status where error.status != 401, .idleTimedOut, .attemptTimedOut, .totalTimedOut:
                return URLText.fileName(url)
            default: throw error
            }
        }
    }

    private func names(of urls: [String]) throws -> [String] {
        let names = urls.map(URLText.fileName)
        var seen: Set<String> = []
        for (name, url) in zip(names, urls) where !seen.insert(name).inserted {
            throw ValidationError("\(URLText.shown(url)): another URL of the list has the name \(name), too")
        }
        return names
    }

    /// Writes the body to standard output as it arrives.
    private func write(
        _ url: String, _ client: Client, _ interrupt: Interrupt, _ terminal: Terminal
    ) async throws {
        let (stream, limit) = (client.stream(url), limitRate)
        // Cancelled by a signal and by the time limit, also while it waits because of the limit on the rate.
        let copy = Task { [output = body.output] in try await Self.copy(stream, to: output, limit: limit) }
        interrupt.performs(copy.cancel)
        try await Deadline.run(connection.timeLimit, cancel: copy.cancel) { try await copy.value }
    }

    private static func copy(_ stream: ResponseStream, to body: BodyOutput, limit: Int?) async throws {
        var output = body
        let start = ContinuousClock.now
        var count = 0
        for try await chunk in stream.chunks {
            try Task.checkCancellation()
            try output.write(chunk)
            count += chunk.count
            guard let limit else { continue }
            let rest = start + .seconds(Double(count) / Double(limit)) - .now
            if rest > .zero { try await Task.sleep(for: rest) }
        }
        try output.finish()
    }
}

/// Reports the end of a download.
enum DownloadReport {
    /// Shows the progress of a download, and waits for its file.
    static func follow(_ download: SaveOptions.Started, on terminal: Terminal) async throws {
        let task = download.task
        // Without a given name the server names the file; the name arrives with the head.
        var path = download.label ?? "download"
        if download.label == nil, let head = await task.response { path = head.suggestedFilename }
        let bar = await TerminalBar(PathText.url(path).lastPathComponent, on: terminal)
        await bar.follow(task)
        let file = try await task.value
        let metrics = task.metrics
        let time = metrics?.total ?? bar.elapsed
        let size = await bar.status.completed
        terminal.tell(line(download.shown(file), size, metrics?.receivedBytes ?? size, in: time))
    }

    /// Returns a line such as `big.iso: 200.0 MB in 1.20 s, 166.7 MB/s`.
    static func line(_ name: String, _ size: Int64, _ received: Int64, in time: Duration) -> String {
        let line = "\(Terminal.plain(name)): \(ByteText.size(size)) in \(DurationText.span(time))"
        // The file was there: an earlier command or another program has received it.
        return received == 0 && size > 0 ? line + ", was complete" : line + ", \(ByteText.rate(received, in: time))"
    }
}
