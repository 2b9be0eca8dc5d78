import ArgumentParser

/// The `tern` command: Tern in a terminal, and an example of each thing a program does with it.
@main
struct TernTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tern",
        abstract: "Requests, file transfers and pictures over HTTP, with live progress.",
        discussion: "Ctrl-C cancels cleanly: no partial file is left, and the exit code is 130.",
        subcommands: [
            GetCommand.self, DownloadCommand.self, UploadCommand.self, ImageCommand.self, DemoCommand.self,
        ]
    )
}
