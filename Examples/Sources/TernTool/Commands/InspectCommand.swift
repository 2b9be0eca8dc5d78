import ArgumentParser
import Synchronization
import Tern
import TernInspector

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern inspect`: another command of the tool, with a page of its requests.
struct InspectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Run a command of tern, and show its requests on a page of this machine.",
        usage: "tern inspect [--port N] [--no-wait] COMMAND …",
        discussion: """
            The command is any of this tool's: 'tern inspect get URL', 'tern inspect download URL'. The page is at \
            127.0.0.1, with a random token in its URL, which standard error tells. It stays until Ctrl-C, after the command \
            has ended, too. Secrets are hidden. Requests of other programs are not seen.
            """)

    @Option(help: ArgumentHelp("The port of the page; a free one by default.", valueName: "number"))
    var port = 0

    @Flag(help: "End the page with the command.")
    var noWait = false

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The command of tern with its arguments.", valueName: "command"))
    var words: [String]

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port takes a number from 0 to 65535") }
        guard let first = words.first else { throw ValidationError("inspect needs a command, such as 'get URL'") }
        if first == Self.configuration.commandName {
            throw ValidationError("inspect shows another command, and not itself")
        }
    }

    func run() async throws {
        var command = try await TernTool.asyncParseAsRoot(ArgumentReader.completed(words))
        let inspection = Inspection(port: port)
        ToolSession.inspection.withLock { $0 = inspection }
        var code: ExitCode?
        do {
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failed as ExitCode {
            code = failed
        }
        // A signal that has ended the command ends the page.
        let isInterrupted = (code?.rawValue ?? 0) > 128
        if !noWait, !isInterrupted, inspection.isOpen {
            let interrupt = Interrupt()
            Terminal().writeLine("tern: the command has ended; Ctrl-C ends the page")
            await inspection.wait(until: interrupt)
        }
        inspection.end()
        if let code { throw code }
    }
}

/// The page of `tern inspect`: that of the first session of the command.
final class Inspection: Sendable {
    private let observer = SessionInspector()
    private let port: Int
    /// Owned by this object: `end()` cancels it.
    private let page = Mutex<Task<Void, Never>?>(nil)

    init(port: Int) { self.port = port }

    var isOpen: Bool { page.withLock { $0 != nil } }

    /// Returns the configuration with the observer.
    func observed(_ configuration: Session.Configuration) -> Session.Configuration {
        var configuration = configuration
        configuration.observers.append(observer)
        return configuration
    }

    /// Opens the page for a session, unless there is one.
    func show(_ session: Session) {
        page.withLock { page in
            guard page == nil else { return }
            page = Task { [port] in
                do {
                    try await session.inspect(port: port) { url in
                        Terminal().writeLine("tern: the requests are shown at \(url)")
                    }
                } catch {
                    Terminal().fail("tern: \(error)")
                }
            }
        }
    }

    func end() { page.withLock { $0 }?.cancel() }

    /// Returns when a signal has come, or the page has failed.
    func wait(until interrupt: Interrupt) async {
        interrupt.performs { self.end() }
        await page.withLock { $0 }?.value
    }
}

/// The sessions of the tool, which `tern inspect` shows.
enum ToolSession {
    static let inspection = Mutex<Inspection?>(nil)

    static func make(
        _ configuration: Session.Configuration,
        by makeSession: (Session.Configuration) -> Session = { Session(configuration: $0) }
    ) -> Session {
        guard let inspection = inspection.withLock({ $0 }) else { return makeSession(configuration) }
        let session = makeSession(inspection.observed(configuration))
        inspection.show(session)
        return session
    }
}
