import GalleryChecks
import GalleryViews
import GalleryWeb
import Glibc
import GtkBridge
import Tern
import TernViewModels

/// `gallery-web` opens a page of its own server, and `gallery-web URL` another one; `gallery-web --self-check` runs its
/// checks and prints a line for each.
@main
@MainActor
struct GalleryWebProgram {
    // Synchronous: GTK's loop serves the main actor within `run`.
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
        checks.check("at the end no widget's peer is left", Peer.liveCount == 0, detail: "\(Peer.liveCount)")
        return checks.finish()
    }
}

/// The window: a page, the steps back and forward, and a bar and a spinner for loads.
@MainActor
final class Browser {
    let window = Window("Tern web", width: 800, height: 600)
    let page = WebView()
    let back = Button("Back")
    let forward = Button("Forward")
    let reload = Button("Reload")
    let bar = ProgressBar()
    let spinner = Spinner()

    init() {
        let row = Stack(.row, spacing: 8)
        row.setMargin(8)
        bar.expand(vertically: false)
        bar.centerVertically()
        row.add(back).add(forward).add(reload).add(bar).add(spinner)
        page.expand()
        window.setContent(Stack(.column).add(row).add(page))
        // The widgets own these closures, so they hold the page weakly.
        back.onClick { [weak page] in page?.goBack() }
        forward.onClick { [weak page] in page?.goForward() }
        reload.onClick { [weak page] in page?.reload() }
        page.whenStarted = { [weak bar, weak spinner, weak self] load in
            bar?.bindDownloadProgress(of: load.task)
            spinner?.bindActivity(to: load.task)
            self?.showSteps()
        }
        page.whenEnded = { [weak self] in self?.showSteps() }
        showSteps()
    }

    private func showSteps() {
        back.isEnabled = page.canGoBack
        forward.isEnabled = page.canGoForward
    }
}
