// The declarations of UIKit that Tern uses, as Apple documents them (developer.apple.com/documentation/uikit):
// names, types, labels and actors, without behavior. Only scripts/checks/apple compiles it.
@_exported public import CoreGraphics
@_exported public import Foundation

public final class UIImage: NSObject, @unchecked Sendable {
    public enum Orientation: Int, Sendable {
        case up, down, left, right, upMirrored, downMirrored, leftMirrored, rightMirrored
    }
    public enum RenderingMode: Int, Sendable { case automatic, alwaysOriginal, alwaysTemplate }
    public override init() {}
    public convenience init(cgImage: CGImage, scale: CGFloat, orientation: UIImage.Orientation) { self.init() }
    public func withRenderingMode(_ renderingMode: UIImage.RenderingMode) -> UIImage { self }
}

@MainActor open class UITraitCollection: NSObject {
    open var displayScale: CGFloat { 0 }
}

@MainActor open class UIResponder: NSObject {}

@MainActor open class UIView: UIResponder {
    public struct AnimationOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var allowUserInteraction: AnimationOptions { AnimationOptions(rawValue: 1 << 1) }
        public static var transitionCrossDissolve: AnimationOptions { AnimationOptions(rawValue: 5 << 20) }
    }

    public init(frame: CGRect) {}
    open var bounds: CGRect {
        get { CGRect(x: 0, y: 0, width: 0, height: 0) }
        set { _ = newValue }
    }
    open var traitCollection: UITraitCollection { UITraitCollection() }
    open class func transition(
        with view: UIView, duration: TimeInterval, options: UIView.AnimationOptions = [],
        animations: (() -> Void)?, completion: ((Bool) -> Void)? = nil
    ) {}
    open func layoutSubviews() {}
}

@MainActor open class UIImageView: UIView {
    open var image: UIImage? {
        get { nil }
        set { _ = newValue }
    }
    open var highlightedImage: UIImage? {
        get { nil }
        set { _ = newValue }
    }
}

@MainActor open class UIControl: UIView {
    public struct State: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var normal: State { [] }
        public static var highlighted: State { State(rawValue: 1 << 0) }
        public static var disabled: State { State(rawValue: 1 << 1) }
        public static var selected: State { State(rawValue: 1 << 2) }
        public static var focused: State { State(rawValue: 1 << 3) }
    }

    open var state: UIControl.State { .normal }
}

public struct UIBackgroundConfiguration {
    public var image: UIImage?
}

@MainActor open class UIButton: UIControl {
    public struct Configuration {
        public var image: UIImage?
        public var background: UIBackgroundConfiguration
        @MainActor public static func plain() -> UIButton.Configuration {
            UIButton.Configuration(background: UIBackgroundConfiguration())
        }
    }

    public typealias ConfigurationUpdateHandler = (UIButton) -> Void

    public convenience init(configuration: UIButton.Configuration) {
        self.init(frame: CGRect(x: 0, y: 0, width: 0, height: 0))
    }
    open var configuration: UIButton.Configuration? {
        get { nil }
        set { _ = newValue }
    }
    open var configurationUpdateHandler: UIButton.ConfigurationUpdateHandler? {
        get { nil }
        set { _ = newValue }
    }
    open func setImage(_ image: UIImage?, for state: UIControl.State) {}
    open func setBackgroundImage(_ image: UIImage?, for state: UIControl.State) {}
    open func image(for state: UIControl.State) -> UIImage? { nil }
    open func backgroundImage(for state: UIControl.State) -> UIImage? { nil }
}

@MainActor open class UIProgressView: UIView {
    open func setProgress(_ progress: Float, animated: Bool) {}
}

@MainActor open class UIActivityIndicatorView: UIView {
    open var isAnimating: Bool { false }
    open func startAnimating() {}
    open func stopAnimating() {}
}

@MainActor open class UIRefreshControl: UIControl {
    open var isRefreshing: Bool { false }
    open func beginRefreshing() {}
    open func endRefreshing() {}
}

@MainActor open class UIAlertAction: NSObject {
    public enum Style: Int, Sendable { case `default`, cancel, destructive }
    public convenience init(
        title: String?, style: UIAlertAction.Style, handler: (@MainActor @Sendable (UIAlertAction) -> Void)? = nil
    ) { self.init() }
}

@MainActor open class UIViewController: UIResponder {
    open func present(
        _ viewControllerToPresent: UIViewController, animated flag: Bool, completion: (() -> Void)? = nil
    ) {}
}

@MainActor open class UIAlertController: UIViewController {
    public enum Style: Int, Sendable { case actionSheet, alert }
    public convenience init(title: String?, message: String?, preferredStyle: UIAlertController.Style) { self.init() }
    open func addAction(_ action: UIAlertAction) {}
}
