#if canImport(UIKit) && !os(watchOS)
public import TernImages
public import UIKit

/// Shows the slots `.image` and `.animation` as its image and `.highlighted` as its highlighted image, and ignores
/// others.
///
/// A transition is a cross-dissolve of a quarter of a second. For loads with `ImageDisplay.decodesToViewSize`, call
/// `imageSizesChanged()` when the view is laid out, as in `layoutSubviews()`.
extension UIImageView: ImageViewModel {
    /// Sets the image of a slot.
    public func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        let image = update.content.uiImage
        guard let transition = update.transition else { return setImage(image, in: slot) }
        UIView.transition(with: self, duration: 0.25, options: [.transitionCrossDissolve, .allowUserInteraction]) {
            self.setImage(image, in: slot)
        } completion: { _ in
            transition.end()
        }
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }

    private func setImage(_ image: UIImage?, in slot: ImageSlot) {
        switch slot {
        case .image, .animation: self.image = image
        case .highlighted: highlightedImage = image
        default: break
        }
    }
}

/// Shows images and background images by state, in their own colours, also in a button with a configuration.
///
/// A configuration has one image for all states. For each part that was loaded, the button's
/// `configurationUpdateHandler` sets the image when the state changes. If you set a handler of your own, call
/// `showLoadedImages()` in it.
extension UIButton: ButtonImageViewModel {
    /// Sets the image of a state.
    public func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
        let loaded = update.image.flatMap { UIImage($0)?.withRenderingMode(.alwaysOriginal) }
        let image = loaded ?? update.content.uiImage
        // Both types use the same bits.
        let state = UIControl.State(rawValue: UInt(state.rawValue))
        switch part {
        case .image: setImage(image, for: state)
        case .background: setBackgroundImage(image, for: state)
        }
        bindings[value: .loadedParts] = (bindings[value: .loadedParts] ?? []).union([part])
        guard configuration != nil else { return }
        if configurationUpdateHandler == nil { configurationUpdateHandler = { $0.showLoadedImages() } }
        showLoadedImages()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }

    /// Sets the loaded images of the current state in the configuration, or those of the normal state where there are
    /// none. Does nothing without a configuration.
    public func showLoadedImages() {
        guard var configuration, let parts = bindings[value: .loadedParts] else { return }
        if parts.contains(.image) { configuration.image = image(for: state) ?? image(for: .normal) }
        if parts.contains(.background) {
            configuration.background.image = backgroundImage(for: state) ?? backgroundImage(for: .normal)
        }
        self.configuration = configuration
    }
}

extension BindingKey<Set<ButtonImagePart>> {
    /// The parts whose loaded images replace those of the configuration.
    fileprivate static var loadedParts: Self { Self("loaded parts") }
}

extension UIImage {
    /// Creates an image that shares its pixels with a decoded image, at the image's scale; nil if Core Graphics fails.
    ///
    /// Copies no pixels. All images created from one decoded image share one `CGImage`, so that the work of Core
    /// Animation for one view serves the next.
    @MainActor
    public convenience init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        self.init(cgImage: cgImage, scale: CGFloat(image.scale), orientation: .up)
    }
}

extension ImageContent {
    /// The decoded image, or a `UIImage` that was given as `.custom`; nil for any other content.
    @MainActor
    public var uiImage: UIImage? {
        switch self {
        case .none: nil
        case .image(let image): UIImage(image)
        case .custom(let custom): custom as? UIImage
        }
    }
}

extension UIView {
    /// The bounds in pixels; nil before the layout and while the screen is unknown.
    var pixelSize: PixelSize? { PixelSize(bounds.size, scale: traitCollection.displayScale) }
}

/// Animates while a task runs.
extension UIActivityIndicatorView: ActivityViewModel {
    /// `isAnimating`.
    public var isActivityShown: Bool { isAnimating }
    /// Starts the animation.
    public func beginActivity() { startAnimating() }
    /// Stops the animation.
    public func endActivity() { stopAnimating() }
}

/// Shows the fraction. The bar cannot show an unknown total, and stays as it is meanwhile.
extension UIProgressView: ProgressViewModel {
    /// Sets the progress if the total is known.
    public func showProgress(_ progress: ProgressUpdate) {
        if let fraction = progress.fraction { setProgress(Float(fraction), animated: progress.isAnimated) }
    }
}

#if !os(tvOS)
/// Refreshes while a task runs, with UIKit's own methods.
extension UIRefreshControl: RefreshViewModel {}
#endif

extension UIAlertController {
    /// Creates an alert with one button, to present in a view controller's `showAlert(_:)`.
    public convenience init(_ alert: TaskAlert, dismissal: String = "OK") {
        self.init(title: alert.title, message: alert.message, preferredStyle: .alert)
        addAction(UIAlertAction(title: dismissal, style: .cancel))
    }
}
#endif
