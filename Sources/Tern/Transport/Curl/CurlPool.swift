#if os(Linux)
import CTernCurl

/// The connections of one session, and who may use them. Confined to the loop's thread.
///
/// Two multi handles: one whose HTTP/2 connections are shared, and one in which a connection carries one transfer at a
/// time, for those that may stand still: libcurl buffers up to 32 MiB for a paused stream whose siblings run.
final class CurlPool {
    /// Streams that one HTTP/2 connection is taken to carry: libcurl's own default.
    private static let streamsPerConnection = 100
    /// Idle easy handles kept of each size.
    private static let keptHandles = 256
    /// A Boolean value that indicates whether an easy handle may carry one attempt after another.
    ///
    /// Before 8.1.0, libcurl keeps a pointer to the last field of the previous head after freeing it. If the first
    /// field line of the next head begins with a space or tab, libcurl writes to the freed memory.
    static let reusesHandles = tern_curl_version() >= 0x08_01_00

    let settings: PoolSettings
    /// nil where every host has the default policy.
    let trust: CurlTrust?
    let sockets: SocketTable
    private let turn: LoopTurn
    private(set) var shared: CurlMulti?
    private(set) var exclusive: CurlMulti?
    /// Made since the engine last asked.
    private var newMultis: [CurlMulti] = []
    private var idleSmall: [CurlHandle] = []
    private var idleBulk: [CurlHandle] = []
    var queue: AdmissionQueue
    /// Transfers that were admitted because another ended, or a connection turned out to carry more.
    var admitted: [UInt64] = []
    /// Transfers that wait for their turn.
    var waiting: [UInt64: CurlTransfer] = [:]
    /// Attempts that have not ended.
    var liveCount = 0
    /// The session is gone: the pool ends with its last transfer.
    var isClosing = false

    init(_ settings: PoolSettings, sockets: SocketTable, turn: LoopTurn) {
        self.settings = settings
        trust = settings.trust.map { CurlTrust($0, settings.authorities) }
        self.sockets = sockets
        self.turn = turn
        queue = AdmissionQueue(
            limitPerOrigin: settings.maximumConnectionsPerHost, limit: settings.maximumConnections,
            order: settings.queueOrder)
    }

    func learnedHTTP2(_ transfer: CurlTransfer) {
        admitted += queue.learn(transfer.origin, streamsPerConnection: Self.streamsPerConnection)
    }

    // MARK: The queue

    /// Returns whether the transfer may enter now; otherwise it waits.
    func admits(_ transfer: CurlTransfer) -> Bool {
        let id = transfer.transfer.id
        let isExclusive = isExclusive(transfer.transfer)
        let priority = transfer.priority.rawValue
        if queue.submit(id, transfer.origin, priority: priority, isExclusive: isExclusive) { return true }
        waiting[id] = transfer
        return false
    }

    /// A place on the wire is free.
    func release(_ transfer: CurlTransfer) {
        admitted += queue.release(transfer.origin, isExclusive: isExclusive(transfer.transfer))
    }

    /// Removes a transfer that waits. Does nothing for other transfers.
    func withdraw(_ transfer: CurlTransfer) {
        if queue.withdraw(transfer.transfer.id, transfer.origin) { waiting[transfer.transfer.id] = nil }
    }

    // MARK: The wire

    /// Returns whether the transfer needs a connection that it does not share. Over plain HTTP, connections are never
    /// shared.
    private func isExclusive(_ transfer: Transfer) -> Bool {
        transfer.request.isPausable && transfer.request.target.isSecure && settings.allowsHTTP2
    }

    private func multi(for transfer: Transfer) -> CurlMulti? {
        if isExclusive(transfer) {
            if exclusive == nil {
                exclusive = CurlMulti(settings, isExclusive: true, sockets: sockets, turn: turn)
                newMultis.append(contentsOf: exclusive.map { [$0] } ?? [])
            }
            return exclusive
        }
        if shared == nil {
            shared = CurlMulti(settings, isExclusive: false, sockets: sockets, turn: turn)
            newMultis.append(contentsOf: shared.map { [$0] } ?? [])
        }
        return shared
    }

    func takeNewMultis() -> [CurlMulti] {
        guard !newMultis.isEmpty else { return [] }
        defer { newMultis = [] }
        return newMultis
    }

    /// Starts an attempt. Returns false when libcurl has no memory for it, or refuses the request's destination.
    func enter(_ transfer: CurlTransfer) -> Bool {
        let size = Self.size(for: transfer.transfer)
        guard let handle = transfer.handle ?? takeHandle(size),
            handle.configure(transfer.transfer, isFresh: transfer.needsFreshConnection)
        else { return false }
        handle.transfer = transfer
        transfer.handle = handle
        transfer.clock.connecting(turn.now)
        turn.watch(transfer.clock)
        return multi(for: transfer.transfer)?.add(handle) ?? false
    }

    /// Takes an attempt off the wire; its handle stays with it.
    func leave(_ transfer: CurlTransfer) {
        guard let handle = transfer.handle else { return }
        multi(for: transfer.transfer)?.remove(handle)
        handle.transfer = nil
    }

    func recycle(_ handle: CurlHandle) {
        guard Self.reusesHandles || handle.renew(settings) else { return }
        switch handle.size {
        case .small where idleSmall.count < Self.keptHandles: idleSmall.append(handle)
        case .bulk where idleBulk.count < Self.keptHandles / 8: idleBulk.append(handle)
        default: break
        }
    }

    private func takeHandle(_ size: CurlHandle.Size) -> CurlHandle? {
        switch size {
        case .small: idleSmall.popLast() ?? CurlHandle(size, settings: settings, trust: trust, sockets: sockets)
        case .bulk: idleBulk.popLast() ?? CurlHandle(size, settings: settings, trust: trust, sockets: sockets)
        }
    }

    private static func size(for transfer: Transfer) -> CurlHandle.Size {
        if transfer.request.delivery == .streamed { return .bulk }
        return switch transfer.request.source {
        case .none: .small
        case .bytes(let data): data.count > 256 << 10 ? .bulk : .small
        case .pipe: .bulk
        }
    }
}
#endif
