import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the demo does with an address of the user's.
enum AddressSteps {
    static func head(_ stage: DemoStage) async throws -> String {
        do {
            let head = try await stage.client.head(stage.url)
            let type = Terminal.plain(head.headers["Content-Type"] ?? "no type")
            let length = head.contentLength.map { ByteText.size($0) } ?? "unknown length"
            return "status \(head.status), \(head.version.rawValue), \(type), \(length), "
                + "server \(Terminal.plain(head.headers["Server"] ?? "unnamed"))"
        } catch {
            guard error.status == 405 || error.status == 501 else { throw error }
            return "the server does not know HEAD (\(error.status ?? 0))"
        }
    }

    static func get(_ stage: DemoStage) async throws -> String {
        let request = try stage.client.request(.get, stage.url)
        do {
            let response = try await stage.client.response(for: request)
            return "status \(response.status), \(ByteText.size(Int64(response.value.count))) · "
                + MetricsLine.text(response.metrics)
        } catch {
            guard error.kind == .tooLarge else { throw error }
            return "too large for the memory, as it should say: \(error)"
        }
    }

    static func download(_ stage: DemoStage) async throws -> String {
        let task = stage.client.download(stage.url) { _, head in stage.file(head.suggestedFilename) }
        let bar = await TerminalBar(await task.response?.suggestedFilename ?? "download", on: stage.terminal)
        await bar.follow(task)
        let file = try await task.value
        let time = task.metrics?.total ?? bar.elapsed
        let size = await bar.figures.completed
        return "\(file.lastPathComponent), \(ByteText.size(size)) in \(DurationText.span(time)), "
            + ByteText.rate(size, in: time)
    }

    static func stream(_ stage: DemoStage) async throws -> String {
        let start = ContinuousClock.now
        let stream = stage.client.stream(stage.url)
        var (chunks, bytes) = (0, Int64(0))
        for try await chunk in stream.chunks {
            chunks += 1
            bytes += Int64(chunk.count)
        }
        let firstByte = stream.task.metrics?.firstByte.map { DurationText.span($0) } ?? "unknown"
        return "\(ByteText.size(bytes)) in \(chunks) chunks in \(DurationText.span(.now - start)), "
            + "first byte after \(firstByte)"
    }
}
