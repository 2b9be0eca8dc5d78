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
    @ObservationIgnored private var batch: PrefetchBatch?

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

    /// Loads the pictures of the 20 photos after one into memory, in place of those that were asked for before.
    @discardableResult
    func prefetch(after photo: Photo) -> PrefetchBatch? {
        batch?.cancel()
        guard let index = photos.firstIndex(of: photo) else { return nil }
        batch = prefetcher.prefetch(photos[(index + 1)...].prefix(20).map(\.url))
        return batch
    }

    /// Begins a download of 4 MB that takes about 4 seconds, to a file in the folder for temporary files.
    func download(rate: Int = 1_000_000) -> SessionTask<URL> {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("AppleGallery.bin")
        return client.download("bytes/4000000", to: file, query: ["rate": rate])
    }
}
