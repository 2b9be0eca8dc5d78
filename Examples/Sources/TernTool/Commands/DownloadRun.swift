import ArgumentParser
import Synchronization
import Tern
import TernTransfers
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A URL, and the file that it is downloaded to.
struct DownloadJob: Sendable {
    let url: String
    let file: URL
    let name: String
}

/// Runs durable downloads: one with its bar, or a list with one bar each and a total.
struct DownloadRun: Sendable {
    let client: Client
    let options: DurableDownloadOptions
    /// The rate of all downloads together, in bytes per second; nil for no limit.
    let limit: Int?
    /// Whether a download that is cancelled can be continued.
    let keepsPart: Bool
    let isVerbose: Bool

    /// The time between two looks at the progress of the downloads of a list.
    private static let displayInterval = Duration.milliseconds(50)

    // MARK: One

    func one(_ job: DownloadJob, _ interrupt: Interrupt, _ terminal: Terminal) async throws {
        let task = start(job, options)
        interrupt.performs { task.cancel() }
        let bar = await TerminalBar(job.file.lastPathComponent, on: terminal)
        await bar.bindProgress(task.progress)
        await bar.finished()
        do {
            let result = try await task.value
            tell(result.trace, on: terminal)
            terminal.tell(line(job, result))
        } catch {
            tell(task.trace, on: terminal)
            if interrupt.exitCode != nil { try await interrupted(task, error, interrupt, on: terminal) }
            throw error
        }
    }

    /// Removes the part of a download that the user has cancelled with Ctrl-C, unless it is to be kept, or says that it
    /// stays.
    private func interrupted(
        _ task: DurableDownloadTask, _ error: any Error, _ interrupt: Interrupt, on terminal: Terminal
    ) async throws {
        guard keepsPart(of: task, interrupt) else { return try await task.discard() }
        // The text of the error tells whether the download has kept its part.
        guard let error = error as? NetworkError, error.reason.contains("bytes are kept in") else { return }
        let size = ByteText.size(task.progressNow.completedBytes)
        terminal.fail("\(size) kept: the same command continues")
    }

    /// Returns whether the part of an interrupted download stays. Only Ctrl-C removes a part, and only if this process
    /// began it.
    private func keepsPart(of task: DurableDownloadTask, _ interrupt: Interrupt) -> Bool {
        if keepsPart || interrupt.exitCode != Interrupt.interruptExitCode { return true }
        var hasBegun = false
        for event in task.trace {
            switch event {
            case .started, .startedOver: hasBegun = true
            case .continued, .tookForeignPart: return true
            default: break
            }
        }
        return !hasBegun
    }

    private func start(_ job: DownloadJob, _ options: DurableDownloadOptions) -> DurableDownloadTask {
        client.download(job.url, to: job.file, resuming: .automatically, options: options)
    }

    private func line(_ job: DownloadJob, _ result: DurableDownloadResult) -> String {
        // With a number, if the name was taken.
        let name = result.file == job.file ? job.name : result.file.lastPathComponent
        return DownloadReport.line(name, result.bytes, result.receivedBytes, in: result.duration)
            + (result.digest.map { ", \($0.algorithm.rawValue) verified" } ?? "")
    }

    private func tell(_ trace: [DurableDownloadEvent], on terminal: Terminal) {
        guard isVerbose else {
            for case .leftForeignPart(let reason) in trace {
                terminal.fail("tern: the existing file is not continued: \(Terminal.plain(reason))")
            }
            return
        }
        for event in trace { terminal.writeLine("tern: \(Terminal.plain("\(event)"))") }
    }

    // MARK: A list

    /// Downloads a list, `count` at the same time, in its order. Throws the exit code of the first in the list that
    /// failed.
    func all(_ jobs: [DownloadJob], count: Int, _ interrupt: Interrupt, _ terminal: Terminal) async throws {
        let bars = BarList(count: jobs.count, on: terminal)
        let running = RunningDownloads(limit: limit)
        interrupt.performs { running.cancel() }
        // Cancelled below, when the last download has ended.
        let display = Task {
            while !Task.isCancelled {
                await bars.show(running.progress)
                // Cancelled: the loop ends.
                try? await Task.sleep(for: Self.displayInterval)
            }
        }
        defer { display.cancel() }
        await withTaskGroup { group in
            for _ in 0..<min(count, jobs.count) {
                group.addTask { await self.work(jobs, bars, running, interrupt) }
            }
        }
        await bars.finish()
        if interrupt.exitCode != nil { throw CancellationError() }
        let failures = running.failures
        guard let first = failures.keys.min(), let code = failures[first] else { return }
        terminal.fail("tern: \(failures.count) of \(jobs.count) failed")
        throw ExitCode(code)
    }

