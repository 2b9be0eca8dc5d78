import GalleryChecks
import Glibc
import GtkBridge
import Tern
import TernViewModels

/// `gallery-web` opens a page of its own server, `gallery-web URL` another one; `gallery-web --self-check` checks what it
/// claims, a line each.
@main
@MainActor
struct GalleryWebProgram {
    // Synchronous: the main actor is served by GTK's loop, within `run`.
    static func main() {
        do {
            exit(try run(CommandLine.arguments.dropFirst().first))
        } catch {
            print("gallery-web: \(error)")
            exit(1)
        }
    }

    private static func run(_ argument: String?) throws -> Int32 {
        let site = try WebSite()
        defer { site.stop() }
        let first = try Request(.get, argument.flatMap { $0.hasPrefix("-") ? nil : $0 } ?? site.url("/start"))
        let checks = Checks()
        var browser: Browser?
        let status = MainLoop.run("dev.tern.gallery.web") {
            let shown = Browser()
            browser = shown
            shown.window.present()
            guard argument == "--self-check" else {
                shown.page.load(first)
                return
            }
            Task {
                await WebSelfCheck(checks: checks, browser: shown, site: site).run()
                shown.window.close()
            }
        }
        guard let status else {
            print("gallery-web: there is no display")
            return 1
        }
        browser?.page.cancelLoading()
        browser = nil
        guard argument == "--self-check" else { return status }
        checks.check("at the end no widget's peer is left", Peer.liveCount == 0, "\(Peer.liveCount)")
        return checks.finish()
    }
}
