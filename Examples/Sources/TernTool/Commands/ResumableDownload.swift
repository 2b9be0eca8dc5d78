import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A download that outlives its process: what has come stays in a partial file, and the token to continue it in a file
/// beside the destination, `big.iso.tern`.
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
        if let token { terminal.say("continuing at \(ByteText.size(token.offset))") }
        let task = start(token)
        interrupt.cancels(task)
        do {
            async let stored: Void = store(task)
            try await DownloadReport.follow(task, named: file.relativePath, on: terminal)
            await stored
        } catch {
            if let token = task.resumeData {
                try keep(token)
                terminal.say("\(ByteText.size(token.offset)) kept: the same command continues")
            }
            throw error
        }
        try removeToken()
    }

    /// A process that is killed has no end at which to keep the token: it is kept every second while the download runs.
    private func store(_ task: SessionTask<URL>) async {
        let clock = ContinuousClock()
        var next = clock.now
        for await _ in task.progress where clock.now >= next {
            guard let token = task.resumeData else { continue }
            // `try?`: a disk that has no room now may have some at the end, and there a failure is told.
            try? keep(token)
            next = clock.now.advanced(by: .seconds(1))
        }
    }

    private func start(_ token: ResumeData?) -> SessionTask<URL> {
        if let token { return client.download(resuming: token, to: file) }
        return client.download(url, to: file, options: Download.Options(isResumable: true))
    }

    /// What an earlier run left; nil when there is nothing to continue.
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

    /// Keeps the way back, in the place of an older one.
    private func keep(_ token: ResumeData) throws {
        try JSONEncoder().encode(token).write(to: tokenFile, options: .atomic)
    }

    private func removeToken() throws {
        guard FileManager.default.fileExists(atPath: tokenFile.path) else { return }
        try FileManager.default.removeItem(at: tokenFile)
    }
}
