#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The request of one attempt, complete to the last header field, as a transport sends it.
package struct WireRequest: Sendable {
    /// The way in which the body of the response reaches the session.
    package enum Delivery: Sendable, Equatable {
        /// Collects the body in memory and delivers it at the end. More than `limit` bytes is a failure. If the session
        /// reads the body itself (`streamsBody(of:)`), it receives chunks, and collects and counts them.
        case collected(limit: Int)
        /// Delivers chunks, with back-pressure to the socket.
        case streamed
    }

    /// The source of the request's body.
    package enum Source: Sendable {
        case none
        case bytes(Data)
        /// Bytes from a bounded pipe; the length is nil if it is not known.
        case pipe(UploadPipe, length: Int64?)

        /// Whether fields follow the body.
        package var hasTrailers: Bool {
            if case .pipe(let pipe, _) = self { pipe.hasTrailers } else { false }
        }
    }

    package var method: Request.Method
    package var target: Target
    package var headers: Headers
    package var source: Source = .none
    package var delivery: Delivery
    package var timeouts: Timeouts
    package var priority: Request.Priority
    /// The maximum number of bytes of the response's head.
    package var headLimit: Int
    /// The maximum number of bytes of a compressed body after decompression, for URLSession's transport, which
    /// decompresses itself. On Linux, `ContentDecoder` applies the limit.
    package var decompressionLimit: Int64
    package var decompresses: Bool
    /// Whether the attempt must not use a pooled connection, because the one before was dead or does not serve the
    /// origin.
    package var needsFreshConnection: Bool
    /// Whether the head is reported as soon as it arrives, not only with the outcome.
    package var announcesHead: Bool
    /// Whether the session decides at the head of a collected response whether it wants the body.
    package var isDecidedAtHead: Bool
    /// Whether interim responses are reported, because the session has observers.
    package var reportsInterimResponses: Bool
    /// Whether a final response of any status can be the result, because the caller has rules of its own for it.
    package var acceptsAnyStatus: Bool
    /// nil for a request with the defaults.
    private var extras: Extras?
}

extension WireRequest {
    // The memberwise initializer builds the value in its place. Any other one makes a copy at its end.
    @inline(__always)
    package init(
        method: Request.Method, target: Target, headers: Headers, delivery: Delivery, timeouts: Timeouts,
        headLimit: Int, decompressionLimit: Int64, decompresses: Bool, priority: Request.Priority = .normal,
        announcesHead: Bool = false, isDecidedAtHead: Bool = false, needsFreshConnection: Bool = false,
        unixSocketPath: String? = nil, trust: RequestTrust? = nil, reportsInterimResponses: Bool = false,
        acceptsAnyStatus: Bool = false
    ) {
        self.init(
            method: method, target: target, headers: headers, source: .none, delivery: delivery, timeouts: timeouts,
            priority: priority, headLimit: headLimit, decompressionLimit: decompressionLimit,
            decompresses: decompresses,
            needsFreshConnection: needsFreshConnection, announcesHead: announcesHead, isDecidedAtHead: isDecidedAtHead,
            reportsInterimResponses: reportsInterimResponses, acceptsAnyStatus: acceptsAnyStatus,
            extras: Extras(unixSocketPath: unixSocketPath, trust: trust))
    }

    /// Returns whether the session reads the body of a response in chunks, after its head. This is so for a stream or a
    /// download, for a response on whose head it decides, for a body that it decompresses, and for a response that
    /// another request may follow.
    package func streamsBody(of head: ResponseHead, isCompressed: Bool = false) -> Bool {
        delivery == .streamed || isDecidedAtHead || isCompressed || FollowUpRules.mayFollow(head)
    }

    /// Returns whether the body of a response counts as progress, because it can be the result: not that of a response
    /// that another request may follow, nor that of an error.
    func countsBody(of head: ResponseHead) -> Bool {
        switch head.status {
        case 101, 200...299: true
        default: acceptsAnyStatus && !FollowUpRules.mayFollow(head)
        }
    }
}

extension WireRequest {
    /// Whether the request has a source of its body. Known without a copy of it.
    package var hasBody: Bool {
        if case .none = source { false } else { true }
    }