    /// Downloads one file of a list after another, until all have been taken.
    @concurrent
    private func work(
        _ jobs: [DownloadJob], _ bars: BarList, _ running: RunningDownloads, _ interrupt: Interrupt
    ) async {
        while interrupt.exitCode == nil, let index = running.takeNext(of: jobs.count) {
            guard let code = await run(jobs[index], index, bars, running, interrupt) else { continue }
            running.addFailure(index, code)
        }
    }

    /// Downloads one file of a list. Returns the exit code of its failure; nil after its success.
    private func run(
        _ job: DownloadJob, _ index: Int, _ bars: BarList, _ running: RunningDownloads, _ interrupt: Interrupt
    ) async -> Int32? {
        let task = start(job, running.options(options))
        running.add(task, index, named: job.name)
        defer { running.remove(index) }
        do {
            let result = try await task.value
            let trace = isVerbose ? result.trace.map { "\n\(job.name): \(Terminal.plain("\($0)"))" }.joined() : ""
            await bars.end(index, result.bytes, received: result.receivedBytes, line: line(job, result) + trace)
            return nil
        } catch {
            guard interrupt.exitCode == nil else {
                do {
                    if !keepsPart(of: task, interrupt) { try await task.discard() }
                } catch {
                    await bars.end(index, 0, received: 0, line: "tern: \(job.name): \(error)", isFailure: true)
                }
                return nil
            }
            await bars.end(index, 0, received: 0, line: "tern: \(job.name): \(error)", isFailure: true)
            return ExitStatus.code(of: error)
        }
    }
}

/// The downloads of a list: those that run now, which share the limit on the rate in equal parts, and those that
/// failed.
private final class RunningDownloads: Sendable {
    private struct State {
        var running: [Int: (name: String, task: DurableDownloadTask)] = [:]
        /// The number of downloads that have begun.
        var begun = 0
        /// The exit codes of those that failed.
        var failures: [Int: Int32] = [:]
        var isCancelled = false

        var tasks: [DurableDownloadTask] { running.values.map(\.task) }
    }

    private let limit: Int?
    private let state = Mutex(State())

    init(limit: Int?) { self.limit = limit }

    /// Returns the options of the next download, whose rate is that of its part.
    func options(_ options: DurableDownloadOptions) -> DurableDownloadOptions {
        var options = options
        options.throttle = limit.map { limit in max(1, limit / (state.withLock { $0.running.count } + 1)) }
        return options
    }

    /// The exit codes of the downloads that failed, by their numbers in the list.
    var failures: [Int: Int32] { state.withLock(\.failures) }

    func addFailure(_ index: Int, _ code: Int32) { state.withLock { $0.failures[index] = code } }

    /// Returns the number of the next download of the list; nil if all have begun.
    func takeNext(of count: Int) -> Int? {
        state.withLock { state in
            guard state.begun < count else { return nil }
            state.begun += 1
            return state.begun - 1
        }
    }

    /// The number in the list, the name and the progress of each.
    var progress: [(index: Int, name: String, progress: Session.Progress)] {
        state.withLock(\.running).map { index, one in (index, one.name, one.task.progressNow) }
    }

    func add(_ task: DurableDownloadTask, _ index: Int, named name: String) {
        let (tasks, isCancelled) = state.withLock { state in
            state.running[index] = (name, task)
            return (state.tasks, state.isCancelled)
        }
        share(among: tasks)
        if isCancelled { task.cancel() }
    }

    func remove(_ index: Int) {
        share(
            among: state.withLock { state in
                state.running[index] = nil
                return state.tasks
            })
    }

    func cancel() {
        let tasks = state.withLock { state in
            state.isCancelled = true
            return state.tasks
        }
        for task in tasks { task.cancel() }
    }

    private func share(among tasks: [DurableDownloadTask]) {
        guard let limit else { return }
        for task in tasks { task.throttle = limit / max(1, tasks.count) }
    }
}
