#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The request of one attempt, as the session hands it to a transport. The transport adds fields such as `Accept` and
/// `Content-Length`.
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

    /// The part of a request that its body, its cookies and its authorization determine.
    struct Message {
        var headers: Headers
        var source = Source.none
        /// The value of the `Cookie` field if its bytes are not UTF-8. `headers` then has no such field.
        var rawCookie: [UInt8]?
    }

    package var method: Request.Method
    package var target: Target
    package var headers: Headers
    package var source: Source = .none
    /// The value of the `Cookie` field if its bytes are not UTF-8. `headers` then has no such field.
    package var rawCookie: [UInt8]?
    package var delivery: Delivery
    package var timeouts: Timeouts
    package var priority: Request.Priority = .normal
    /// The maximum number of bytes of the response's head.
    package var headLimit: Int
    /// The maximum number of bytes of a compressed body after decompression, for URLSession's transport, which
    /// decompresses itself. On Linux, `ContentDecoder` applies the limit.
    package var decompressionLimit: Int64
    package var decompresses: Bool
    /// Whether the attempt must not use a pooled connection, because the one before was dead or does not serve the
    /// origin.
    package var needsFreshConnection = false
    /// Whether the head is reported as soon as it arrives, not only with the outcome.
    package var announcesHead = false
    /// Whether the session decides at the head of a collected response whether it wants the body.
    package var isDecidedAtHead = false
    /// Whether interim responses are reported, because the session has observers or the request wants them.
    package var reportsInterimResponses = false
    /// Whether a final response of any status can be the result, because the caller has rules of its own for it.
    package var acceptsAnyStatus = false
    /// The settings of the request that few have.
    var options: RequestOptions?
    /// The path of the Unix domain socket to connect to; nil for the host of the URL.
    package var unixSocketPath: String?
    /// The protocol that the request asks the server to switch to, such as `websocket` (RFC 9110 §7.8); nil for none.
    /// The source is then a pipe. After a 101 response, its bytes are sent as they are, and those of the server arrive
    /// as the chunks of the response, whose delivery is `.streamed`. The time limits `idle` and `total` end with the
    /// switch.
    package var upgrade: UpgradeOffer?
    /// The time that the attempt waits before it asks for a connection. The total time limit runs meanwhile, and
    /// commands take effect.
    package var startDelay = Duration.zero
}

extension WireRequest {
    /// The trust policy of this request, in place of the session's policy for the host.
    package var trust: TrustPolicy? { options?.fields.trust }

    /// The number of bytes of a streamed response that may wait for the reader before the transport stops.
    package var bufferLimit: Int { options?.fields.bufferLimit ?? AttemptState.highWaterMark }

    /// The largest number of bytes of a chunk of a streamed response; nil for half of `bufferLimit`.
    package var chunkLimit: Int? { options?.fields.chunkLimit }

    /// Whether the response lasts long, so that its connection does not count for the limits of the others.
    package var isLive: Bool { options?.fields.isLive ?? false }

    /// Called on the event loop when the request begins to wait for a connection that becomes free, and when that ends.
    package var onQueueChange: (@Sendable (_ isQueued: Bool) -> Void)? { options?.fields.onQueueChange }

    /// Whether HTTP/2 is not offered to the server.
    package var avoidsHTTP2: Bool { options?.fields.avoidsHTTP2 ?? false }

    /// Whether the fields that every request gets are sent.
    package var sendsDefaultFields: Bool { options?.fields.sendsDefaultFields ?? true }

    /// The use of HTTP/3 for this request, in place of the session's.
    package var http3: Session.Configuration.HTTP3Use? { options?.fields.http3 }

    /// Whether the request has a source of its body. Known without a copy of it.
    package var hasBody: Bool {
        if case .none = source { false } else { true }
    }

    /// Returns whether the session reads the body of a response in chunks, after its head. This is so for a stream or a
    /// download, for a response on whose head it decides, for a body that it decompresses, and for a response that
    /// another request may follow.
    package func streamsBody(of head: ResponseHead, isCompressed: Bool = false) -> Bool {
        delivery == .streamed || isDecidedAtHead || isCompressed || head.mayBeFollowed
    }

    /// Returns whether the body of a response counts as progress, because it can be the result: not that of a response
    /// that another request may follow, nor that of an error.
    func countsBody(of head: ResponseHead) -> Bool {
        switch head.status {
        case 101, 200...299: true
        default: acceptsAnyStatus && !head.mayBeFollowed
        }
    }
}

extension WireRequest: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show headers and the body.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
