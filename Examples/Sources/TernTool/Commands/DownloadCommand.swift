import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern download`: writes a response to a file, with live progress.
struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Download to a file.",
        discussion: """
            Without -o the file is named as the server suggests, in the current folder; what is there stays, and the \
            new file gets a number. A failed or cancelled download leaves nothing behind, unless --resume is given.
            """)

    @Argument(help: "The URL, http or https.")
    var url: String

    @Option(name: [.short, .long], help: "The file to write; one that exists is replaced at the end.")
    var output: String?

    @Flag(help: "Keep what has come of a download that ends early, and continue it the next time.")
    var resume = false

    @OptionGroup var header: HeaderOptions

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let client = Client(headers: header.headers)
            if resume {
                let file = URL(filePath: try await name(client))
                try await ResumableDownload(url: url, file: file, client: client).run(interrupt, terminal)
            } else {
                let task = start(client)
                interrupt.cancels(task)
                try await DownloadReport.follow(task, named: output, on: terminal)
            }
        }
    }

    private func start(_ client: Client) -> SessionTask<URL> {
        if let output { return client.download(url, to: URL(filePath: output)) }
        return client.download(url, options: Download.Options(existing: .keepBoth)) { _, head in
            URL(filePath: head.suggestedFilename)
        }
    }

    /// Returns the name of the file. A download that may be resumed needs it before it begins.
    private func name(_ client: Client) async throws -> String {
        if let output { return output }
        do {
            return try await client.head(url).suggestedFilename
        } catch {
            guard error.kind == .status else { throw error }
            throw ResumableDownload.Conflict(
                description: "the server does not tell the file's name beforehand, give one with -o: \(error)")
        }
    }
}

/// Reports the end of a download.
enum DownloadReport {
    /// Shows the progress of a download, and waits for its file.
    static func follow(_ task: SessionTask<URL>, named name: String?, on terminal: Terminal) async throws {
        // Without a given name the server names the file; the name arrives with the head.
        var path = name ?? "download"
        if name == nil, let head = await task.response { path = head.suggestedFilename }
        let bar = await TerminalBar(URL(filePath: path).lastPathComponent, on: terminal)
        await bar.follow(task)
        let file = try await task.value
        let metrics = task.metrics
        let time = metrics?.total ?? bar.elapsed
        let size = await bar.status.completed
        let rate = ByteText.rate(metrics?.receivedBytes ?? size, in: time)
        terminal.writeLine(
            "\(name ?? file.lastPathComponent): \(ByteText.size(size)) in \(DurationText.span(time)), \(rate)")
    }
}

/// A download that survives its process. The received bytes stay in a partial file, and the token to resume it in a
/// file beside the destination, `big.iso.tern`.
struct ResumableDownload {
    struct Conflict: Error, CustomStringConvertible {
        let description: String
    }

    let url: String
    let file: URL
    let client: Client

    private var tokenFile: URL { URL(filePath: file.path + ".tern") }

    func run(_ interrupt: Interrupt, _ terminal: Terminal) async throws {
        let token = try storedToken()
        if let token { terminal.writeLine("continuing at \(ByteText.size(token.offset))") }
        let task = start(token)
        interrupt.cancels(task)
        do {
            async let stored: Void = store(task)
            try await DownloadReport.follow(task, named: file.relativePath, on: terminal)
            await stored
        } catch {
            if let token = task.resumeData {
                try keep(token)
                terminal.writeLine("\(ByteText.size(token.offset)) kept: the same command continues")
            }
            throw error
        }
        try removeToken()
    }

    /// Stores the token every second while the download runs, because a killed process cannot store it at its end.
    private func store(_ task: SessionTask<URL>) async {
        let clock = ContinuousClock()
        var next = clock.now
        for await _ in task.progress where clock.now >= next {
            guard let token = task.resumeData else { continue }
            // `try?`: a full disk may have space again at the end, where a failure is reported.
            try? keep(token)
            next = clock.now.advanced(by: .seconds(1))
        }
    }

    private func start(_ token: ResumeData?) -> SessionTask<URL> {
        if let token { return client.download(resuming: token, to: file) }
        return client.download(url, to: file, options: Download.Options(isResumable: true))
    }

    /// Returns the token of an earlier run; nil if there is nothing to resume.
    private func storedToken() throws -> ResumeData? {
        guard FileManager.default.fileExists(atPath: tokenFile.path) else { return nil }
        let token = try JSONDecoder().decode(ResumeData.self, from: Data(contentsOf: tokenFile))
        guard try token.url == client.request(.get, url).urlString else {
            throw Conflict(
                description: "\(tokenFile.relativePath) continues \(token.url): remove it, or give another file")
        }
        guard FileManager.default.fileExists(atPath: "\(token.folder)/\(token.partialFile)") else {
            try removeToken()
            return nil
        }
        return token
    }

    /// Stores the token in place of an older one.
    private func keep(_ token: ResumeData) throws {
        try JSONEncoder().encode(token).write(to: tokenFile, options: .atomic)
    }

    private func removeToken() throws {
        guard FileManager.default.fileExists(atPath: tokenFile.path) else { return }
        try FileManager.default.removeItem(at: tokenFile)
    }
}
