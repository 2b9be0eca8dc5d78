import GalleryChecks
import GalleryViews
import GalleryWeb
import Glibc
import GtkBridge
import Tern
import TernViewModels

/// `gallery-web` opens a page of its own server, and `gallery-web URL` another one; `gallery-web --screenshot FILE
/// [URL]` writes a picture of it as PNG; `gallery-web --self-check` runs its checks and prints a line for each.
@main
@MainActor
struct GalleryWebProgram {
    // Synchronous: GTK's loop serves the main actor within `run`.
    static func main() {
        do {
            exit(try run(Array(CommandLine.arguments.dropFirst())))
        } catch {
            print("gallery-web: \(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws -> Int32 {
        let isSelfCheck = arguments.first == "--self-check"
        let screenshot = arguments.first == "--screenshot" && arguments.count > 1 ? arguments[1] : nil
        let page = screenshot == nil ? arguments.first : arguments.dropFirst(2).first
        let site = try WebSite()
        defer { site.stop() }
        let first = try Request(.get, isSelfCheck ? site.url("/start") : page ?? site.url("/"))
        let checks = Checks()
        var browser: Browser?
        let status = MainLoop.run("dev.tern.gallery.web") {
            let shown = Browser()
            browser = shown
            shown.window.present()
            guard isSelfCheck || screenshot != nil else {
                shown.page.load(first)
                return
            }
            Task {
                if let screenshot {
                    await photograph(shown, showing: first, to: screenshot, checks)
                } else {
                    await WebSelfCheck(checks: checks, browser: shown, site: site).run()
                }
                shown.window.close()
            }
        }
        guard let status else {
            print("gallery-web: there is no display")
            return 1
        }
        browser?.page.cancelLoading()
        browser = nil
        guard isSelfCheck else { return checks.failures == 0 ? status : 1 }
        checks.check("at the end no widget's peer is left", Peer.liveCount == 0, detail: "\(Peer.liveCount)")
        return checks.finish()
    }

    /// Writes a picture of the page after the page has loaded.
    private static func photograph(
        _ browser: Browser, showing request: Request, to path: String, _ checks: Checks
    ) async {
        do {
            _ = try await browser.page.load(request).value
            // The script runs after WebKit has taken the page over.
            _ = try await browser.page.evaluate("document.body.offsetHeight")
            try await browser.page.writePicture(to: path)
            checks.check("the page is photographed", true)
        } catch {
            checks.check("\(request.urlString) is photographed", false, detail: "\(error)")
        }
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
