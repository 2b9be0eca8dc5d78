#if os(Linux)
import CTernCurl
import FoundationEssentials
import Glibc

/// One attempt on the loop: what libcurl's callbacks do with it, and what is known of it so far. Confined to the loop's
/// thread.
final class CurlTransfer {
    /// Bytes gathered into one chunk of a streamed response.
    private static let chunkSize = 256 << 10
    /// Bodies up to this size are copied once into the value itself; larger ones get a block that is handed over.
    private static let smallBody = 16 << 10

    /// Bytes of head that most responses do not exceed.
    private static let usualHead = 512

    let transfer: Transfer
    let pool: CurlPool
    /// Where the attempt queues: its host, or its socket.
    let origin: String
    private let turn: LoopTurn
    var clock: TransferClock
    /// While the attempt is on the wire, or withdrawn from it by a pause.
    var handle: CurlHandle?
    /// Ends the attempt whatever libcurl says afterwards.
    var failure: TransferFailure?

    private var headBytes: [UInt8] = []
    private var trailerBytes: [UInt8] = []
    private(set) var head: ResponseHead?
    private var small = Data()
    private var slab = Slab()
    private var received: Int64 = 0
    private var expected: Int64?
    private var isCompressed = false
    private var sourceOffset = 0
    private(set) var connections = 0
    private var isMarked = false

    // Why no bytes move, and what libcurl was told of it.
    private(set) var isPaused = false
    private var isHeldUp = false
    private var isStarved = false
    private var stopped: Int32 = 0

    /// The connection carries the request, or has begun to.
    var isConnected: Bool { connections > 0 }

    init(_ transfer: Transfer, _ pool: CurlPool, _ turn: LoopTurn) {
        self.transfer = transfer
        self.pool = pool
        self.turn = turn
        headBytes.reserveCapacity(Self.usualHead)
        origin = transfer.order.unixSocketPath ?? transfer.order.target.origin
        clock = TransferClock(transfer.order.timeouts, now: turn.now)
    }

    // MARK: Callbacks

    /// Before the request goes out on a connection. False for the second time: libcurl sends again, by itself, any method
    /// on a pooled connection that died.
    func connected() -> Bool {
        connections += 1
        clock.connected(turn.now)
        turn.watch(clock)
        return connections == 1
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        clock.moved(turn.now)
        if head != nil {
            unsafe trailerBytes.append(contentsOf: line)
            return trailerBytes.count <= transfer.order.headLimit ? line.count : refuseHead()
        }
        unsafe headBytes.append(contentsOf: line)
        guard headBytes.count <= transfer.order.headLimit else { return refuseHead() }
        let isBlank = unsafe line.count <= 2 && line.allSatisfy { $0 == 13 || $0 == 10 }
        if isBlank {
            headEnded()
        } else if transfer.order.decompresses, unsafe Self.isContentEncoding(line) {
            isCompressed = true
        }
        return line.count
    }

    private static func isContentEncoding(_ line: UnsafeRawBufferPointer) -> Bool {
        let name: StaticString = "content-encoding:"
        guard line.count > name.utf8CodeUnitCount, unsafe line[0] | 0x20 == 0x63 else { return false }
        return (0..<name.utf8CodeUnitCount).allSatisfy { unsafe line[$0] | 0x20 == name.utf8Start[$0] | 0x20 }
    }

    private func refuseHead() -> Int {
        failure = TransferFailure(.tooLarge, "the head of the response has more than \(transfer.order.headLimit) bytes")
        return 0
    }

    private func headEnded() {
        guard let handle else { return }
        let status = handle.number(CURLINFO_RESPONSE_CODE)
        // An interim response: the final one follows (RFC 9110 §15.2).
        if status < 200 && status != 101 {
            headBytes.removeAll(keepingCapacity: true)
            isCompressed = false
            return
        }
        let version = Self.version(handle.number(CURLINFO_HTTP_VERSION))
        let head = ResponseHead(status: status, version: version, target: transfer.order.target, rawHead: headBytes)
        self.head = head
        let length = handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        expected = length >= 0 && !isCompressed && transfer.order.method != .head ? length : nil
        if version == .http2 { pool.learnedHTTP2(self) }
        if transfer.order.announcesHead {
            unsafe turn.wake(transfer.receive(head))
            markChanged()
        }
    }

