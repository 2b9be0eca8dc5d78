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

// The examples of Documentation/LoadingImagesIntoViews.md, verbatim, with plain classes in place of widgets.

@MainActor
private class Canvas {
    private(set) var widths: [Int] = []
    func draw(_ image: RasterImage?) { widths.append(image?.size.width ?? 0) }
}

@MainActor
private final class PhotoView: Canvas {
    private(set) var fades = 0
    func draw(_ image: RasterImage?, fading: Bool) {
        draw(image)
        fades += fading ? 1 : 0
    }
}

extension PhotoView: ImageViewModel {
    func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        draw(update.image, fading: update.transition != nil)
    }
}

@MainActor
private final class Widget {
    private(set) var calls: [String] = []
    func start() { calls.append("start") }
    func stop() { calls.append("stop") }
    func set(_ fraction: Double?) { calls.append("set") }
}

@MainActor
private final class DetailView: Canvas {
    let (spinner, bar) = (Widget(), Widget())
    private(set) var message = ""
    func show(_ message: String) { self.message = message }
}

extension DetailView: ImageViewModel {
    func showImage(_ update: ImageUpdate, in slot: ImageSlot) { draw(update.image) }
    func beginImageActivity(in slot: ImageSlot) { spinner.start() }
    func endImageActivity(in slot: ImageSlot) { spinner.stop() }
    func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) {
        bar.set(progress.fractionCompleted)
    }
    func imageLoadEnded(_ load: ImageLoad) {
        if case .failure(let error)? = load.result { show(error.message) }
    }
}

@MainActor
private final class TileView: Canvas {
    var pixelSize: PixelSize?
}

extension TileView: ImageViewModel {
    func showImage(_ update: ImageUpdate, in slot: ImageSlot) { draw(update.image) }
    func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }
    func layoutHasChanged() { imageSizesChanged() }
}

extension ImageSlot {
    fileprivate static var badge: ImageSlot { ImageSlot("badge") }
}

@MainActor
private final class AnyView: BindableView {}

@MainActor
private final class PlayButton {
    private(set) var pictures: [ImageSlot: Int] = [:]
    func setImage(_ image: RasterImage?, part: ButtonImagePart, state: ButtonState) {
        pictures[.button(part, state)] = image?.size.width
    }
}

extension PlayButton: ButtonImageViewModel {
    func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
        setImage(update.image, part: part, state: state)
    }
}

@MainActor
@Suite("Loading images into views: the examples", .timeLimit(.minutes(1)))
struct ImageViewDocumentationTests {
    private struct Item {
        var url: URL?
    }

    private let photos = Photos()

    private func view() -> PhotoView {
        let view = PhotoView()
        view.imagePipeline = photos.pipeline
        return view
    }

    @Test func aView() async throws {
        let (grey, torn) = (try PhotoDecoder.image(1), try PhotoDecoder.image(2))
        let photoView = view()
        func show(_ photo: Item, in cell: PhotoView) {
            cell.loadImage(
                from: photo.url, display: ImageDisplay(placeholder: .image(grey), failure: .image(torn)))
        }
        show(Item(url: photos.url("/slow/40")), in: photoView)
        show(Item(url: photos.url("/slow/41")), in: photoView)
        await photos.whileSlowOnesCome { await eventually { photoView.imagePhase() != .placeholder } }
        #expect(photoView.widths == [1, 1, 41] && photoView.fades == 1)
        photoView.loadImage(from: photos.url("/slow/41"))
        #expect(photoView.widths == [1, 1, 41, 41] && photoView.fades == 1)
    }

    @Test func theOrder() async throws {
        let view = DetailView()
        view.imagePipeline = photos.pipeline
        view.loadImage(from: photos.url("/slow"))
        #expect(view.spinner.calls == ["start"] && view.bar.calls == ["set"])
        try await photos.advance()
        await eventually { !view.message.isEmpty }
        #expect(view.spinner.calls == ["start", "stop"])
    }

    @Test func theCallerGetsTheResult() async throws {
        let view = view()
        var errors: [ImageError] = []
        func log(_ error: ImageError) { errors.append(error) }
        let load = view.loadImage(from: photos.url("/40")) { result in
            if case .failure(let error) = result { log(error) }
        }
        let response = try await load.value
        #expect(response.image.size.width == 40 && errors.isEmpty)
        load.cancel()
        view.loadImage(
            from: photos.url("/40"),
            receive: { response in
                view.draw(response.image)
            })
        #expect(view.widths == [40, 40])
    }

