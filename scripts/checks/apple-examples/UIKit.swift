#if canImport(UIKit)
import Tern
import TernImages
import TernViewModels
import UIKit
import WebKit

// The examples for UIKit of Documentation/LoadingImagesIntoViews.md, BindingProgress.md and WebContent.md, as they
// stand there. scripts/checks/apple compiles them. Nothing runs them.

private final class PhotoCell: UIView {
    let imageView = UIImageView(frame: CGRect(x: 0, y: 0, width: 80, height: 80))

    func show(_ url: URL?) {
        var display = ImageDisplay(placeholder: .custom(UIImage()))
        display.decodesToViewSize = true
        imageView.loadImage(from: url, display: display)
    }

    override func layoutSubviews() {
        super.layoutSubviews()
        imageView.imageSizesChanged()
    }
}

@MainActor
private func loadImages(_ imageView: UIImageView, _ button: UIButton, url: URL, pressed: URL, frames: [URL]) {
    imageView.loadImage(from: url)
    imageView.loadImage(from: pressed, into: .highlighted)
    imageView.loadAnimationImages(frames.map { ImageRequest($0) })
    button.loadImage(from: url, for: .normal)
    button.loadImage(from: pressed, for: .highlighted)
    button.configurationUpdateHandler = { button in
        button.configuration?.background.image = nil
        button.showLoadedImages()
    }
}

private final class DownloadViewController: UIViewController, AlertViewModel {
    let (bar, spinner) = (UIProgressView(frame: .zero), UIActivityIndicatorView(frame: .zero))
    let refreshControl = UIRefreshControl(frame: .zero)

    func showAlert(_ alert: TaskAlert) { present(UIAlertController(alert), animated: true) }

    func follow(_ task: SessionTask<Response<Data>>) {
        bar.bindDownloadProgress(of: task, animated: true)
        spinner.bindActivity(to: task)
        refreshControl.bindRefresh(to: task)
        bindAlert(to: task)
    }
}
#endif
