import GalleryChecks
import Glibc
import GtkBridge
import Tern
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `gallery` opens the window, `gallery --screenshot FILE` writes a screenshot as PNG, `gallery --self-check` runs the
/// checks and prints a line for each, and `gallery --bind` is for a trace of its system calls.
@main
@MainActor
struct GalleryProgram {
    // Synchronous: GTK's loop serves the main actor within `run`.
    static func main() {
        do {
            exit(try run(Array(CommandLine.arguments.dropFirst())))
        } catch {
            print("gallery: \(error)")
            exit(1)
        }
    }

    /// Held while its window is open.
    private static var gallery: Gallery?

    private static func run(_ arguments: [String]) throws -> Int32 {
        let server = try PhotoServer()
        defer { server.stop() }
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-gallery-\(getpid())")
        // `try?`: a missing folder need not be removed, and the system cleans the temporary folder.
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipeline = ImagePipeline(configuration: .gallery(folder))
        let checks = Checks()
        let status = MainLoop.run("dev.tern.gallery") {
            let shown = Gallery(server, pipeline, format: arguments.isEmpty ? .jpeg : .png)
            gallery = shown
            // Releases the peers of the widgets, and with them their bindings.
            shown.window.on("destroy") { _ in gallery = nil }
            switch arguments.first {
            case nil: shown.show()
            case "--self-check":
                act { await SelfCheck(checks: checks, gallery: shown, server: server).run() }
            case "--bind":
                act { await BindProbe(server).run() }
            case "--screenshot":
                act {
                    do {
                        try await shown.photograph(to: arguments.dropFirst().first ?? "gallery.png")
                    } catch {
                        checks.check("the window is photographed", false, detail: "\(error)")
                    }
                }
            case let option?:
                checks.check("\(option) is not an option", false)
                MainLoop.quit()
            }
            /// Performs work, and closes the window, which ends the program.
            @MainActor func act(_ work: @escaping @MainActor () async -> Void) {
                Task {
                    await work()
                    shown.window.close()
                }
            }
        }
        guard let status else { throw NoDisplay() }
        guard arguments.first == "--self-check" else { return checks.failures == 0 ? status : 1 }
        checks.check("at the end no widget's peer is left", Peer.liveCount == 0, detail: "\(Peer.liveCount)")
        return checks.finish()
    }
}

struct NoDisplay: Error, CustomStringConvertible {
    let description = "there is no display; `make gallery` does without one"
}

extension Gallery {
    func show() {
        loadButton()
        startDownload()
        window.present()
    }

    /// Writes a screenshot after the photos have loaded, and closes the window.
    func photograph(to path: String) async throws {
        loadButton()
        window.present()
        await MainLoop.wait { !visibleCells.isEmpty && visibleCells.allSatisfy(\.hasLoaded) }
        startDownload()
        await MainLoop.wait { bar.fraction > 0.6 }
        guard let drawn = await window.drawnSoon(),
            let image = RasterImage(
                size: PixelSize(width: drawn.width, height: drawn.height), premultiplied: drawn.pixels())
        else { throw ImageError(.encodingFailed, "the window is not drawn") }
        try image.encoded(as: .png(level: 9)).write(to: URL(filePath: path))
    }
}

extension ImagePipeline.Configuration {
    /// Leaves one core to the user interface.
    static func gallery(_ folder: URL) -> ImagePipeline.Configuration {
        var configuration = ImagePipeline.Configuration()
        configuration.disk = .folder(folder)
        configuration.executor = ImageExecutor(threadCount: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1))
        return configuration
    }
}
