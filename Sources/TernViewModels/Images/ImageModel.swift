public import Observation
public import Tern
public import TernImages

/// Loaded pictures to be observed: for SwiftUI's views, and for tests.
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
    private var contents: [ImageSlot: ShownImage] = [:]
    private var loading: Set<ImageSlot> = []
    /// How far the load that was last heard of is.
    public private(set) var progress = Session.Progress()
    /// Why the last load failed; nil when it did not, or another has begun since.
    public private(set) var error: ImageError?
    /// The size that loads with `ImageDisplay.fitsView` wait for; nil, the default, while there is none.
    public var size: PixelSize? {
        didSet { imageSizesChanged() }
    }
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// No picture.
    public init() {}

    /// What the slot `.image` shows; nil before anything was.
    public var shown: ShownImage? { contents[.image] }
    /// The picture in the slot `.image`, a placeholder or preview too; nil for none.
    public var image: RasterImage? { shown?.image }
    /// How far the slot `.image` is.
    public var phase: ImagePhase {
        // Whoever observes this observes what changes with it.
        _ = (contents, loading, error)
        return imagePhase(of: .image)
    }
    /// Whether a load waits for its picture.
    public var isLoading: Bool { !loading.isEmpty }

    /// What a slot shows; nil before anything was.
    public func shown(in slot: ImageSlot) -> ShownImage? { contents[slot] }

    /// Keeps what is shown. A transition counts as ended: who observes makes its own.
    public func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        contents[slot] = shown
        shown.transition?.end()
        if case .failure = shown.phase { return }
        error = nil
    }

    /// `size`, for every slot.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { size }

    /// Notes that it waits, and forgets the last error.
    public func beginImageActivity(in slot: ImageSlot) {
        loading.insert(slot)
        error = nil
    }

    /// Notes that it waits no more.
    public func endImageActivity(in slot: ImageSlot) { loading.remove(slot) }

    /// Keeps the progress.
    public func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) { self.progress = progress }

    /// Keeps the error of a load that failed.
    public func imageLoadEnded(_ load: ImageLoad) {
        if case .failure(let error)? = load.result { self.error = error }
    }
}
