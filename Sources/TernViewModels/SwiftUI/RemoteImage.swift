#if canImport(SwiftUI)
public import SwiftUI
public import TernImages

/// A picture that is loaded while the view is on the screen.
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
/// ```
///
/// The load begins when the view appears, anew when the request changes, and is cancelled when the view disappears.
/// What is in memory is there at once, or with `fitsView` as soon as the size is known; what has come from elsewhere
/// comes by an animation, unless the request's `presentation.transition` says otherwise.
public struct RemoteImage<Content: View>: View {
    private let wish: RemoteImageWish
    private let display: ImageDisplay
    private let content: (ImagePhase, Image?) -> Content
    @State private var model = ImageModel()
    @Environment(\.displayScale) private var displayScale

    /// The picture of a request, by what the closure makes of each phase and of what is to be shown in it: nil before
    /// anything is, and a picture also for a placeholder or a preview.
    ///
    /// - Parameters:
    ///   - display: What stands in for the picture. By default nothing, also when the request changes. With `fitsView` the
    ///     view takes all the space that it is offered, and the picture is decoded to it.
    ///   - pipeline: Who loads; nil, the default, for `ImagePipeline.shared`.
    public init(
        _ request: ImageRequest, display: ImageDisplay = ImageDisplay(current: .cleared),
        pipeline: ImagePipeline? = nil, @ViewBuilder content: @escaping (ImagePhase, Image?) -> Content
    ) {
        wish = RemoteImageWish(request: request, pipeline: pipeline ?? .shared)
        self.display = display
        self.content = content
    }

    /// The content, in the space that it is offered.
    public var body: some View {
        let shown = model.shown
        framed(content(model.phase, shown?.content.swiftUIImage))
            .animation(shown?.transition == nil ? nil : .easeInOut(duration: 0.25), value: shown?.phase)
            .onGeometryChange(for: PixelSize?.self) { [displayScale] in
                PixelSize($0.size, scale: displayScale)
            } action: {
                model.size = $0
            }
            // Not in a task, which begins later: what is in memory is to be there in the first frame.
            .onAppear {
                model.setImagesVisible(true)
                load()
            }
            .onDisappear {
                model.cancelImageLoad()
                model.setImagesVisible(false)
            }
            .onChange(of: wish) { load() }
    }

    private func load() {
        model.imagePipeline = wish.pipeline
        model.loadImage(wish.request, display: display)
    }

    /// There is always something that can appear, and that has a size.
    @ViewBuilder
    private func framed(_ content: Content) -> some View {
        if display.fitsView {
            Color.clear.overlay { content }.clipped()
        } else {
            ZStack {
                Color.clear.frame(width: 0, height: 0)
                content
            }
        }
    }
}

/// What is to be loaded, and by whom.
private struct RemoteImageWish: Equatable {
    let request: ImageRequest
    let pipeline: ImagePipeline

    static func == (left: Self, right: Self) -> Bool {
        left.pipeline === right.pipeline && left.pipeline.isOneLoad(left.request, right.request)
    }
}
#endif