    private static func version(_ value: Int) -> HTTPVersion {
        switch value {
        case Int(CURL_HTTP_VERSION_1_0): .http1_0
        case Int(CURL_HTTP_VERSION_2_0): .http2
        case Int(CURL_HTTP_VERSION_3): .http3
        default: .http1_1
        }
    }

    func receiveBody(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if isPaused || isHeldUp {
            stopped |= CURLPAUSE_RECV
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        clock.moved(turn.now)
        received += Int64(count)
        if isCompressed, received > transfer.order.decompressionLimit {
            failure = TransferFailure(
                .tooLarge, "the response decompresses to more than \(transfer.order.decompressionLimit) bytes")
            return 0
        }
        let isKept: Bool
        switch transfer.order.delivery {
        case .collected(let limit):
            guard received <= limit, expected ?? 0 <= limit else {
                failure = TransferFailure(
                    .tooLarge, "the body of the response has more than \(limit) bytes: stream it, or raise maximumBodySize")
                return 0
            }
            unsafe isKept = collect(bytes, count)
        case .streamed:
            unsafe isKept = gather(bytes, count)
        }
        guard isKept else {
            failure = TransferFailure(.tooLarge, "no memory is left for the body of the response")
            return 0
        }
        markChanged()
        return count
    }

    private func collect(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        if slab.isEmpty {
            let whole = Int(max(received, expected ?? 0))
            if whole <= Self.smallBody {
                if small.isEmpty {
                    unsafe small = Data(bytes: bytes, count: count)
                } else {
                    unsafe small.append(bytes.assumingMemoryBound(to: UInt8.self), count: count)
                }
                return true
            }
            guard slab.reserve(min(whole, bodyLimit)) else { return false }
            if !small.isEmpty {
                let isMoved = unsafe small.withUnsafeBytes { bytes in
                    unsafe bytes.baseAddress.map { unsafe slab.append($0, bytes.count) } ?? true
                }
                guard isMoved else { return false }
                small = Data()
            }
        }
        return unsafe slab.append(bytes, count)
    }

    private var bodyLimit: Int {
        if case .collected(let limit) = transfer.order.delivery { limit } else { .max }
    }

    private func gather(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        if !slab.isEmpty, slab.room < count { deliverChunk() }
        let size = min(Self.chunkSize, Int(clamping: expected ?? .max))
        guard slab.reserve(max(size, count)) else { return false }
        return unsafe slab.append(bytes, count)
    }

    func sendBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if isPaused {
            stopped |= CURLPAUSE_SEND
            return Int(CURL_READFUNC_PAUSE)
        }
        switch transfer.order.source {
        case .none: return 0
        case .bytes(let data):
            let count = min(buffer.count, data.count - sourceOffset)
            let start = data.startIndex + sourceOffset
            unsafe data.copyBytes(to: buffer, from: start..<(start + count))
            sourceOffset += count
            moved()
            return count
        case .pipe(let pipe, _):
            let (read, producer) = unsafe pipe.read(into: buffer)
            unsafe turn.wake(producer)
            switch read {
            case .bytes(let count):
                moved()
                return count
            case .wait:
                isStarved = true
                clock.heldUp(true, turn.now)
                stopped |= CURLPAUSE_SEND
                return Int(CURL_READFUNC_PAUSE)
            case .end:
                return 0
            case .failed(let failure):
                self.failure = failure
                return Int(CURL_READFUNC_ABORT)
            }
        }
    }

    private func moved() {
        clock.moved(turn.now)
        markChanged()
    }

    private func markChanged() {
        guard !isMarked else { return }
        isMarked = true
        turn.changed.append(self)
    }

    // MARK: What the engine does

    /// Hands on what the turn brought. Small pieces wait while more is coming: returns whether some do.
    func flush(isIdle: Bool) -> Bool {
        isMarked = false
        guard handle != nil else { return false }
        storeProgress()
        guard transfer.order.delivery == .streamed, !slab.isEmpty else { return false }
        if isIdle || slab.count >= Self.chunkSize || slab.room == 0 {
            deliverChunk()
            return false
        }
        return true
    }

    /// Comes back in the next turn, with what it brings.
    func waitForMore() { markChanged() }

