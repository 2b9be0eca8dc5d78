import Tern
import TernImages
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Steps that load images from the server into a view.
enum ImageSteps {
    static let path = "/picture.png"
    private static let size = PixelSize(width: 96, height: 64)

    /// Returns a PNG file with an evening sun.
    static func png() throws -> Data {
        let pixels = (0..<size.pixelCount).flatMap { index -> [UInt8] in
            let (x, y) = (index % size.width, index / size.width)
            let isSun = (x - 64) * (x - 64) + (y - 26) * (y - 26) < 14 * 14
            return isSun ? [255, 210, 60, 255] : [UInt8(60 + 3 * y), UInt8(40 + y), UInt8(150 - y), 255]
        }
        guard let image = RasterImage(size: size, premultiplied: pixels) else {
            throw DemoFailure(description: "the picture has no pixels")
        }
        return try image.encoded(as: .png())
    }

    /// Draws if standard output is a terminal, and in any case verifies the output.
    @MainActor
    static func blocks(_ stage: DemoStage) async throws -> String {
        var configuration = ImagePipeline.Configuration()
        configuration.session = stage.session
        configuration.disk = .none

        let layout = CellLayout(.usual, form: .blocks, columns: 24, rows: 8)
        let isTrueColor = GraphicsProtocol(environment: ProcessInfo.processInfo.environment) != .blocks256
        let painter = ImagePainter(
            form: isTrueColor ? .blocks : .blocks256, layout: layout, backdrop: .terminal(isDark: true))
        var drawn: [String] = []
        let view = TerminalImageView(
            painter, isLive: false, bar: TerminalBar("picture", on: stage.terminal),
            alerts: TerminalAlerts(on: stage.terminal)
        ) { text in
            drawn.append(text)
            if Output.isTerminal, stage.terminal.isInteractive { try Output.write(Data(text.utf8)) }
        }
        view.imagePipeline = ImagePipeline(configuration: configuration)

        var display = ImageDisplay()
        display.decodesToViewSize = true
        let url = URL(string: stage.url + path.dropFirst())
        let response = try await view.loadImage(from: url, display: display).value
        let cells = drawn.joined().split(separator: "\n").map { line in line.count { "▀▄".contains($0) } }
        try DemoFailure.unless(
            cells == Array(repeating: layout.columns, count: layout.rows), "\(drawn.count) pictures of \(cells) cells")
        return "\(response.image.metadata.originalSize) pixels in \(response.image.format?.rawValue ?? "no format"), "
            + "decoded to \(response.image.size), \(layout.columns)×\(layout.rows) cells drawn of two pixels each"
    }
}