    @Test func anotherTryAndOtherSources() async throws {
        let (view, display) = (view(), ImageDisplay())
        var request = photos.request("/none")
        request.options.retriesFailed = true
        view.loadImage(from: request, display: display)
        let (mirror, small) = (photos.url("/40"), photos.url("/20"))
        let hash: String? = nil
        request.alternatives = [.init(mirror), .lowData(small)]
        view.loadImage(from: request, display: ImageDisplay(placeholder: .thumbHash(hash)))
        await eventually { view.widths == [40] }
    }

    @Test func longLists() async throws {
        let prefetcher = ImagePrefetcher(pipeline: photos.pipeline)
        var batches: [Int: PrefetchBatch] = [:]
        func request(_ row: Int) -> ImageRequest { photos.request("/\(row + 1)") }
        func prefetch(_ rows: Range<Int>) {
            for (row, batch) in batches where !rows.contains(row) {
                batch.cancel()
                batches[row] = nil
            }
            for row in rows where batches[row] == nil { batches[row] = prefetcher.prefetch([request(row)]) }
        }
        prefetch(0..<10)
        prefetch(5..<15)
        for batch in batches.values { #expect(await batch.finished().finished == 1) }
        #expect((5..<15).allSatisfy { photos.pipeline.cachedImage(for: request($0)) != nil })
    }

    @Test func withoutAURL() async throws {
        let (view, grey, nobody) = (view(), try PhotoDecoder.image(1), try PhotoDecoder.image(3))
        view.loadImage(from: nil, display: ImageDisplay(placeholder: .image(grey), fallback: .image(nobody)))
        #expect(view.widths == [3])
    }

    @Test func theViewsSize() async throws {
        let (tile, grey) = (TileView(), try PhotoDecoder.image(1))
        tile.imagePipeline = photos.pipeline
        var display = ImageDisplay(placeholder: .image(grey))
        display.decodesToViewSize = true
        tile.loadImage(from: photos.url("/40"), display: display)
        tile.pixelSize = PixelSize(width: 20, height: 20)
        tile.layoutHasChanged()
        await eventually { tile.widths == [1, 20] || tile.widths == [1, 1, 20] }
    }

    @Test func slots() async throws {
        let (cell, anyView) = (view(), AnyView())
        cell.loadImage(from: photos.url("/slow/40"))
        cell.loadImage(from: photos.url("/slow/41"), into: .badge)
        cell.imageLoads.cancel(.badge)
        cell.imageLoads.remove(.badge)
        cell.imageLoads.cancelAll()
        #expect(cell.imageLoads[.image] == nil && cell.imageLoads[.badge] == nil)
        #expect(cell.imageLoads.url(for: .image) == photos.url("/slow/40") && cell.imagePhase(of: .image) == .idle)
        let task = photos.pipeline.task(for: photos.request("/slow/42"))
        anyView.imageLoads.set(task, for: .badge)
        anyView.imageLoads.cancelAll()
        #expect(task.isFinished)
    }

    @Test func buttons() async throws {
        let button = PlayButton()
        button.imagePipeline = photos.pipeline
        button.loadImage(from: photos.url("/1"))
        button.loadImage(from: photos.url("/2"), for: [.selected, .highlighted])
        button.loadImage(from: photos.url("/slow/3"), as: .background, for: .disabled)
        button.cancelImageLoads(for: .disabled)
        await eventually { button.pictures == [.image: 1, .button(.image, [.selected, .highlighted]): 2] }
    }

    @Test func animations() async throws {
        let view = view()
        view.loadImage(from: photos.url("/40/3"))
        await eventually { view.imagePlayback() != nil }
        view.setImagesVisible(false)
        #expect(view.imagePlayback()?.player.isPaused == true)
        view.setImagesVisible(true)
        view.imagePlayback()?.player.setRate(2)
        let urls = [photos.url("/50"), photos.url("/51")]
        view.loadAnimationImages(urls.map { ImageRequest($0) }, frameDuration: .milliseconds(100))
        await eventually { view.imagePlayback(in: .animation)?.player.image.count == 2 }
    }

    @Test func pipelines() async throws {
        let (all, avatars) = (Photos().pipeline, Photos().pipeline)
        defer { PhotoView.imagePipeline = nil }
        let view = PhotoView()
        PhotoView.imagePipeline = all
        view.imagePipeline = avatars
        #expect(view.currentImagePipeline === avatars)
        view.imagePipeline = nil
        #expect(view.currentImagePipeline === all)
    }

    @Test func theModel() async throws {
        let model = ImageModel()
        model.imagePipeline = photos.pipeline
        let grey = try PhotoDecoder.image(1)
        model.loadImage(from: photos.url("/slow/40"), display: ImageDisplay(placeholder: .image(grey)))
        #expect(model.image?.size.width == 1 && model.isLoading && model.error == nil)
    }
}
