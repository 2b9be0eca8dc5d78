#if os(Linux)
import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One picture that is decoded while its bytes come, on an executor that may take its time.
///
/// Whoever receives the bytes hands them over and goes on; previews and the picture come out of `updates`. At most one
/// task works for it at a time, on all that has come until then.
public final class ProgressiveDecoding: Sendable {
    /// What there is to show.
    public enum Update: Sendable {
        /// A better picture than before, marked `isPartial`.
        case preview(RasterImage)
        /// The whole picture, of an animation the first frame; the last update.
        case image(RasterImage)
        /// There will be no picture; the last update.
        case failure(ImageError)
    }

    private struct Shared {
        var gate: PreviewGate
        var inbox: [Data] = []
        var worker: Task<Void, Never>?
        /// Counts the workers: the handle of one that is through never replaces that of its successor.
        var turn = 0
    }

    private let shared: Lock<Shared>
    /// Entered by the worker alone: nobody ever waits for this lock.
    private let decoder: Lock<IncrementalDecoder>
    private let latest = Latest<Update?>(nil)
    private let animation = Atomic<Bool>(false)
    private let clock: ClockReading
    private let executor: any TaskExecutor

    /// A decoding that waits for bytes.
    /// - Parameter executor: where decoding runs; it is kept busy for milliseconds at a time.
    /// - Parameter clock: the clock of the policy's interval.
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
        self.clock = ClockReading(clock)
        self.executor = executor
    }

    /// The newest preview, if there is one, each later one that the reader is not too slow for, and the last update,
    /// which no reader misses. Each access gives a stream of its own; all end with the last update or with `cancel()`.
    public var updates: AsyncStream<Update> {
        let source = latest.stream(keeping: self)
        return AsyncStream {
            for await case .some(let update) in source { return update }
            return nil
        }
    }

    /// Whether the file is an animation, of which `.image` is the first frame. Known once that update is there, false
    /// until then.
    public var isAnimation: Bool { animation.load(ordering: .acquiring) }

    /// Takes more bytes, in the order of the file. Returns at once; after `end()` or `cancel()` it does nothing.
    public func receive(_ bytes: Data) {
        hear { shared in
            let intake = shared.gate.received()
            if !shared.gate.isClosed { shared.inbox.append(bytes) }
            return intake
        }
    }

    /// All bytes were received: the picture, or the error, is the next terminal update.
    public func end() { hear { $0.gate.ended() } }

    /// Nobody wants the picture: decoding stops at the next group of rows, and the streams end.
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
        // Its owner is the gate: the next one starts only after this one has settled, and `cancel` ends it.
        let worker = Task(executorPreference: executor) { self.work() }
        let isUnwanted = shared.withLock { shared in
            if shared.turn == turn { shared.worker = worker }
            return shared.gate.isOver
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
#endif
