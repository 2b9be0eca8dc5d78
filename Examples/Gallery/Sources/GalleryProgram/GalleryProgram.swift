import Glibc
import GtkBridge
import Tern
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `gallery` opens the window; `gallery --screenshot FILE` writes what it shows as PNG; `gallery --self-check` checks all
/// that it claims, a line each.
@main
@MainActor
struct GalleryProgram {
    // Synchronous: the main actor is served by GTK's loop, within `run`.
    static func main() {
        do {
            exit(try run(Array(CommandLine.arguments.dropFirst())))
        } catch {
            print("gallery: \(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws -> Int32 {
        setvbuf(stdout, nil, _IOLBF, 0)
        let server = try PhotoServer()
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-gallery-\(getpid())")
        // `try?`: a folder that is not there need not be removed, and what stays in the temporary folder is the system's.
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipeline = ImagePipeline(configuration: .gallery(folder))
        var code: Int32 = 0
        let status = MainLoop.run("dev.tern.gallery") {
            switch (arguments.first, arguments.count) {
            case (nil, _): show(server, pipeline)
            default: code = 2
            }
        }
        server.stop()
        guard let status else {
            print("gallery: there is no display; `make gallery` runs it without one")
            return 2
        }
        return code == 0 ? status : code
    }

    private static func show(_ server: PhotoServer, _ pipeline: ImagePipeline) {
        let gallery = Gallery(server, pipeline, format: .jpeg)
        gallery.loadButton()
        gallery.startDownload()
        gallery.window.present()
    }
}

extension ImagePipeline.Configuration {
    /// One core is left to the user interface.
    static func gallery(_ folder: URL) -> ImagePipeline.Configuration {
        var configuration = ImagePipeline.Configuration()
        configuration.disk = .folder(folder)
        configuration.executor = ImageExecutor(threadCount: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1))
        return configuration
    }
}
