import GalleryViews
import GtkBridge
import TernImages
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A list of 10,000 photos. GTK has a few rows of it at a time. The next photos in the direction of scrolling are loaded
/// in advance, and those that the user has left behind are cancelled.
@MainActor
final class PhotoList {
    static let rowCount = 10_000
    static let (width, height) = (88, 66)

    let window = Window("10,000 rows", width: 480, height: 640)
    let list: GridView
    let scroll: ScrollView
    let pipeline: ImagePipeline
    private let rows: RowWindow

    init(_ server: PhotoServer, _ pipeline: ImagePipeline) {
        self.pipeline = pipeline
        let rows = RowWindow(server, pipeline)
        self.rows = rows
        list = GridView(
            count: Self.rowCount, columns: 1,
            make: { PhotoRow(width: Self.width, height: Self.height) },
            bind: { row, number in
                row.show(number, rows.request(number, scale: row.scaleFactor), display: rows.display(number))
                rows.update()
            },
            unbind: { row in row.leave() })
        rows.list = list
        scroll = ScrollView(list)
        scroll.expand()
        window.setContent(scroll)
    }

    /// The rows that are at least partly visible, from the top.
    var visibleRows: [PhotoRow] {
        guard let room = scroll.frame(in: window) else { return [] }
        return list.cells.compactMap { $0 as? PhotoRow }
            .compactMap { row in row.frame(in: window).map { (row: row, frame: $0) } }
            .filter { room.meets($0.frame) }
            .sorted { $0.frame.y < $1.frame.y }
            .map(\.row)
    }

    /// Scrolls to a place, from 0 to 1.
    func scroll(to place: Double) { scroll.offset = scroll.maximumOffset * place }

    /// The numbers of the rows whose photos are loaded in advance.
    var prefetched: [Int] { rows.batches.keys.sorted() }

    func request(_ number: Int) -> ImageRequest { rows.request(number, scale: list.scaleFactor) }

    /// Ends what is loaded in advance.
    func cancel() { rows.cancel() }
}

/// Loads the photos of the rows that follow those that exist.
@MainActor
final class RowWindow {
    /// Of each 50 rows, one has a photo that fails at first, and one a photo that the first place has not.
    static let (failing, missing) = (3, 5)

    static func fails(_ number: Int) -> Bool { number % 50 == failing }

    private let server: PhotoServer
    private let prefetcher: ImagePrefetcher
    /// A batch for each row: those that are still wanted go on when the list scrolls by a row.
    private(set) var batches: [Int: PrefetchBatch] = [:]
    weak var list: GridView?
    private var plan = PrefetchPlan(rowCount: PhotoList.rowCount)
    private var hashes: [Int: String] = [:]
    private var isUpdating = false

    init(_ server: PhotoServer, _ pipeline: ImagePipeline) {
        self.server = server
        prefetcher = ImagePrefetcher(pipeline: pipeline)
    }

    /// Returns the request of a row. Some photos are missing in their first place, and some fail at the first time.
    func request(_ number: Int, scale: Int) -> ImageRequest {
        let address = PhotoAddress(number % 1_000, .png)
        let query = "width=\(PhotoList.width)&n=\(number)"
        let problem = number % 50 == Self.missing ? "&missing" : Self.fails(number) ? "&fails" : ""
        var request = ImageRequest(
            server.url(address, query: query + problem),
            targetSize: PixelSize(width: PhotoList.width * scale, height: PhotoList.height * scale),
            contentMode: .fill)
        if number % 50 == Self.missing { request.alternatives = [.init(server.url(address, query: query))] }
        return request
    }

    /// Returns the blurred picture of a row, until its photo is there. A server sends the hash with the list.
    func display(_ number: Int) -> ImageDisplay {
        let number = number % 1_000
        if hashes[number] == nil { hashes[number] = Photo(number: number).hash }
        return ImageDisplay(placeholder: .thumbHash(hashes[number]), failure: PhotoCell.failure, current: .cleared)
    }

    /// Begins and cancels loads once for all rows that come and go together.
    func update() {
        guard !isUpdating else { return }
        isUpdating = true
        Task { [weak self] in
            guard let self, let list else { return }
            isUpdating = false
            let wanted = plan.next(after: list.cells.compactMap { ($0 as? PhotoRow)?.number })
            for (number, batch) in batches where !wanted.contains(number) {
                batch.cancel()
                batches[number] = nil
            }
            for number in wanted where batches[number] == nil {
                batches[number] = prefetcher.prefetch([request(number, scale: list.scaleFactor)])
            }
        }
    }

    func cancel() {
        for batch in batches.values { batch.cancel() }
        batches = [:]
    }
}

/// Decides which rows are loaded in advance: those behind the existing ones, in the direction of scrolling. Pure.
struct PrefetchPlan {
    static let depth = 20

    let rowCount: Int
    private var lastCenter = 0
    private var isUpwards = false

    init(rowCount: Int) { self.rowCount = rowCount }

    /// Returns the rows to load.
    /// - Parameter rows: The rows that exist.
    mutating func next(after rows: [Int]) -> Range<Int> {
        guard let first = rows.min(), let last = rows.max() else { return 0..<0 }
        let center = (first + last) / 2
        if center != lastCenter { isUpwards = center < lastCenter }
        lastCenter = center
        return isUpwards
            ? max(0, first - Self.depth)..<first : last + 1..<min(rowCount, last + 1 + Self.depth)
    }
}

extension Photo {
    /// The `ThumbHash` of the photo.
    var hash: String? {
        guard let small = drawn(width: 32, height: 24) else { return nil }
        // `try?`: a picture of this size can be hashed; without a hash, the row is empty until its photo is there.
        return try? ThumbHash(small).base64
    }
}

extension PhotoRow {
    /// Whether the row shows the complete photo of its number.
    var showsItsPhoto: Bool {
        guard let number, let texture = cell.texture, cell.hasLoaded else { return false }
        return Pixels(texture).sun() == Photo(number: number % 1_000).sun
    }
}
