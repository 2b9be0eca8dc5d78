import BenchSupport
import Foundation
import Tern
import TernStreaming

/// Measures WebSocket and server-sent events. Prints one line of JSON.
///
///     bench-streaming echo URL SIZE COUNT WINDOW [executor]    COUNT messages of SIZE bytes, WINDOW of them under way
///     bench-streaming events URL COUNT [executor]              reads COUNT events
///
/// With `executor`, the calls prefer the executor of the session.
@main
enum StreamingBenchmark {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let session = Session(configuration: configuration)
        let numbers = words.dropFirst(2).compactMap { Int($0) }
        let run: @Sendable () async throws -> Void
        if words.first == "echo", numbers.count == 3 {
            run = { try await echo(session, words[1], size: numbers[0], count: numbers[1], window: numbers[2]) }
        } else if words.first == "events", numbers.count == 1 {
            run = { try await events(session, words[1], count: numbers[0]) }
        } else {
            print("usage: bench-streaming echo URL SIZE COUNT WINDOW [executor] | events URL COUNT [executor]")
            return
        }
        if words.last == "executor" {
            try await withTaskExecutorPreference(session.executor) { try await run() }
        } else {
            try await run()
        }
    }

    @concurrent
    private static func echo(
        _ session: Session, _ url: String, size: Int, count: Int, window: Int
    ) async throws {
        var options = WebSocket.Options()
        options.receiveBufferSize = 16 << 20
        let socket = try await session.webSocket(url, protocols: ["echo"], options: options)
        let message = WebSocket.Message.binary(Data(count: size))
        let before = Sample.now()
        for _ in 0..<min(window, count) { try await socket.send(message) }
        for number in 0..<count {
            guard let answer = try await socket.receive(), answer.byteCount == size else { throw Failure.wrongAnswer }
            if number + window < count { try await socket.send(message) }
        }
        report(before, count: count)
        try await socket.close()
    }

    @concurrent
    private static func events(_ session: Session, _ url: String, count: Int) async throws {
        let before = Sample.now()
        var number = 0
        for try await event in session.events(for: try Request(.get, url)) {
            guard event.type == "price" else { throw Failure.wrongAnswer }
            number += 1
            if number == count { break }
        }
        report(before, count: count)
    }

    private static func report(_ before: Sample, count: Int) {
        let after = Sample.now()
        let (seconds, cpu) = (after.wall - before.wall, after.cpu - before.cpu)
        print(
            """
            {"rate":\(Double(count) / seconds),"cpu_us":\(cpu * 1e6 / Double(count)),"seconds":\(seconds),\
            "rss_mib":\(peakResidentMiB())}
            """)
    }

    private enum Failure: Error { case wrongAnswer }
}
