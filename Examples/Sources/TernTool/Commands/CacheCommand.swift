import ArgumentParser
import Tern
import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern cache`: the responses that `tern get --cache` stored.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "List, explain and remove the responses that 'tern get --cache' stored.",
        subcommands: [List.self, Show.self, Explain.self, Purge.self],
        defaultSubcommand: List.self)

    /// Opens the folder of `HTTPCache.shared`.
    ///
    /// - Throws: An error if another process uses it. The responses in it cannot be listed or removed then.
    static func open() async throws -> HTTPCache {
        let cache = HTTPCache.disk(folder: HTTPCache.sharedFolder)
        try await cache.open()
        return cache
    }

    /// A session with a cache.
    static func makeSession(_ cache: HTTPCache) -> Session {
        var configuration = Session.Configuration()
        configuration.cache = cache
        return Session(configuration: configuration)
    }

    /// `tern cache list`: one line for each stored response.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the stored responses, one on each line.")

        @Argument(help: "The beginning of the URLs; all without it.")
        var prefix = ""

        func run() async throws {
            try await CommandRun.run { _, _ in
                for entry in try await CacheCommand.open().entries(matching: prefix) {
                    try Output.write(Data((CacheLines.line(entry) + "\n").utf8))
                }
            }
        }
    }

    /// `tern cache show URL`: the stored head.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show the stored heads of a URL.")

        @Argument(help: "The URL; without a scheme as in 'tern get'.", transform: URLText.complete)
        var url: String

        func run() async throws {
            try await CommandRun.run { _, _ in
                let entries = try await CacheCommand.open().entries(matching: url)
                for entry in entries {
                    var lines = [CacheLines.line(entry)]
                    lines += entry.headers.map { Terminal.plain("\($0.name): \($0.value)") }
                    try Output.write(Data((lines.joined(separator: "\n") + "\n\n").utf8))
                }
                if entries.isEmpty { throw HTTPCache.Failure(reason: "no response of \(URLText.shown(url)) is stored") }
            }
        }
    }

    /// `tern cache explain URL`: what the cache would do.
    struct Explain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "explain", abstract: "Tell what the cache would do with a GET request now.")

        @Argument(help: "The URL; without a scheme as in 'tern get'.", transform: URLText.complete)
        var url: String

        @OptionGroup var header: HeaderOptions

        func run() async throws {
            try await CommandRun.run { _, _ in
                let request = try Request(.get, url, headers: header.headers)
                let cache = try await CacheCommand.open()
                let explanation = try await cache.explain(request, of: CacheCommand.makeSession(cache))
                var lines = ["\(explanation)"]
                lines += explanation.conditions.map { Terminal.plain("  adds \($0.name): \($0.value)") }
                lines += explanation.entries.map { "  stored: " + CacheLines.line($0) }
                try Output.write(Data((lines.joined(separator: "\n") + "\n").utf8))
            }
        }
    }

    /// `tern cache purge`: removes responses.
    struct Purge: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "purge", abstract: "Remove the stored responses of a URL, or all.")

        @Argument(help: "The URL; all responses without it.", transform: URLText.complete)
        var url: String?

        func run() async throws {
            try await CommandRun.run { _, _ in
                let cache = try await CacheCommand.open()
                guard let url else { return try await cache.removeAll() }
                try await cache.remove(url, of: CacheCommand.makeSession(cache))
            }
        }
    }
}

/// The lines of stored responses.
enum CacheLines {
    /// Returns the status, the age, the freshness, the size and the URL.
    static func line(_ entry: HTTPCache.Entry) -> String {
        let left = entry.timeToLive
        let freshness = left > .zero ? "fresh for \(left.components.seconds) s" : "stale"
        let size = ByteText.size(entry.storedBytes) + (entry.isWhole ? "" : " (a part)")
        let age = "\(entry.age.components.seconds) s"
        return Terminal.plain("\(entry.method) \(entry.status)  age \(age), \(freshness)  \(size)  \(entry.url)")
    }
}
