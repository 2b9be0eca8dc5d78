import ArgumentParser
import Tern

/// What all commands share: signals cancel, errors become one line on standard error and an exit code.
enum CommandRun {
    /// Runs a command's work. Whatever it throws after a signal counts as the cancellation that was asked for.
    static func run(_ work: (_ interrupt: Interrupt, _ terminal: Terminal) async throws -> Void) async throws {
        let interrupt = Interrupt()
        let terminal = Terminal()
        do {
            try await work(interrupt, terminal)
        } catch let code as ExitCode {
            throw code
        } catch let failure as Output.Failure where failure.isClosedPipe {
            throw ExitCode.failure
        } catch {
            if let code = interrupt.exitCode {
                terminal.say("tern: cancelled")
                throw ExitCode(code)
            }
            terminal.say("tern: \(error)")
            throw ExitCode.failure
        }
    }
}
