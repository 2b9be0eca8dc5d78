/// The body of a request, as far as its framing is concerned.
package enum RequestBody: Sendable, Equatable {
    case none
    /// A body of this number of bytes.
    case length(Int64)
    /// A body of unknown length.
    case stream
}

/// Bytes of a request's body in a file.
package struct BodyFile {
    package let descriptor: Int32
    package let offset: Int64
    package let count: Int
    /// Keeps the descriptor open.
    private let owner: AnyObject

    package init(_ descriptor: Int32, at offset: Int64, count: Int, owner: AnyObject) {
        self.descriptor = descriptor
        self.offset = offset
        self.count = count
        self.owner = owner
    }
}

/// The result of reading the body of a request.
package enum BodyRead: Sendable, Equatable {
    /// The number of bytes that were copied, at least 1.
    case bytes(Int)
    /// No bytes yet. The exchange continues after `HTTPExchange.bodyIsReady()`.
    case wait
    case end
    /// The body failed. The sender knows the reason.
    case failed
}
