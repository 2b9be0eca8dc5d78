import GalleryViews
import GtkBridge
import Tern
import TernImages
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The window: photos that load while scrolling and refresh with a pull, a download with a bar, and a button with an
/// image for each state.
@MainActor
final class Gallery {
    static func cell() -> PhotoCell { PhotoCell(width: 176, height: 132) }

    /// The photo of each state of the button.
    static let buttonPhotos: [(state: ButtonState, number: Int)] = [(.normal, 3), (.highlighted, 5), (.disabled, 8)]

    let window: Window
    let grid: GridView
    let scroll: ScrollView
    let pull: PullToRefresh
    let bar = ProgressBar()
    let spinner = Spinner()
    let pauseButton = Button("Pause")
    let downloadButton = Button("Download")
    let listButton = Button("10,000 rows")
    let photoButton = PhotoButton(width: 88, height: 66)
    private let server: PhotoServer
    private let client: Client
    let pipeline: ImagePipeline
    private let count: Int

    init(_ server: PhotoServer, _ pipeline: ImagePipeline, format: ImageFormat, count: Int = 600) {
        self.server = server
        self.pipeline = pipeline
        self.count = count
        client = Client(baseURL: server.baseURL)
        PhotoCell.imagePipeline = pipeline
        PhotoButton.imagePipeline = pipeline
        window = Window("Tern gallery", width: 960, height: 640)
        grid = GridView(
            count: count, columns: 5,
            make: Self.cell,
            bind: { cell, number in cell.load(from: server.url(PhotoAddress(number, format))) },
            unbind: { cell in cell.cancelImageLoad() })
        scroll = ScrollView(grid)
        pull = PullToRefresh(scroll)
        layOut()
        connect()
    }

    private func layOut() {
        bar.expand(vertically: false)
        for control in [bar, pauseButton, downloadButton, listButton] { control.centerVertically() }
        let row = Stack(.row, spacing: 12)
        row.setMargin(12)
        row.add(photoButton).add(bar).add(spinner).add(pauseButton).add(downloadButton).add(listButton)
        pull.expand()
        window.setContent(Stack(.column).add(pull).add(row))
    }

    private func connect() {
        pauseButton.isEnabled = false
        pauseButton.pausesAtClick()
        downloadButton.onClick { [weak self] in self?.startDownload() }
        listButton.onClick { [weak self] in self?.openList() }
        pull.onPull = { [weak self] in self?.refresh() }
    }

    /// Loads the images of the button's states.
    func loadButton() {
        for (state, number) in Self.buttonPhotos {
            var display = ImageDisplay()
            display.decodesToViewSize = true
            photoButton.loadImage(from: server.url(PhotoAddress(number, .png)), for: state, display: display)
        }
    }

    /// Downloads a number of bytes in a number of seconds, and binds the bar, the spinner and the pause button to the
    /// download.
    func startDownload(of bytes: Int = 6_000_000, taking seconds: Int = 3) {
        let task = client.task(.get, "bytes/\(bytes)", query: ["rate": bytes / seconds])
        bar.bindDownloadProgress(of: task)
        spinner.bindActivity(to: task)
        pauseButton.bindPause(to: task)
    }

    /// Opens a window with a list of 10,000 photos.
    func openList() {
        let list = PhotoList(server, pipeline)
        // The signal holds the list as long as its window is open.
        list.window.on("destroy") { _ in list.cancel() }
        list.window.present()
    }

    /// Asks the server again, and then shows every photo again.
    func refresh() {
        let task = client.task(.get, "slow", query: ["count": 5])
        pull.bindRefresh(to: task)
        Task { [weak self] in
            // `try?`: only the end of the request matters; after a failure the photos stay.
            guard (try? await task.value) != nil, let self else { return }
            grid.setCount(count)
        }
    }
}

extension Gallery {
    /// The cells that are at least partly visible, row by row.
    var visibleCells: [PhotoCell] {
        guard let room = scroll.frame(in: window) else { return [] }
        return grid.cells.compactMap { $0 as? PhotoCell }
            .compactMap { cell in cell.frame(in: window).map { (cell: cell, frame: $0) } }
            .filter { room.meets($0.frame) }
            .sorted { ($0.frame.y, $0.frame.x) < ($1.frame.y, $1.frame.x) }
            .map(\.cell)
    }
}

extension ImagePhase {
    var isSuccess: Bool { if case .success(_) = self { true } else { false } }
}

extension PhotoCell {
    /// Whether the last photo has loaded.
    var hasLoaded: Bool { imagePhase().isSuccess }

    /// The number of the last photo.
    var number: Int? { imageLoads.url(for: .image).flatMap { PhotoAddress(path: $0.path()) }?.number }

    /// Loads a photo; the cell is grey until then.
    func load(from url: URL) { load(ImageRequest(url)) }

    func load(_ request: ImageRequest) {
        var display = ImageDisplay(placeholder: Self.grey.map { .image($0) }, failure: Self.failure)
        display.decodesToViewSize = true
        loadImage(from: request, display: display)
    }

    private static let grey = RasterImage(size: PixelSize(width: 1, height: 1), premultiplied: [224, 224, 224, 255])
    /// A red picture.
    static var failure: ImageContent? { red.map { .image($0) } }
    private static let red = RasterImage(size: PixelSize(width: 1, height: 1), premultiplied: [224, 96, 96, 255])
}
