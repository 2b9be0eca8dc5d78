#if canImport(AppKit)
import AppKit
import Tern
import TernImages
import TernViewModels

// The examples for AppKit of Documentation/LoadingImagesIntoViews.md and BindingProgress.md, as they stand there.
// scripts/checks/apple compiles them. Nothing runs them.

@MainActor
private func loadImages(_ imageView: NSImageView, _ button: NSButton, url: URL, pressed: URL) {
    imageView.loadImage(from: url)
    button.loadImage(from: url, for: .normal)
    button.loadImage(from: pressed, for: .selected)
}

private final class DownloadWindow: NSWindow, AlertViewModel {
    func showAlert(_ alert: TaskAlert) {
        Task { await NSAlert(alert).beginSheetModal(for: self) }
    }
}

@MainActor
private func follow(_ task: SessionTask<Response<Data>>, _ indicator: NSProgressIndicator, in window: DownloadWindow) {
    indicator.bindDownloadProgress(of: task)
    window.bindAlert(to: task)
}
#endif
