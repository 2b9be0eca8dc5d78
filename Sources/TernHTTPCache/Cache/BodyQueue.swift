import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a large body on their way to the store, while the body arrives. The reader of the response adds bytes
/// and never waits; a task writes them. If the store is too slow for the reader, the body is given up.
final class BodyQueue: Sendable {
    private let layout: BodyLayout
    private let generation: UInt64
    private let report: StoringReport
    private let state = Lock(BodyQueueState())
    /// The write of a body that has arrived.
    private struct Writing {
        /// The equal requests that wait for it.
        var exchange: SharedExchange?
        /// The number of the write in `CacheState`.
        var number: UInt64?
        var entry: CacheEntry?
    }

    private let writing = Lock(Writing())

    private init(_ layout: BodyLayout, generation: UInt64, report: StoringReport) {
        self.layout = layout
        self.generation = generation
        self.report = report
    }

    /// Returns a queue whose task writes to the writer. The task ends with the queue, which its owner has to end.
    static func start(
        writing layout: BodyLayout, to writer: any BodyWriter, generation: UInt64, report: StoringReport
    ) -> BodyQueue {
        let queue = BodyQueue(layout, generation: generation, report: report)
        Task {
            await queue.run(writer)
            let writing = queue.writing.withLock { $0 }
            if let entry = writing.entry { report.store.endInsert(entry) }
            if let number = writing.number { report.cache.endWrite(number) }
            writing.exchange?.end(.stored)
        }
        return queue
    }

    // MARK: The reader's side

    /// Adds bytes that arrived, or gives the body up.
    func add(_ chunks: [Data]) {
        let count = chunks.reduce(0) { $0 + $1.count }
        let action = state.withLock { state -> BodyQueueState.Action in
            guard !state.hasEnded else { return BodyQueueState.Action() }
            guard state.fits(count), report.cache.reserve(count) else { return state.end(.abandon) }
            return state.add(chunks, count: count)
        }
        perform(action)
        if action.isEnd { report.gaveUp(.storeBusy) }
    }

    /// Stores the entry once all bytes are written.
    func commit(_ entry: CacheEntry, replacing: [CacheEntry]) {
        let exchange = report.beginWriting(entry)
        let number = report.cache.beginWrite()
        // Until the body can be read, a request must not get the response that this one outdates.
        report.store.beginInsert(entry, body: nil, replacing: replacing, generation: generation)
        writing.withLock { $0 = Writing(exchange: exchange, number: number, entry: entry) }
        let action = state.withLock { $0.end(.commit(entry, replacing: replacing)) }
        perform(action)
        // The store has failed before, and the task can have ended.
        if !action.isEnd {
            report.store.endInsert(entry)
            report.cache.endWrite(number)
        }
    }

    /// Discards the body. If `reason` is nil, no report is made.
    func abandon(_ reason: CacheReason?) {
        let action = state.withLock { $0.end(.abandon) }
        perform(action)
        if action.isEnd, let reason { report.gaveUp(reason) }
    }

    private func perform(_ action: BodyQueueState.Action) {
        if action.released > 0 { report.cache.release(action.released) }
        action.waiter?.resume()
    }

    // MARK: The writer's side

    private func run(_ writer: any BodyWriter) async {
        var sink = BodySink(layout: layout, writer: writer)
        if let range = layout.before { await copy(range, to: &sink) }
        while true {
            switch state.withLock({ $0.next() }) {
            case .write(let bytes):
                let failure = await sink.writeReceived(bytes)
                state.withLock { $0.wrote() }
                report.cache.release(bytes.count)
                if let failure { abandon(failure) }
            case .wait(let waiter):
                // The task is cancelled by nobody.
                await waiter.wait(onCancel: {})
            case .end(.abandon):
                return await writer.abandon()
            case .end(.commit(let entry, let replacing)):
                return await finish(entry, replacing: replacing, &sink)
            }
        }
    }

    private func finish(_ entry: CacheEntry, replacing: [CacheEntry], _ sink: inout BodySink) async {
        if let range = layout.after { await copy(range, to: &sink) }
        guard sink.failure == nil, sink.written == entry.properties.storedLength else {
            await sink.writer.abandon()
            report.store.endInsert(entry)
            return report.gaveUp(sink.failure ?? .incomplete)
        }
        let isStored = await sink.writer.commit(entry, replacing: replacing, generation: generation)
        // A caller that learns that the response is stored may ask for it at once, and one that is being written is not
        // found.
        report.store.endInsert(entry)
        report.stored(entry, isStored)
    }

