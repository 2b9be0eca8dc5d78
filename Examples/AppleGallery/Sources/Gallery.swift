import Foundation
import Observation
import Tern
import TernImages

/// The photos of the server, and the work that the views begin.
@MainActor
@Observable
final class Gallery {
    private(set) var photos: [Photo] = []
    /// The error of the last refresh.
    private(set) var problem: NetworkError?
    @ObservationIgnored private let server: PhotoServer
    @ObservationIgnored private let client: Client
    @ObservationIgnored private let prefetcher = ImagePrefetcher()
    /// The photos that are loaded in advance, by number. A batch for each: those that are still wanted go on when the
    /// list scrolls by a row.
    @ObservationIgnored private var batches: [Int: PrefetchBatch] = [:]

    init() throws {
        server = try PhotoServer()
        client = Client(baseURL: server.baseURL)
    }

    /// Asks the server for its photos. The old ones stay if that fails.
    func refresh() async {
        do throws(NetworkError) {
            photos = try await client.get("photos")
            problem = nil
        } catch {
            problem = error
        }
    }

    /// Loads the pictures of the 20 photos after one into memory, and cancels those of others that were asked for
    /// before.
    @discardableResult
    func prefetch(after photo: Photo) -> [PrefetchBatch] {
        guard let index = photos.firstIndex(of: photo) else { return [] }
        let next = photos[(index + 1)...].prefix(20)
        let numbers = Set(next.map(\.id))
        for (number, batch) in batches where !numbers.contains(number) {
            batch.cancel()
            batches[number] = nil
        }
        for photo in next where batches[photo.id] == nil { batches[photo.id] = prefetcher.prefetch([photo.request]) }
        return next.compactMap { batches[$0.id] }
    }

    /// Begins a download of 4 MB that takes about 4 seconds, to a file in the folder for temporary files.
    func download(rate: Int = 1_000_000) -> SessionTask<URL> {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("AppleGallery.bin")
        return client.download("bytes/4000000", to: file, query: ["rate": rate])
    }
}
