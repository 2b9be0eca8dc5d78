import Synchronization
import Tern
import TernImages
import TernTesting
import TernViewModels
import Testing

@testable import TernTool

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite(.timeLimit(.minutes(1)))
struct TerminalImageViewTests {
    private let escape = "\u{1B}"
    private let drawn = OutputRecorder()
    private let recorder = OutputRecorder()

    private func show(
        isLive: Bool = true, pipeline: ImagePipeline? = nil, write: (@MainActor (String) throws -> Void)? = nil
    ) -> (ImagePresentation, TerminalAlerts) {
        let terminal = recorder.terminal(isInteractive: false)
        let layout = CellLayout(WindowSize(columns: 20, rows: 10), form: .blocks)
        let painter = ImagePainter(form: .blocks, layout: layout, backdrop: .terminal(isDark: true))
        let (bar, alerts) = (TerminalBar("a.png", on: terminal), TerminalAlerts(on: terminal))
        let view = TerminalImageView(
            painter, isLive: isLive, bar: bar, alerts: alerts, write: write ?? { drawn.add($0) })
        view.imagePipeline = pipeline
        return (ImagePresentation(view: view, bar: bar, interrupt: Interrupt([])), alerts)
    }

    private func image(_ pixels: [[UInt8]], height: Int = 2) throws -> RasterImage {
        let size = PixelSize(width: pixels.count / height, height: height)
        return try #require(RasterImage(size: size, premultiplied: pixels.flatMap { $0 + [255] }))
    }

    @Test func aLoadOverTheNetworkIsDrawn() async throws {
        let png = try image([[255, 0, 0], [0, 0, 255]]).encoded(as: .png())
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Content-Type", "image/png")], body: Array(png))
        }
        defer { server.stop() }
        let (show, _) = show(pipeline: try TestPipeline.make())
        let (response, _) = try await show.run(ImageRequest(server.url("/a.png")))
        #expect(response.source == .network && response.data == png)
        #expect(
            drawn.texts == [
                "\(escape)[?25l\(escape)[38;2;255;0;0;48;2;0;0;255m▀\(escape)[0m\n",
                "\(escape)\\\(escape)[0m\(escape)[?25h\r\(escape)[K",
            ])
        let facts = ImageSummary(name: "a.png", response: response, isFile: false, time: .milliseconds(3))
        #expect(facts.line == "a.png: 1×2, image/png, from the network, \(png.count) B in 3.0 ms")
    }

    @Test func aStatusIsAnAlertOnStandardError() async throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let (show, alerts) = show(pipeline: try TestPipeline.make())
        await #expect(throws: ImageError.self) { try await show.run(ImageRequest(server.url("/status/404"))) }
        #expect(recorder.texts.last == "tern: Not Found: Status 404 Not Found is not in 200–299.\n")
        #expect(alerts.wasShown && drawn.texts.isEmpty)
    }

    @Test func aMissingFileIsReportedWithTheSystemsMessage() async throws {
        let (show, _) = show(pipeline: try TestPipeline.make())
        let nowhere = URL(filePath: "/nowhere/a.png")
        await #expect(throws: ImageError.self) { try await show.run(ImageRequest(.file(nowhere))) }
        #expect(
            recorder.texts.last
                == "tern: The Picture Could Not Be Read: The file cannot be read: No such file or directory.\n")
    }

    @Test func anAnimationPlaysInPlace() async throws {
        let gif = TestPipeline.blinkingGIF(loops: 2)
        let (show, _) = show(pipeline: try TestPipeline.make())
        let source = ImageRequest.Source.data("blink") { gif }
        let (response, _) = try await show.run(ImageRequest(source))
        #expect(response.animation?.count == 2)
        let pictures = drawn.texts.dropLast()
        // A frame whose time has passed is skipped, but never the first and the last.
        #expect(pictures.count >= 2 && pictures.last?.contains("38;2;0;0;255m") ?? false)
        #expect(pictures.dropFirst().allSatisfy { $0.hasPrefix("\(escape)[1A\r\(escape)[38;2;") })
        #expect(drawn.texts.last?.contains("[?25h") ?? false)
        #expect(show.view.imagePlayback() == nil)
    }

    @Test func withoutATerminalThereIsOnePictureAndNoControlOfTheCursor() async throws {
        let gif = TestPipeline.blinkingGIF(loops: 0)
        let (show, _) = show(isLive: false, pipeline: try TestPipeline.make())
        _ = try await show.run(ImageRequest(.data("blink") { gif }))
        #expect(drawn.texts == ["\(escape)[38;2;255;0;0m▀\(escape)[0m\n"])
    }

    @Test func previewsAreDrawnOver() throws {
        let (show, _) = show()
        show.view.showImage(ImageUpdate(.image(try image([[1, 1, 1], [1, 1, 1]])), phase: .preview(1)), in: .image)
        show.view.showImage(
            ImageUpdate(.image(try image([[2, 2, 2], [2, 2, 2]])), phase: .success(.network)), in: .image)
        #expect(drawn.texts.count == 2)
        #expect(drawn.texts[0].hasPrefix("\(escape)[?25l") && drawn.texts[1].hasPrefix("\(escape)[1A\r"))
    }

    @Test func aFailureToWriteStopsTheLoad() async throws {
        let gif = TestPipeline.blinkingGIF(loops: 0)
        let (show, alerts) = show(pipeline: try TestPipeline.make()) { _ in throw Output.Failure(code: 32) }
        await #expect(throws: Output.Failure.self) { try await show.run(ImageRequest(.data("blink") { gif })) }
        #expect(!alerts.wasShown && show.view.imagePlayback() == nil)
    }
}

private enum TestPipeline {
    /// Creates a pipeline without a disk and with direct access to the loopback.
    static func make() throws -> ImagePipeline {
        var session = Session.Configuration()
        session.proxies = .none
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(configuration: session)
        configuration.disk = .none
        return ImagePipeline(configuration: configuration)
    }

    /// Returns a GIF of one pixel that is red for 20 ms and blue for 20 ms.
    static func blinkingGIF(loops: UInt8) -> Data {
        var bytes = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 255]
        bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, loops, 0, 0]
        for color: UInt8 in [0, 1] {
            bytes += [0x21, 0xF9, 4, 0, 2, 0, 0, 0]
            // Codes of 3 bits: clear, the colour, end.
            bytes += [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, color == 0 ? 0x44 : 0x4C, 0x01, 0]
        }
        return Data(bytes + [0x3B])
    }
}

/// Records the writes to a terminal.
final class OutputRecorder: Sendable {
    private let state = Mutex<[String]>([])
    private let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    var texts: [String] { state.withLock { $0 } }

    func add(_ text: String) {
        state.withLock { $0.append(text) }
        change.yield()
    }

    /// Returns when a condition holds for the writes. One caller at a time.
    func until(_ condition: ([String]) -> Bool) async {
        if condition(texts) { return }
        for await _ in changes where condition(texts) { return }
    }

    /// Creates a terminal that writes to this recorder.
    func terminal(isInteractive: Bool) -> Terminal {
        Terminal(isInteractive: isInteractive) { self.add($0) }
    }
}