    /// Copies bytes of the entry that the body completes. A failure gives the body up.
    private func copy(_ range: Range<Int64>, to sink: inout BodySink) async {
        guard let stored = layout.stored, let bytes = await report.store.body(of: stored, range: range) else {
            sink.failure = .incomplete
            return abandon(.incomplete)
        }
        var rest = bytes[...]
        while !rest.isEmpty, sink.failure == nil {
            let piece = rest.prefix(BodyQueueState.pieceSize)
            rest = rest.dropFirst(piece.count)
            if let failure = await sink.write(piece) { abandon(failure) }
        }
    }
}

/// The order of the bytes of a body: stored ones, received ones, and stored ones again.
struct BodyLayout: Sendable {
    /// The entry that has the stored bytes; nil for none.
    var stored: CacheEntry?
    var before: Range<Int64>?
    /// The received bytes that are used, counted from the first.
    var received: Range<Int64> = 0..<Int64.max
    var after: Range<Int64>?

    /// The order of a response that is stored as it arrives.
    init() {}

    init(_ combination: CacheCombination) {
        stored = combination.stored
        var hasReceived = false
        for piece in combination.pieces {
            switch piece {
            case .received(let range):
                received = range
                hasReceived = true
            case .stored(let range):
                if hasReceived { after = range } else { before = range }
            }
        }
        if !hasReceived { received = 0..<0 }
    }
}

/// Passes the used bytes to the writer, and counts them.
private struct BodySink {
    let layout: BodyLayout
    let writer: any BodyWriter
    /// The number of bytes that were written.
    var written: Int64 = 0
    var failure: CacheReason?
    private var received: Int64 = 0

    init(layout: BodyLayout, writer: any BodyWriter) {
        self.layout = layout
        self.writer = writer
    }

    /// Writes those of the received bytes that are used.
    mutating func writeReceived(_ bytes: Data) async -> CacheReason? {
        let place = received..<received + Int64(bytes.count)
        received = place.upperBound
        let used = layout.received.clamped(to: place)
        if used.isEmpty { return failure }
        let start = bytes.startIndex - Int(place.lowerBound)
        return await write(bytes[start + Int(used.lowerBound)..<start + Int(used.upperBound)])
    }

    mutating func write(_ bytes: Data) async -> CacheReason? {
        if failure == nil { failure = await writer.write(bytes) }
        if failure == nil { written += Int64(bytes.count) }
        return failure
    }
}

/// The state of a `BodyQueue`. A pure value: its methods return what the queue does.
struct BodyQueueState {
    enum End: Sendable {
        case commit(CacheEntry, replacing: [CacheEntry])
        case abandon
    }

    enum Step {
        case write(Data)
        case wait(Waiter<Void>)
        case end(End)
    }

    /// The effects of a call on others.
    struct Action {
        /// The writer, which waits for bytes or for the end.
        var waiter: Waiter<Void>?
        /// The number of bytes that do not wait for the store any more.
        var released = 0
        /// Whether this call ended the queue.
        var isEnd = false
    }

    /// The greatest number of bytes that wait for the store.
    static let limit = 2 << 20
    /// The number of bytes from which they are written by themselves. Fewer are written together.
    static let pieceSize = 256 << 10

    private var chunks = FIFO<Data>()
    private var queued = 0
    private var inFlight = 0
    private var end: End?
    private var waiter: Waiter<Void>?

    var hasEnded: Bool { end != nil }

    /// The number of bytes that wait for the store, those that are being written included.
    var waitingBytes: Int { queued + inFlight }

    func fits(_ count: Int) -> Bool { waitingBytes + count <= Self.limit }

    mutating func add(_ added: [Data], count: Int) -> Action {
        for chunk in added { chunks.append(chunk) }
        queued += count
        return Action(waiter: waiter.take())
    }

    /// Ends the queue. Only the first call has an effect.
    mutating func end(_ end: End) -> Action {
        guard self.end == nil else { return Action() }
        self.end = end
        var action = Action(waiter: waiter.take(), isEnd: true)
        if case .abandon = end {
            action.released = queued
            queued = 0
            chunks = FIFO()
        }
        return action
    }

    /// Returns the next step of the writer.
    mutating func next() -> Step {
        if var bytes = chunks.popFirst() {
            while bytes.count < Self.pieceSize, let chunk = chunks.popFirst() { bytes.append(chunk) }
            queued -= bytes.count
            inFlight = bytes.count
            return .write(bytes)
        }
        if let end { return .end(end) }
        let new = Waiter<Void>()
        waiter = new
        return .wait(new)
    }

    /// Records that the bytes of the last step are written.
    mutating func wrote() { inFlight = 0 }
}