    /// The properties that few requests have. One reference, because each of them would cost a count in every copy.
    private final class Extras: Sendable {
        struct Fields: Sendable {
            var rawCookie: [UInt8]?
            var unixSocketPath: String?
            var trust: RequestTrust?
            var upgrade: String?
            var upgradeLimit = Int.max
            var bufferLimit = TransferState.highWaterMark
            var chunkLimit: Int?
            var avoidsHTTP2 = false
            var isLive = false
            var startDelay = Duration.zero
            var onQueueChange: (@Sendable (_ isQueued: Bool) -> Void)?
        }

        let fields: Fields

        init(_ fields: Fields) { self.fields = fields }

        /// Creates the properties; nil if both are nil.
        convenience init?(unixSocketPath: String?, trust: RequestTrust?) {
            if unixSocketPath == nil, trust == nil { return nil }
            self.init(Fields(unixSocketPath: unixSocketPath, trust: trust))
        }
    }

    private mutating func change(_ change: (inout Extras.Fields) -> Void) {
        var fields = extras?.fields ?? Extras.Fields()
        change(&fields)
        extras = Extras(fields)
    }

    /// Whether the request goes to its server in the usual way: without a cookie in raw bytes, a Unix socket, a trust
    /// policy, another protocol, limits of its own on the buffer, a chunk or a message, and the rule to avoid HTTP/2.
    package var hasNoExtras: Bool { extras == nil }

    /// The value of the `Cookie` field if its bytes are not UTF-8. `headers` then has no such field.
    package var rawCookie: [UInt8]? {
        get { extras?.fields.rawCookie }
        set { change { $0.rawCookie = newValue } }
    }

    /// The path of the Unix domain socket to connect to; nil for the host of the URL.
    package var unixSocketPath: String? {
        get { extras?.fields.unixSocketPath }
        set { change { $0.unixSocketPath = newValue } }
    }

    /// The trust policy of this request, in place of the session's policy for the host.
    package var trust: RequestTrust? {
        get { extras?.fields.trust }
        set { change { $0.trust = newValue } }
    }

    /// The protocol that the request asks the server to switch to, such as `websocket` (RFC 9110 §7.8); nil for none.
    /// The source is then a pipe. After a 101 response, its bytes are sent as they are, and those of the server arrive
    /// as the chunks of the response, whose delivery is `.streamed`. The time limits `idle` and `total` end with the
    /// switch.
    package var upgrade: String? {
        get { extras?.fields.upgrade }
        set { change { $0.upgrade = newValue } }
    }

    /// The maximum number of bytes of a message of that protocol, for a transport that reads messages itself.
    package var upgradeLimit: Int {
        get { extras?.fields.upgradeLimit ?? .max }
        set { change { $0.upgradeLimit = newValue } }
    }

    /// The number of bytes of a streamed response that may wait for the reader before the transport stops.
    package var bufferLimit: Int {
        get { extras?.fields.bufferLimit ?? TransferState.highWaterMark }
        set { change { $0.bufferLimit = newValue } }
    }

    /// The largest number of bytes of a chunk of a streamed response; nil for half of `bufferLimit`.
    package var chunkLimit: Int? {
        get { extras?.fields.chunkLimit }
        set { change { $0.chunkLimit = newValue } }
    }

    /// Whether the response lasts long, so that its connection does not count for the limits of the others.
    package var isLive: Bool {
        get { extras?.fields.isLive ?? false }
        set { change { $0.isLive = newValue } }
    }

    /// The time that the attempt waits before it asks for a connection. Its total time limit and its commands hold
    /// meanwhile.
    package var startDelay: Duration {
        get { extras?.fields.startDelay ?? .zero }
        set { change { $0.startDelay = newValue } }
    }

    /// Called on the event loop when the request begins to wait for a connection that becomes free, and when that ends.
    package var onQueueChange: (@Sendable (_ isQueued: Bool) -> Void)? {
        get { extras?.fields.onQueueChange }
        set { change { $0.onQueueChange = newValue } }
    }

    /// Whether HTTP/2 is not offered to the server.
    package var avoidsHTTP2: Bool {
        get { extras?.fields.avoidsHTTP2 ?? false }
        set { change { $0.avoidsHTTP2 = newValue } }
    }
}

/// The trust policy of one request. A class, because few requests have one, and every wire request is copied.
package final class RequestTrust: Sendable {
    package let policy: TrustPolicy

    package init?(_ policy: TrustPolicy?) {
        guard let policy else { return nil }
        self.policy = policy
    }
}

extension WireRequest: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show headers and the body.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
