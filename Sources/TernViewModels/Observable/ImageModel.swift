public import Observation
public import Tern
public import TernImages

/// Loaded images as observable state, for SwiftUI views and tests.
///
/// ```swift
/// @State private var photo = ImageModel()
/// // …
/// PictureView(photo.image)
///     .task { photo.loadImage(from: url) }
/// ```
@MainActor
@Observable
public final class ImageModel: ImageViewModel {
    private var contents: [ImageSlot: ImageUpdate] = [:]
    private var loading: Set<ImageSlot> = []
    /// The progress of the load that reported last.
    public private(set) var progress = Session.Progress()
    /// The error of the last load; nil if it did not fail, or another load has begun since.
    public private(set) var error: ImageError?
    /// The size that loads with `ImageDisplay.decodesToViewSize` wait for; nil, the default, while there is none.
    public var size: PixelSize? {
        didSet { imageSizesChanged() }
    }
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without an image.
    public init() {}

    /// The last update of the slot `.image`; nil before the first.
    public var lastUpdate: ImageUpdate? { contents[.image] }
    /// The image in the slot `.image`, including a placeholder or a preview; nil for none.
    public var image: RasterImage? { lastUpdate?.image }
    /// The phase of the slot `.image`.
    public var phase: ImagePhase {
        // Access the observed properties, so that an observer of this property sees their changes.
        _ = (contents, loading, error)
        return imagePhase(of: .image)
    }
    /// A Boolean value that indicates whether a load waits for its image.
    public var isLoading: Bool { !loading.isEmpty }

    /// Returns the last update of a slot; nil before the first.
    public func lastUpdate(in slot: ImageSlot) -> ImageUpdate? { contents[slot] }

    /// Stores the update. Ends its transition at once, because the observer makes its own.
    public func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        contents[slot] = update
        update.transition?.end()
        if case .failure = update.phase { return }
        error = nil
    }

    /// Returns `size` for every slot.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { size }

    /// Records that a load waits, and removes the last error.
    public func beginImageActivity(in slot: ImageSlot) {
        loading.insert(slot)
        error = nil
    }

    /// Records that the load no longer waits.
    public func endImageActivity(in slot: ImageSlot) { loading.remove(slot) }

    /// Stores the progress.
    public func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) { self.progress = progress }

    /// Stores the error of a failed load.
    public func imageLoadEnded(_ load: ImageLoad) {
        if case .failure(let error)? = load.result { self.error = error }
    }
}

/// The images of a button for each of its states as observable state, for SwiftUI views and tests.
///
/// ```swift
/// @State private var play = ButtonImageModel()
/// // …
/// Button(action: start) { PictureView(play.image(for: isPressed ? .highlighted : .normal)) }
///     .task {
///         play.loadImage(from: url, for: .normal)
///         play.loadImage(from: pressed, for: .highlighted)
///     }
/// ```
@MainActor
@Observable
public final class ButtonImageModel: ButtonImageViewModel {
    private var contents: [ImageSlot: ImageUpdate] = [:]
    private var loading: Set<ImageSlot> = []
    /// The progress of the load that reported last.
    public private(set) var progress = Session.Progress()
    /// The error of the last load; nil if it did not fail, or another load has begun since.
    public private(set) var error: ImageError?
    /// The size that loads with `ImageDisplay.decodesToViewSize` wait for; nil, the default, while there is none.
    public var size: PixelSize? {
        didSet { imageSizesChanged() }
    }
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without images.
    public init() {}

    /// A Boolean value that indicates whether a load waits for its image.
    public var isLoading: Bool { !loading.isEmpty }

    /// Returns the last update of a state; nil before the first.
    public func lastUpdate(of part: ButtonImagePart = .image, for state: ButtonState) -> ImageUpdate? {
        contents[.button(part, state)]
    }

    /// Returns the image to show in a state: its own, including a placeholder or a preview, otherwise that of the
    /// normal state; nil for none.
    public func image(_ part: ButtonImagePart = .image, for state: ButtonState) -> RasterImage? {
        lastUpdate(of: part, for: state)?.image ?? lastUpdate(of: part, for: .normal)?.image
    }

    /// Stores the update. Ends its transition at once, because the observer makes its own.
    public func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
        contents[.button(part, state)] = update
        update.transition?.end()
        if case .failure = update.phase { return }
        error = nil
    }

    /// Returns `size` for every slot.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { size }

    /// Records that a load waits, and removes the last error.
    public func beginImageActivity(in slot: ImageSlot) {
        loading.insert(slot)
        error = nil
    }

    /// Records that the load no longer waits.
    public func endImageActivity(in slot: ImageSlot) { loading.remove(slot) }

    /// Stores the progress.
    public func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) { self.progress = progress }

    /// Stores the error of a failed load.
    public func imageLoadEnded(_ load: ImageLoad) {
        if case .failure(let error)? = load.result { self.error = error }
    }
}
