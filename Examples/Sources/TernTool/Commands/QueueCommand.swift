import ArgumentParser
import Tern
import TernTransfers
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern queue`: downloads that are stored, and that finish also after the process was killed.
struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "Keep a list of downloads, and finish them in this process or a later one.",
        discussion: """
            The list is in the folder of --queue, else in $TERN_QUEUE, else in ~/.local/share/tern/queue. One process at \
            a time uses it; another one ends with the code 11.
            """,
        subcommands: [Add.self, List.self, Run.self, Pause.self, Resume.self, Remove.self])

    /// The folder of the list.
    struct Place: ParsableArguments {
        @Option(name: [.customLong("queue")], help: "The folder of the list.", completion: .directory)
        var folder: String?

        /// Performs work on the list, and closes it.
        func open(
            with session: Session = .shared,
            _ configuration: TransferQueue.Configuration = TransferQueue.Configuration(),
            _ work: (TransferQueue) async throws -> Void
        ) async throws {
            let path = try path(ProcessInfo.processInfo.environment)
            let queue = try await TransferQueue.open(
                PathText.url(path), session: session, configuration: configuration)
            do {
                try await work(queue)
            } catch {
                await queue.close()
                throw error
            }
            await queue.close()
        }

        /// Returns the path of the folder. An empty environment variable counts as not set.
        private func path(_ environment: [String: String]) throws -> String {
            if let folder {
                if folder.isEmpty { throw ValidationError("--queue takes the path of a folder") }
                return folder
            }
            if let folder = environment["TERN_QUEUE"], !folder.isEmpty { return folder }
            guard let home = environment["HOME"], !home.isEmpty else {
                throw ValidationError("HOME is not set: give the folder of the list with --queue")
            }
            return home + "/.local/share/tern/queue"
        }

        /// The configuration of a list that is only read or changed.
        static var still: TransferQueue.Configuration {
            var configuration = TransferQueue.Configuration()
            configuration.startsTransfers = false
            return configuration
        }
    }

    /// The error of a command that could not change some of the given downloads.
    struct UnchangedDownloads: Error, CustomStringConvertible {
        let count: Int
        let verb: String
        var description: String {
            "not \(verb): \(count) of the given downloads (not in the list, or in a state that does not allow it)"
        }
    }

    /// The downloads that a command changes.
    struct Choice: ParsableArguments {
        @Argument(help: "The numbers of the downloads, as 'tern queue list' shows them.")
        var numbers: [Int64] = []

        @Flag(help: "All downloads.")
        var all = false

        func validate() throws {
            if numbers.isEmpty != all { throw ValidationError("give numbers, or --all") }
        }

        var selection: TransferQueue.Selection {
            all ? .all : .items(numbers.map { TransferQueue.ItemID(rawValue: $0) })
        }

        /// Writes the number of changed downloads. Numbers that the list does not have are an error.
        func tell(_ count: Int, _ verb: String) throws {
            try Output.writeLine("\(count) \(verb)")
            if !all, count < Set(numbers).count {
                throw UnchangedDownloads(count: Set(numbers).count - count, verb: verb)
            }
        }
    }

    /// `tern queue add`: stores downloads.
    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add downloads, and write their numbers. 'tern queue run' starts them.")

        @Argument(
            help: "The URLs; without a scheme, http for localhost and addresses, and https for other hosts.",
            transform: URLText.complete)
        var urls: [String] = []

        @Option(
            name: [.short, .long],
            help: """
                The file to write, for a single URL; by default the name in the URL, unless there is such a file. A folder \
                is for the files of all URLs.
                """,
            completion: .file())
        var output: String?

        @Option(name: [.short, .long], help: "Add the URLs in this file, one on each line; - is standard input.")
        var inputFile: String?

        @Option(help: ArgumentHelp("Receive each file in this many segments, 1 to 16.", valueName: "number"))
        var segments = 1

        @Option(
            help: ArgumentHelp("Keep the file only if it has this digest.", valueName: "sha256:…"),
            transform: DigestText.digest)
        var checksum: FileDigest?

        @Option(help: "A name for these downloads together.")
        var group: String?

        @OptionGroup var place: Place

        func validate() throws {
            if urls.isEmpty, inputFile == nil { throw ValidationError("give a URL, or a file with --input-file") }
            if urls.count > 1 || inputFile != nil, checksum != nil {
                throw ValidationError("--checksum is for a single URL")
            }
            if !(1...16).contains(segments) { throw ValidationError("--segments takes 1 to 16") }
            try PathText.check(output)
        }

        func run() async throws {
            try await CommandRun.run { _, _ in
                var urls = urls
                if let inputFile { urls += try FileText.lines(inputFile).map(URLText.complete) }
                let target = try output.map(PathText.place)
                if case .file = target, urls.count > 1 { throw ValidationError("-o is for a single URL") }
                let transfers = try urls.map { try transfer($0, at: target) }
                try await place.open(Place.still) { queue in
                    for id in try await queue.enqueue(contentsOf: transfers) { try Output.writeLine("\(id)") }
                }
            }
        }

        private func transfer(_ text: String, at target: PathText.Place?) throws -> TransferQueue.Transfer {
            guard let url = URL(string: text) else { throw ValidationError("'\(URLText.shown(text))' is no URL") }
            var path = URLText.fileName(text)
            var isNamed = false
            switch target {
            case .file(let file)?: (path, isNamed) = (file, true)
            case .folder(let folder)?: path = folder + path
            case .output?, .device?: throw ValidationError("-o of a queue names a file or a folder")
            case nil: break
            }
            // A later process can have another current folder.
            let file = PathText.url(path).absoluteURL
            var transfer = TransferQueue.Transfer.download(url, to: file)
            // Only a name that the caller gives replaces a file.
            transfer.existing = isNamed ? .overwrite : .fail
            transfer.segments = segments
            transfer.digest = checksum
            transfer.group = group
            return transfer
        }
    }

    /// `tern queue list`: one line for each download.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the downloads: number, state, bytes, file and URL.")

        @OptionGroup var place: Place

        func run() async throws {
            try await CommandRun.run { _, _ in
                try await place.open(Place.still) { queue in
                    for item in try await queue.snapshot { try Output.writeLine(QueueText.line(item)) }
                }
            }
        }
    }

    /// `tern queue run`: downloads everything that waits.
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Download everything that waits, until nothing is left to do.",
            discussion: """
                Failed downloads are tried again. Finished ones leave the list when their line is written. Ctrl-C, and a \
                kill, lose nothing: the next run continues.
                """)

        @Option(name: [.short, .long], help: "The number of files that are downloaded at the same time.")
        var jobs = 4

        @Option(help: ArgumentHelp("The number of files from one host at the same time.", valueName: "number"))
        var jobsPerHost = 2

        @Option(
            help: ArgumentHelp("Limit the rate of all downloads together; k and M as in curl.", valueName: "rate"),
            transform: SizeText.bytes)
        var limitRate: Int?

        @OptionGroup var connection: ConnectionOptions
        @OptionGroup var place: Place

        func run() async throws {
            try await CommandRun.run(connection.messages) { interrupt, terminal in
                var configuration = TransferQueue.Configuration()
                configuration.startsTransfers = false
                configuration.limits.transfers = max(1, jobs)
                configuration.limits.transfersPerHost = max(1, jobsPerHost)
                configuration.limits.bytesPerSecond = limitRate
                if let retry = connection.retry { configuration.retry.policy.limit = retry }
                configuration.retry.maximumTime = connection.timeLimit
                let headers = connection.header.headers
                if !headers.isEmpty { configuration.credentials = { _ in TransferQueue.Credentials(headers: headers) } }
                var urls: [String] = []
                if connection.user != nil {
                    // The password is for the servers of the list, and for no other.
                    try await place.open(Place.still) { queue in
                        let items = try await queue.snapshot.filter { $0.state != .paused && $0.state != .finished }
                        urls = items.map(\.url.absoluteString)
                    }
                }
                let session = ToolSession.make(try connection.configuration(for: urls, terminal))
                var code: Int32?
                try await place.open(with: session, configuration) { queue in
                    try await queue.retry(.all)
                    // Owned by this call: it ends with the queue.
                    interrupt.performs { Task { await queue.close() } }
                    code = try await download(queue, on: terminal)
                }
                if interrupt.exitCode != nil { throw CancellationError() }
                if let code { throw ExitCode(code) }
            }
        }

        /// Downloads everything, closes the queue, and returns the exit code of the first failure.
        private func download(_ queue: TransferQueue, on terminal: Terminal) async throws -> Int32? {
            let bar = await TerminalBar("queue", on: terminal)
            await bar.bindProgress(queue.progress())
            let results = queue.results
            await queue.start()
            // Cancelled below.
            let reporter = Task {
                var report = Report()
                for await item in results { try await report.tell(item, queue, bar, terminal) }
                return report
            }
            await queue.drained()
            reporter.cancel()
            let outcome: Result<Int32?, any Error>
            do {
                var report = try await reporter.value
                for item in try await queue.snapshot where item.state.hasEnded && !report.told.contains(item.id) {
                    try await report.tell(item, queue, bar, terminal)
                }
                outcome = .success(report.code)
            } catch {
                outcome = .failure(error)
            }
            // Ends the progress, also that of downloads that are paused.
            await queue.close()
            await bar.finished()
            return try outcome.get()
        }

        /// The lines written so far about the downloads that ended.
        private struct Report {
            var told: Set<TransferQueue.ItemID> = []
            /// The exit code of the first failure.
            var code: Int32?

            /// Writes the line of a download, and then forgets it if it has finished.
            mutating func tell(
                _ item: TransferQueue.Item, _ queue: TransferQueue, _ bar: TerminalBar, _ terminal: Terminal
            ) async throws {
                told.insert(item.id)
                await bar.clear()
                try terminal.report(QueueText.line(item))
                if let failure = item.failure {
                    code = code ?? ExitStatus.code(of: failure.kind, status: failure.status)
                }
                if item.state == .finished { try await queue.acknowledge(.item(item.id)) }
            }
        }
    }

    /// `tern queue pause`: keeps downloads from being started.
    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pause",
            abstract: "Pause downloads while no 'tern queue run' is running: the next one leaves them out.")

        @OptionGroup var choice: Choice
        @OptionGroup var place: Place

        func run() async throws {
            try await CommandRun.run { _, _ in
                try await place.open(Place.still) { try choice.tell(try await $0.pause(choice.selection), "paused") }
            }
        }
    }

    /// `tern queue resume`: ends the pause of downloads.
    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "resume", abstract: "End the pause of downloads.")

        @OptionGroup var choice: Choice
        @OptionGroup var place: Place

        func run() async throws {
            try await CommandRun.run { _, _ in
                try await place.open(Place.still) { try choice.tell(try await $0.resume(choice.selection), "resumed") }
            }
        }
    }

    /// `tern queue remove`: removes downloads from the list.
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove downloads and their parts while no 'tern queue run' is running. Finished files stay.")

        @OptionGroup var choice: Choice
        @OptionGroup var place: Place

        func run() async throws {
            try await CommandRun.run { _, _ in
                try await place.open(Place.still) { try choice.tell(try await $0.remove(choice.selection), "removed") }
            }
        }
    }
}

/// Formats the downloads of a list. Pure.
enum QueueText {
    /// Returns a line such as `3  waiting   1.0 of 2.0 MB  /tmp/file  https://server/file`.
    static func line(_ item: TransferQueue.Item) -> String {
        let state =
            switch item.state {
            case .waiting: "waiting"
            case .running: "running"
            case .paused: "paused"
            case .waitingForNetwork: "offline"
            case .failed: "failed"
            case .finished: "finished"
            }
        let progress = item.progress
        let bytes =
            progress.totalBytes.map {
                "\(ByteText.size(progress.completedBytes, inUnitOf: $0)) of \(ByteText.size($0))"
            }
            ?? ByteText.size(progress.completedBytes)
        let label = item.label.map { ["[\($0)]"] } ?? []
        let failure = item.failure.map { [$0.reason] } ?? []
        let texts = [item.file.path, item.redactedURL] + label + failure
        return "\(item.id)  \(state)  \(bytes)  \(texts.map { Terminal.plain($0) }.joined(separator: "  "))"
    }
}
