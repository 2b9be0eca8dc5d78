#if os(Linux)
import CTernOpenSSL
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The decision about the certificates of one connection. OpenSSL calls it during the handshake, and for each ticket
/// after it. Confined to the thread of the connection.
final class TLSJudgement {
    /// The policy, whose context must live as long as the connection.
    private let policy: TLSPolicy
    private let host: String
    private let resumption: TLSResumption?
    private let key: TicketKey
    /// The chain that was judged, for the tickets of this connection.
    private var chain: [[UInt8]] = []
    private var chainExpiry: Int64 = 0
    /// The rule that the certificates violate, if the handshake continued in spite of it; nil otherwise.
    private var violation: String?
    /// Tickets of TLS 1.2 can arrive within the handshake, before the facts that belong to them are known.
    private var earlyTickets: [UInt] = []
    private var isFinished = false
    /// The verdict on the ticket to resume. It counts only if the server resumes the session.
    private var resumedReport: String?

    /// The report about an accepted chain; nil if there is none.
    private(set) var report: String?
    /// The reason of a refusal; nil if there is none.
    private(set) var refusal: String?

    init(policy: TLSPolicy, host: String, resumption: TLSResumption?, key: TicketKey) {
        self.policy = policy
        self.host = host
        self.resumption = resumption
        self.key = key
    }

    deinit {
        for address in earlyTickets { unsafe tern_ssl_ticket_free(OpaquePointer(bitPattern: address)) }
    }

    /// The functions for OpenSSL. The judgement must outlive the session.
    var callbacks: tern_ssl_callbacks {
        var callbacks = unsafe tern_ssl_callbacks()
        unsafe callbacks.owner = Unmanaged.passUnretained(self).toOpaque()
        if policy.options.judge != nil || policy.options.review != nil {
            unsafe callbacks.judge = { owner, chain in
                guard let owner = unsafe owner, let chain = unsafe chain else { return 0 }
                let judgement = unsafe Unmanaged<TLSJudgement>.fromOpaque(owner).takeUnretainedValue()
                judgement.violation = unsafe tern_ssl_chain_failure(chain).map { unsafe String(cString: $0) }
                return unsafe judgement.accepts(TLSJudgement.certificates(of: chain)) ? 1 : 0
            }
        }
        unsafe callbacks.continues_unverified = policy.options.continuesUnverified ? 1 : 0
        if policy.options.logKeys != nil {
            unsafe callbacks.log_key = { owner, line in
                guard let owner = unsafe owner, let line = unsafe line else { return }
                let judgement = unsafe Unmanaged<TLSJudgement>.fromOpaque(owner).takeUnretainedValue()
                unsafe judgement.policy.options.logKeys?(String(cString: line))
            }
        }
        if resumption != nil {
            unsafe callbacks.take_ticket = { owner, ticket in
                guard let owner = unsafe owner, let ticket = unsafe ticket else { return }
                let judgement = unsafe Unmanaged<TLSJudgement>.fromOpaque(owner).takeUnretainedValue()
                judgement.keepTicket(UInt(bitPattern: ticket))
            }
        }
        return unsafe callbacks
    }

    private static func certificates(of chain: OpaquePointer) -> [[UInt8]] {
        var certificates: [[UInt8]] = []
        for index in 0..<max(0, unsafe tern_ssl_chain_length(chain)) {
            var bytes: UnsafeMutablePointer<UInt8>?
            let count = unsafe tern_ssl_chain_certificate(chain, index, &bytes)
            guard count > 0, let start = unsafe bytes else { continue }
            unsafe certificates.append(Array(UnsafeBufferPointer(start: start, count: Int(count))))
            unsafe tern_ssl_free_bytes(start)
        }
        return certificates
    }

    private func verdict(on chain: [[UInt8]]) -> TLSVerdict {
        guard let judge = policy.options.judge else { return .accepted }
        return judge(peer(chain))
    }

    private func peer(_ chain: [[UInt8]]) -> TLSPeer {
        let isVerified = policy.options.anchors != .none && violation == nil
        return TLSPeer(host: host, chain: chain, isVerified: isVerified, violation: violation)
    }

    /// The review of the connection, after its handshake; nil if the policy has none.
    var review: (@Sendable () async -> TLSVerdict)? {
        guard let review = policy.options.review else { return nil }
        let peer = peer(chain)
        return { await review(peer) }
    }

    /// Judges the chain of a whole handshake.
    private func accepts(_ certificates: [[UInt8]]) -> Bool {
        chain = certificates
        switch verdict(on: certificates) {
        case .accepted: return true
        case .reported(let text):
            report = text
            return true
        case .refused(let reason):
            refusal = reason
            return false
        }
    }

    /// Returns a ticket to resume, whose chain the judge still accepts; nil if there is none.
    func takeTicket() -> TLSTicket? {
        guard let resumption, let ticket = resumption.take(key, now: Int64(time(nil))) else { return nil }
        switch verdict(on: ticket.chain) {
        case .accepted: return ticket
        case .reported(let text):
            resumedReport = text
            return ticket
        // The whole handshake follows, in which the server can show another chain.
        case .refused: return nil
        }
    }

    /// Takes over the facts of the verified chain, or of the session that was resumed.
    func finishHandshake(resumed ticket: TLSTicket?, chainExpiry expiry: Int64) {
        chainExpiry = expiry
        if let ticket {
            chain = ticket.chain
            chainExpiry = ticket.chainExpiry
            report = resumedReport
        }
        isFinished = true
        let tickets = earlyTickets
        earlyTickets = []
        for address in tickets { keepTicket(address) }
    }

    private func keepTicket(_ address: UInt) {
        guard isFinished, let resumption else {
            earlyTickets.append(address)
            return
        }
        resumption.insert(TLSTicket(address: address, chain: chain, chainExpiry: chainExpiry), for: key)
    }
}
#endif
