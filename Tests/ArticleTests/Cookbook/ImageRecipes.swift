import Tern
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The recipes for images and views of Documentation/Cookbook.md, word for word. `scripts/checks/articles` compares
// them.

@MainActor
private final class PhotoCell: ImageViewModel {
    let bindings = ViewBindings()
    private(set) var image: RasterImage?

    func showImage(_ update: ImageUpdate, in slot: ImageSlot) { image = update.image }
}

@MainActor
private final class PhotoList {
    private let side = PixelSize(width: 120, height: 120)
    private let prefetcher: ImagePrefetcher
    private var batch: PrefetchBatch?

    init(pipeline: ImagePipeline) { prefetcher = ImagePrefetcher(pipeline: pipeline) }

    /// Called for each cell that comes into view, also for a reused one.
    func show(_ url: URL, in cell: PhotoCell) {
        cell.loadImage(from: request(for: url))
    }

    /// Called with the images below the visible ones.
    func prepare(_ urls: [URL]) {
        batch?.cancel()
        batch = prefetcher.prefetch(urls.map(request))
    }

    private func request(for url: URL) -> ImageRequest {
        ImageRequest(url, targetSize: side, contentMode: .fill, processors: [.roundedCorners(radius: 12)])
    }
}

@MainActor
private protocol RemainingTimeViewModel: BindableView {
    func showRemainingTime(_ text: String)
}

extension RemainingTimeViewModel {
    @discardableResult
    func bindRemainingTime(of task: any TaskHandle) -> ViewBinding {
        bind(task.progress, of: task, for: .remainingTime) { view, progress in
            guard !progress.isFinished else { return view.showRemainingTime("") }
            guard let time = progress.estimatedTimeRemaining else { return view.showRemainingTime("…") }
            view.showRemainingTime("\(time.components.seconds) s left")
        }
    }
}

extension BindingKey<ViewBinding> {
    fileprivate static var remainingTime: Self { Self("remainingTime") }
}

@MainActor
private final class Label: RemainingTimeViewModel {
    let bindings = ViewBindings()
    let texts = AsyncStream.makeStream(of: String.self)

    func showRemainingTime(_ text: String) { texts.continuation.yield(text) }
}

@MainActor
@Suite("Documentation: recipes for images", .timeLimit(.minutes(1)))
struct ImageRecipes {
    @Test func cellsOfAListLoadTheirImages() async throws {
        let size = PixelSize(width: 300, height: 200)
        let pixels = [UInt8](repeating: 255, count: size.width * size.height * 4)
        let picture = try #require(RasterImage(size: size, premultiplied: pixels)).encoded(as: .png())
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(stub: StubTransport { _ in .data(picture, contentType: "image/png") })
        configuration.disk = .none
        let pipeline = ImagePipeline(configuration: configuration)
        let urls = try ["a", "b"].map { try #require(URL(string: "https://photos.example/\($0).png")) }

        let list = PhotoList(pipeline: pipeline)
        list.prepare(urls)
        let cell = PhotoCell()
        cell.imagePipeline = pipeline
        list.show(urls[0], in: cell)
        _ = try await cell.imageLoads[.image]?.value
        #expect(cell.image?.size == PixelSize(width: 120, height: 120))
    }

    @Test func theRemainingTimeIsShownUntilTheEnd() async throws {
        let server = try LoopbackServer { try $0.serveFile(LoopbackServer.Pattern(count: 1_000_000)) }
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UInt64.random(in: 0 ... .max))")
        let label = Label()

        let task = Client(baseURL: server.url).download("film", to: file)
        label.bindRemainingTime(of: task)

        _ = try await task.value
        for await text in label.texts.stream where text.isEmpty { break }
        try FileManager.default.removeItem(at: file)
    }
}
