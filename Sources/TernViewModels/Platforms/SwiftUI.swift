#if canImport(SwiftUI)
public import SwiftUI
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that loads an image while it is on the screen.
///
/// ```swift
/// RemoteImage(photo.url) {
///     Color.gray
/// } failure: { _ in
///     Image(systemName: "photo")
/// }
/// .frame(width: 80, height: 80)
///
/// RemoteImage(ImageRequest(photo.url)) { phase, image in
///     if let image { image.resizable() } else if case .failure = phase { Text("No picture") }
/// }
///
/// RemoteImage(request, thumbHash: photo.hash) {
///     Color.gray
/// } failure: { error, retry in
///     Button("Try again", action: retry)
/// }
/// ```
///
/// The load begins when the view appears, restarts when the request changes, and is cancelled when the view disappears.
/// An image in memory is there at once, or with `decodesToViewSize` as soon as the size is known. An image from another
/// source replaces the placeholder and its previews with one animation, unless `ImageDisplay.transition` says otherwise;
/// the content is a new view from then on. Placeholder and previews replace each other at once.
public struct RemoteImage<Content: View>: View {
    private let source: RemoteImageSource
    private let content: (ImagePhase, Image?, _ retry: @escaping @MainActor () -> Void) -> Content
    @State private var model = ImageModel()
    @Environment(\.displayScale) private var displayScale

    /// Creates a view of a request's image. The closure builds the content for a phase and an image; the image is nil
    /// before there is one, and may be a placeholder or a preview.
    ///
    /// - Parameters:
    ///   - display: The substitutes for the image. By default there are none, also when the request changes. With
    ///     `decodesToViewSize` the view takes all the space that it is offered, and the image is decoded to that size.
    ///   - pipeline: The pipeline that loads; nil, the default, for `ImagePipeline.shared`.
    public init(
        _ request: ImageRequest, display: ImageDisplay = ImageDisplay(current: .cleared),
        pipeline: ImagePipeline? = nil, @ViewBuilder content: @escaping (ImagePhase, Image?) -> Content
    ) {
        self.init(request, thumbHash: nil, display: display, pipeline: pipeline) { phase, image, _ in
            content(phase, image)
        }
    }

    /// Creates a view of a request's image whose content can try a failed load again. Otherwise works like the
    /// initializer with a closure of a phase and an image.
    ///
    /// - Parameters:
    ///   - thumbHash: A `ThumbHash` in Base64, whose picture is the placeholder until there is a preview or the image;
    ///     nil, the default, for the placeholder of the display.
    ///   - content: Builds the content for a phase and an image. The third parameter loads the image again, also after
    ///     a failure that the pipeline remembers.
    public init(
        _ request: ImageRequest, thumbHash: String? = nil, display: ImageDisplay = ImageDisplay(current: .cleared),
        pipeline: ImagePipeline? = nil,
        @ViewBuilder content:
            @escaping (ImagePhase, Image?, _ retry: @escaping @MainActor () -> Void) -> Content
    ) {
        source = RemoteImageSource(
            request: request, thumbHash: thumbHash, pipeline: pipeline ?? .shared, display: display)
        self.content = content
    }

    /// The content, in the space that the view is offered.
    public var body: some View {
        let (update, phase) = (model.lastUpdate, model.phase)
        let isLoaded = if case .success = phase { true } else { false }
        // One view until the image is there, and another one from then on: the change is what fades.
        let shown = content(phase, update?.content.swiftUIImage, retry).id(isLoaded).transition(.opacity)
        framed(shown)
            .animation(update?.transition == nil ? nil : .easeInOut(duration: 0.25), value: update?.phase)
            .onGeometryChange(for: PixelSize?.self) { [displayScale] in
                PixelSize($0.size, scale: displayScale)
            } action: {
                model.size = $0
            }
            // Not in a task, which begins later: an image in memory must be in the first frame.
            .onAppear {
                model.setImagesVisible(true)
                load(source.request)
            }
            .onDisappear {
                model.cancelImageLoad()
                model.setImagesVisible(false)
            }
            .onChange(of: source) { load(source.request) }
    }

    private func retry() {
        var request = source.request
        request.options.retriesFailed = true
        load(request)
    }

    private func load(_ request: ImageRequest) {
        var display = source.display
        if let placeholder = ImageContent.thumbHash(source.thumbHash) { display.placeholder = placeholder }
        model.imagePipeline = source.pipeline
        model.loadImage(from: request, display: display)
    }

