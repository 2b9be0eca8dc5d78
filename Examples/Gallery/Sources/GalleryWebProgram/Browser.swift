import GalleryViews
import GalleryWeb
import GtkBridge
import Tern
import TernViewModels

/// The window: a page, the steps back and forward, a bar and a spinner for what loads.
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
        // The widgets own these closures: weakly held, nobody keeps anybody.
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
