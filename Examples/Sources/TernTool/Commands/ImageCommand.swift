import ArgumentParser
import Tern
import TernImages
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern image`: shows an image in the terminal, loaded with the view-model protocols like in any view.
struct ImageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "image",
        abstract: "Show a picture in the terminal.",
        discussion: """
            JPEG, PNG, WebP, GIF and more. Previews are drawn over as the bytes come, animations play in place until \
            Ctrl-C. If standard output is not a terminal, a line about the image is written instead. Of a video (.mp4, \
            .mov, .webm, .mkv), the first picture is shown, if GStreamer is there.
            """)

    @Argument(help: "The URL, http, https or file, or a file's path.")
    var source: String

    @Option(help: "Cells from left to right at most; those of the window by default.")
    var width: Int?

    @Option(help: "Cells from top to bottom at most; those of the window by default, but two.")
    var height: Int?

    @Option(
        name: .customLong("protocol"),
        help: "The protocol for the terminal: \(GraphicsProtocol.allCases.map(\.rawValue).joined(separator: ", ")).")
    var form: GraphicsProtocol?

    @Option(help: "How often an animation plays, 0 for ever; as often as its file says by default.")
    var loops: Int?

    @Flag(help: "Lay what is transparent on a checkerboard, in place of the terminal's background.")
    var checker = false

    @Flag(help: "Fetch it anew, and keep nothing on the disk.")
    var noCache = false

    @Flag(help: "Write the image even if standard output is not a terminal.")
    var force = false

    @OptionGroup var header: HeaderOptions

    func validate() throws {
        if source.isEmpty { throw ValidationError("the picture's URL or path is empty") }
        for (name, value) in [("width", width), ("height", height)] {
            if let value, !(1...10_000).contains(value) {
                throw ValidationError("--\(name) is a number of cells, from 1 to 10000")
            }
        }
        if let loops, loops < 0 { throw ValidationError("--loops is a number from 0 on") }
    }

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in try await show(interrupt, terminal) }
    }

    @MainActor
    private func show(_ interrupt: Interrupt, _ terminal: Terminal) async throws {
        let isTerminal = Output.isTerminal
        let isDrawn = isTerminal || force
        let (bar, alerts) = (TerminalBar(name, on: terminal), TerminalAlerts(on: terminal))
        let view = TerminalImageView(painter, isLive: isTerminal, bar: bar, alerts: alerts) { text in
            if isDrawn { try Output.write(Data(text.utf8)) }
        }
        #if os(Linux)
        // Only for a video: with a registered decoder there are no previews.
        if VideoPosterDecoder.isVideo(name) { ImageDecoders.shared.register(VideoPosterDecoder()) }
        #endif
        let keyboard = view.isLive ? Keyboard() : nil
        interrupt.performs { keyboard?.restore() }
        defer { keyboard?.restore() }
        do {
            let show = ImagePresentation(view: view, bar: bar, interrupt: interrupt)
            let (response, time) = try await show.run(try request(), loops: loops)
            let facts = ImageSummary(name: name, response: response, isFile: file != nil, time: time).line
            if isDrawn { terminal.writeLine(facts) } else { try Output.writeLine(facts) }
        } catch {
            if let error = error as? NetworkError { alerts.showAlert(for: error) }
            throw alerts.wasShown ? ExitCode.failure : error
        }
        if let code = interrupt.exitCode { throw ExitCode(code) }
        // `try?`: an image that is not on the disk yet is fetched again next time, which is no failure.
        if !noCache { try? await ImagePipeline.shared.flush() }
    }

    private var painter: ImagePainter {
        let environment = ProcessInfo.processInfo.environment
        let form = form ?? GraphicsProtocol(environment: environment)
        let layout = CellLayout(WindowSize.of(1), form: form, columns: width, rows: height)
        // A square is two cells wide and one high.
        let backdrop: Backdrop =
            checker ? .checker(side: layout.cell.height) : .terminal(environment: environment)
        return ImagePainter(form: form, layout: layout, backdrop: backdrop)
    }

    /// The file of a path or of a `file` URL; nil for an address to fetch.
    private var file: URL? {
        guard source.contains("://") else { return PathText.url(source) }
        return URL(string: source).flatMap { $0.isFileURL ? $0 : nil }
    }

    private var name: String {
        let url = file ?? URL(string: source)
        return url.map(\.lastPathComponent).flatMap { $0.isEmpty || $0 == "/" ? nil : $0 } ?? source
    }

    private func request() throws(NetworkError) -> ImageRequest {
        let source: ImageRequest.Source =
            if let file { .file(file) } else { .request(try Request(.get, source, headers: header.headers)) }
        var request = ImageRequest(source)
        if noCache { request.caching = .none }
        return request
    }
}