    /// Frames the content so that there is always something that can appear and has a size.
    @ViewBuilder
    private func framed(_ content: some View) -> some View {
        if source.display.decodesToViewSize {
            Color.clear.overlay { content }.clipped()
        } else {
            ZStack {
                Color.clear.frame(width: 0, height: 0)
                content
            }
        }
    }
}

/// The request, the pipeline and the display of a remote image.
private struct RemoteImageSource: Equatable {
    let request: ImageRequest
    let thumbHash: String?
    let pipeline: ImagePipeline
    let display: ImageDisplay

    static func == (left: Self, right: Self) -> Bool {
        left.pipeline === right.pipeline && left.pipeline.isOneLoad(left.request, right.request)
            && left.display.deliversLike(right.display)
    }
}

/// A loaded image that fills its view or fits into it, a placeholder, or the view for a failure.
public struct RemoteImageContent<Placeholder: View, Failure: View>: View {
    let phase: ImagePhase
    let image: Image?
    let contentMode: ContentMode
    let placeholder: () -> Placeholder
    let failure: (ImageError) -> Failure

    /// The image, the placeholder or the failure view.
    public var body: some View {
        if let image {
            image.resizable().aspectRatio(contentMode: contentMode)
        } else if case .failure(let error) = phase {
            failure(error)
        } else {
            placeholder()
        }
    }
}

extension RemoteImage {
    /// Creates a view of the image at a URL. It takes all the space that it is offered, and the image is decoded to
    /// that size; give it a frame.
    ///
    /// - Parameters:
    ///   - thumbHash: A `ThumbHash` in Base64, whose picture is shown in place of the placeholder; nil, the default, for
    ///     none.
    ///   - contentMode: The way the image uses the space: `.fill`, the default, crops it, and `.fit` shows all of it.
    ///   - placeholder: The view to show while the image loads.
    ///   - failure: The view to show after the load has failed.
    public init<Placeholder: View, Failure: View>(
        _ url: URL?, thumbHash: String? = nil, contentMode: ContentMode = .fill,
        @ViewBuilder placeholder: @escaping () -> Placeholder,
        @ViewBuilder failure: @escaping (ImageError) -> Failure
    ) where Content == RemoteImageContent<Placeholder, Failure> {
        let request = ImageRequest(url, contentMode: contentMode == .fill ? .fill : .fit)
        self.init(request, thumbHash: thumbHash, placeholder: placeholder) { error, _ in failure(error) }
    }

    /// Creates a view of a request's image, with a view for a failure that can try again. It takes all the space that it
    /// is offered, and the image is decoded to that size; give it a frame. The request's `contentMode` says how the
    /// image uses the space.
    ///
    /// - Parameters:
    ///   - thumbHash: A `ThumbHash` in Base64, whose picture is shown in place of the placeholder; nil, the default, for
    ///     none.
    ///   - pipeline: The pipeline that loads; nil, the default, for `ImagePipeline.shared`.
    ///   - placeholder: The view to show while the image loads.
    ///   - failure: The view to show after the load has failed. The second parameter loads the image again, also after a
    ///     failure that the pipeline remembers.
    public init<Placeholder: View, Failure: View>(
        _ request: ImageRequest, thumbHash: String? = nil, pipeline: ImagePipeline? = nil,
        @ViewBuilder placeholder: @escaping () -> Placeholder,
        @ViewBuilder failure: @escaping (ImageError, _ retry: @escaping @MainActor () -> Void) -> Failure
    ) where Content == RemoteImageContent<Placeholder, Failure> {
        var display = ImageDisplay(current: .cleared)
        display.decodesToViewSize = true
        let contentMode: ContentMode = request.contentMode == .fit ? .fit : .fill
        self.init(request, thumbHash: thumbHash, display: display, pipeline: pipeline) { phase, image, retry in
            RemoteImageContent(phase: phase, image: image, contentMode: contentMode, placeholder: placeholder) {
                failure($0, retry)
            }
        }
    }
}

extension Image {
    /// Creates an image without a label that shares its pixels with a decoded image, at the image's scale; nil if Core
    /// Graphics fails. Copies no pixels.
    @MainActor
    public init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        self.init(decorative: cgImage, scale: CGFloat(image.scale))
    }
}

extension ImageContent {
    /// The decoded image, or a `SwiftUI.Image` that was given as `.custom`; nil for any other content.
    @MainActor
    public var swiftUIImage: Image? {
        switch self {
        case .none: nil
        case .image(let image): Image(image)
        case .custom(let custom): custom as? Image
        }
    }
}
#endif