    private func deliverChunk() {
        let (wake, isFull) = unsafe transfer.receive(slab.take())
        unsafe turn.wake(wake)
        if isFull, !isHeldUp {
            isHeldUp = true
            clock.heldUp(true, turn.now)
        }
    }

    private func storeProgress() {
        let sent: Int64
        let total: Int64?
        switch transfer.order.source {
        case .none: (sent, total) = (0, nil)
        case .bytes(let data): (sent, total) = (handle?.offset(CURLINFO_SIZE_UPLOAD_T) ?? 0, Int64(data.count))
        case .pipe(_, let length): (sent, total) = (handle?.offset(CURLINFO_SIZE_UPLOAD_T) ?? 0, length)
        }
        transfer.meter.store(sent: sent, of: total, received: received, of: expected)
    }

    func setPaused(_ paused: Bool) {
        guard isPaused != paused else { return }
        isPaused = paused
        if paused { clock.paused(turn.now) } else { clock.resumed(turn.now) }
        turn.watch(clock)
        applyPause()
    }

    func readerTookAll() {
        guard isHeldUp else { return }
        isHeldUp = false
        clock.heldUp(isStarved, turn.now)
        turn.watch(clock)
        applyPause()
    }

    func sourceIsReady() {
        guard isStarved else { return }
        isStarved = false
        clock.heldUp(isHeldUp, turn.now)
        turn.watch(clock)
        applyPause()
    }

    /// Tells libcurl what must stand still. It may call back, and be stopped again, before it returns.
    private func applyPause() {
        guard let handle, isConnected else { return }
        var wanted: Int32 = 0
        if isPaused { wanted = CURLPAUSE_ALL }
        if isHeldUp { wanted |= stopped & CURLPAUSE_RECV }
        if isStarved { wanted |= stopped & CURLPAUSE_SEND }
        guard wanted != stopped else { return }
        stopped = wanted
        handle.pause(wanted)
    }

    /// Taken off the wire before anything was sent; it may go there again.
    func withdraw() {
        connections = 0
        stopped = 0
        clock.withdrawn()
    }

    /// The end of the attempt: all that was gathered goes to the session, and the engine keeps nothing of it.
    func complete(_ failure: TransferFailure?) {
        if handle != nil { storeProgress() }
        if transfer.order.delivery == .streamed, !slab.isEmpty { deliverChunk() }
        if case .pipe(let pipe, _) = transfer.order.source { pipe.close() }
        var outcome = TransferOutcome(
            head: head, failure: failure, metrics: handle.map(metrics) ?? TaskMetrics(),
            trailers: trailerBytes.isEmpty ? [:] : ResponseHeadParser.fields(trailerBytes))
        outcome.body = slab.isEmpty ? small : slab.take()
        unsafe turn.wake(transfer.complete(outcome))
    }

    private func metrics(_ handle: CurlHandle) -> TaskMetrics {
        var metrics = TaskMetrics()
        metrics.isReusedConnection = handle.number(CURLINFO_NUM_CONNECTS) == 0 && isConnected
        if isConnected, !metrics.isReusedConnection {
            metrics.nameLookupEnd = handle.offset(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connectEnd = handle.offset(CURLINFO_CONNECT_TIME_T)
            metrics.tlsEnd = handle.offset(CURLINFO_APPCONNECT_TIME_T)
        }
        if head != nil { metrics.firstByteTime = handle.offset(CURLINFO_STARTTRANSFER_TIME_T) }
        metrics.totalTime = handle.offset(CURLINFO_TOTAL_TIME_T)
        metrics.receivedBytes = Int64(handle.number(CURLINFO_HEADER_SIZE)) + handle.offset(CURLINFO_SIZE_DOWNLOAD_T)
        metrics.sentBytes = Int64(handle.number(CURLINFO_REQUEST_SIZE)) + handle.offset(CURLINFO_SIZE_UPLOAD_T)
        metrics.decodedBodyBytes = received
        metrics.httpVersion = head?.version
        if isConnected {
            metrics.remoteAddress = handle.text(CURLINFO_PRIMARY_IP)
            metrics.remotePort = handle.number(CURLINFO_PRIMARY_PORT)
        }
        return metrics
    }

    /// Bytes of the response's body so far, and of how many: for the text of a failure.
    var receivedText: String {
        expected.map { "\(received) of \($0) bytes" } ?? "\(received) bytes"
    }
}
#endif
