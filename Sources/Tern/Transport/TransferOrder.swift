#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// One attempt of one request, decided to the last header: what a transport is asked to do.
package struct TransferOrder: Sendable {
    /// How the body of the response reaches the session.
    package enum Delivery: Sendable, Equatable {
        /// Collects the body in memory and delivers it at the end. More than `limit` bytes is a failure. If the session
        /// reads the body itself (`isAnswer`), it receives chunks, and collects and counts them.
        case collected(limit: Int)
        /// In chunks, with back-pressure to the socket.
        case streamed
    }

    /// Where the body of the request comes from.
    package enum Source: Sendable {
        case none
        case bytes(Data)
        /// Pulled from a bounded pipe; nil when the length is not known.
        case pipe(UploadPipe, length: Int64?)
    }

    package var method: Request.Method
    package var target: Target
    package var headers: Headers
    /// The value of the `Cookie` field if its bytes are not UTF-8. `headers` then has no such field.
    package var rawCookie: [UInt8]?
    package var source: Source = .none
    package var delivery: Delivery
    package var timeouts: Timeouts
    package var priority: Request.Priority
    /// Bytes of the response's head beyond which the attempt fails.
    package var headLimit: Int
    /// Bytes after decompression beyond which the attempt fails; only compressed bodies count.
    package var decompressionLimit: Int64
    package var decompresses: Bool
    /// A transfer that may stand still has a connection of its own over HTTP/2: libcurl buffers up to 32 MiB for a
    /// paused stream whose siblings run.
    package var isPausable: Bool
    /// The second attempt after a dead pooled connection must not meet another dead one.
    package var needsFreshConnection: Bool
    package var unixSocketPath: String?
    /// In place of the session's policy for this host.
    package var trust: OwnTrust?
    /// The head is wanted as soon as it is there, not only with the outcome.
    package var announcesHead: Bool
    /// A Boolean value that indicates whether the session decides on the head of a collected response whether it wants
    /// the body.
    package var isDecidedAtHead: Bool

    package init(
        method: Request.Method, target: Target, headers: Headers, delivery: Delivery, timeouts: Timeouts,
        headLimit: Int, decompressionLimit: Int64, decompresses: Bool, priority: Request.Priority = .normal,
        isPausable: Bool = false, announcesHead: Bool = false, isDecidedAtHead: Bool = false,
        needsFreshConnection: Bool = false, unixSocketPath: String? = nil, trust: OwnTrust? = nil
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.delivery = delivery
        self.timeouts = timeouts
        self.headLimit = headLimit
        self.decompressionLimit = decompressionLimit
        self.decompresses = decompresses
        self.priority = priority
        self.isPausable = isPausable
        self.announcesHead = announcesHead
        self.isDecidedAtHead = isDecidedAtHead
        self.needsFreshConnection = needsFreshConnection
        self.unixSocketPath = unixSocketPath
        self.trust = trust
    }

    /// Returns whether the session continues with the head alone and reads the body itself. This is so for a stream or
    /// a download, for a response on whose head it decides, for a body that it decompresses, and for a response that
    /// may not be the last.
    package func isAnswer(_ head: ResponseHead, isCompressed: Bool = false) -> Bool {
        delivery == .streamed || isDecidedAtHead || isCompressed || Course.mayGoOn(head)
    }
}

/// The trust policy of one request. A reference: few requests have one, and every order is moved about.
package final class OwnTrust: Sendable {
    package let policy: TrustPolicy

    package init?(_ policy: TrustPolicy?) {
        guard let policy else { return nil }
        self.policy = policy
    }
}

extension TransferOrder: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show headers and the body.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
