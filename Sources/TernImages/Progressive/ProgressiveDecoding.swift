import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes one image while its bytes arrive, on an executor that decoding may occupy.
///
/// The receiver of the bytes passes them on and continues. Previews and the image arrive through `updates`. At most one
/// task decodes at a time, with all bytes that have arrived until then.
public final class ProgressiveDecoding: Sendable {
    /// A result of decoding.
    public enum Update: Sendable {
        /// A better image than before, marked `isPartial`.
        case preview(RasterImage)
        /// The whole image; for an animation the first frame. The last update.
        case image(RasterImage)
        /// Decoding failed. The last update.
        case failure(ImageError)
    }

    private struct Shared {
        var gate: PreviewGate
        var inbox: [Data] = []
        var worker: Task<Void, Never>?
        /// The number of started workers, so that the handle of a finished worker never replaces that of its successor.
        var turn = 0
    }

    private let shared: Lock<Shared>
    /// Used by the worker only, so no caller ever waits for this lock.
    private let decoder: Lock<IncrementalDecoder>
    private let latest = Latest<Update?>(nil)
    private let animation = Atomic<Bool>(false)
    private let clock: RelativeClock
    private let executor: any TaskExecutor

    /// Creates a decoding that waits for bytes.
    /// - Parameter executor: The executor of the decoding, which it occupies for milliseconds at a time.
    /// - Parameter clock: The clock of the policy's interval.
    public convenience init(
        options: ImageDecodingOptions = ImageDecodingOptions(), policy: ProgressivePolicy = .scans,
        clock: any Clock<Duration> = ContinuousClock(), executor: any TaskExecutor
    ) {
        self.init(options: options, policy: policy, clock: clock, executor: executor, keepsBytes: true)
    }

    /// - Parameter keepsBytes: False if the caller has all bytes. A damaged file is then a failure, which the caller
    ///   handles.
    init(
        options: ImageDecodingOptions, policy: ProgressivePolicy, clock: any Clock<Duration>,
        executor: any TaskExecutor, keepsBytes: Bool
    ) {
        shared = Lock(Shared(gate: PreviewGate(policy: policy)))
        decoder = Lock(IncrementalDecoder(options: options, showsRows: policy.showsRows, keepsBytes: keepsBytes))
        self.clock = RelativeClock(clock)
        self.executor = executor
    }

    /// The newest preview if there is one, each later preview that the reader is fast enough for, and the last update,
    /// which every reader receives. Each access returns a new stream. All streams end with the last update or with
    /// `cancel()`.
    public var updates: AsyncStream<Update> {
        let source = latest.stream(keeping: self)
        return AsyncStream {
            for await case .some(let update) in source { return update }
            return nil
        }
    }

    /// A Boolean value that indicates whether the file is an animation, of which `.image` is the first frame. Known
    /// with the last update, false until then.
    public var isAnimation: Bool { animation.load(ordering: .acquiring) }

    /// Adds bytes in the order of the file, and returns at once. It does nothing after `end()` or `cancel()`.
    public func receive(_ bytes: Data) {
        hear { shared in
            let intake = shared.gate.received()
            if !shared.gate.isClosed { shared.inbox.append(bytes) }
            return intake
        }
    }

    /// Marks the bytes as complete. The image or the error becomes the last update.
    public func end() { hear { $0.gate.ended() } }

    /// Stops decoding at the next group of rows and ends the streams.
    public func cancel() {
        let worker = shared.withLock { shared in
            shared.gate.stop()
            shared.inbox = []
            return shared.worker
        }
        worker?.cancel()
        latest.finish { _ in nil }
    }

    private func hear(_ event: (inout Shared) -> PreviewGate.Intake) {
        let turn = shared.withLock { shared -> Int? in
            guard event(&shared) == .work else { return nil }
            shared.turn += 1
            return shared.turn
        }
        guard let turn else { return }
        // The gate owns the task: the next one starts only after this one has ended, and `cancel` cancels it.
        let worker = Task(executorPreference: executor) { self.work() }
        let isUnwanted = shared.withLock { shared in
            if shared.turn == turn { shared.worker = worker }
            // The worker can already be making the final image, which is wanted.
            return shared.gate.isStopped
        }
        if isUnwanted { worker.cancel() }
    }

    private func work() {
        while true {
            do throws(ImageError) {
                for bytes in takeInbox() { try decode(bytes) }
            } catch {
                return close(.failure(error))
            }
            switch shared.withLock({ $0.gate.settled() }) {
            case .work: continue
            case .rest: return
            case .finish: return finish()
            }
        }
    }

    private func takeInbox() -> [Data] {
        shared.withLock { shared in
            defer { shared.inbox = [] }
            return shared.inbox
        }
    }

    private func decode(_ bytes: Data) throws(ImageError) {
        var stands = try decoding { (decoder) throws(ImageError) in try decoder.append(bytes) }
        while stands {
            let now = clock.now()
            if shared.withLock({ $0.gate.boundary(at: now) }) == .render,
                let preview = try decoding({ (decoder) throws(ImageError) in try decoder.preview() })
            {
                latest.update { _ in .preview(preview) }
            }
            stands = try decoding { (decoder) throws(ImageError) in try decoder.advance() }
        }
    }

    private func finish() {
        do throws(ImageError) {
            let (image, isAnimation) = try decoding { (decoder) throws(ImageError) in
                (try decoder.finish(), decoder.isAnimation)
            }
            if isAnimation { animation.store(true, ordering: .releasing) }
            close(.image(image))
        } catch {
            close(.failure(error))
        }
    }

    private func close(_ last: Update) {
        shared.withLock { shared in
            shared.gate.stop()
            shared.inbox = []
        }
        latest.finish { _ in last }
    }

    private func decoding<Value: Sendable>(
        _ body: (IncrementalDecoder) throws(ImageError) -> Value
    ) throws(ImageError) -> Value {
        let outcome: Result<Value, ImageError> = decoder.withLock { decoder in
            do throws(ImageError) { return .success(try body(decoder)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
