import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a picture, and how they were come by.
struct Original: Sendable {
    var data: Data
    var freshness: Freshness
    var source: ImageResponse.Source
    var trace: ImageTrace
    /// Whether a revalidation has found that the bytes are still right: `data` is then empty.
    var isUnchanged = false
}

extension Original {
    /// What was decoded of the bytes.
    func loaded(_ decoded: StoredImage, _ flight: ImageFlight) -> LoadedImage {
        var stored = decoded
        stored.freshness = freshness
        if flight.options.includesData { stored.data = data }
        var trace = trace
        trace.add(.decoding, .hit, .picture(stored.image.format, stored.image.size))
        return LoadedImage(stored: stored, source: source, trace: trace)
    }
}

/// A picture, and how it was come by.
struct LoadedImage: Sendable {
    var stored: StoredImage
    var source: ImageResponse.Source
    var trace: ImageTrace
}

/// Who waits for a picture: a task of the user's, or the load of a variant of it.
enum ImageSink: Sendable {
    case task(ImageTask)
    case variant(Waiter<Result<LoadedImage, ImageError>>, load: Int)
}

/// Who waits for bytes: the load of a picture.
struct OriginalSink: Sendable {
    let waiter: Waiter<Result<Original, ImageError>>
    let load: Int
}

/// A load under way: what runs, and what it waits for. The pipeline's actor alone touches it; an object, since its table
/// would move all of this about at each change.
final class RunningLoad {
    /// Another load that this one waits for.
    enum Upstream: Sendable {
        case image(load: Int, ticket: Int)
        case original(load: Int, ticket: Int)
    }

    /// Nil for a caller who waits for bytes in a task of its own.
    var job: Task<Void, Never>?
    /// Whether it is to begin its fetch only once scrolling has settled: if all who wait for it say so.
    var waitsForScrolling: Bool
    var upstream: Upstream?
    /// What is done to the picture that it waits for.
    var processor: (any ImageProcessor)?
    /// Where it waits for its turn.
    var turn: (stage: LoadStage, waiter: Waiter<Bool>)?
    /// How far it was told to be, for who comes later.
    var progress: Session.Progress?
    /// What was delivered already and is being asked for again.
    var found: LoadedImage?

    init(job: Task<Void, Never>? = nil, waitsForScrolling: Bool = false) {
        self.job = job
        self.waitsForScrolling = waitsForScrolling
    }
}

/// A stage at which so many may work at a time.
enum LoadStage: Int, Sendable, CaseIterable {
    case fetch, decode, process
}
