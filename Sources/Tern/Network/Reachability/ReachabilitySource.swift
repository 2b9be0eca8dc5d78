/// Who knows the status.
package protocol ReachabilitySource: Sendable {
    /// Gives the status of this moment without a watch; nil where only a watch tells it.
    var ask: (@Sendable () -> Reachability.Status)? { get }
    /// Tells the status, before it returns where it can, and every change of it, until the watch is closed. May be called
    /// again after that. nil where no watch could be opened.
    func watch(_ tell: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)?
}

/// One watch of a source.
package protocol ReachabilityWatch: Sendable {
    /// Gives back what the watch holds. Called once; what it tells afterwards is not heard.
    func close()
}

/// Nobody knows.
struct UnknownReachability: ReachabilitySource {
    var ask: (@Sendable () -> Reachability.Status)? { { .unknown } }
    func watch(_ tell: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? { nil }
}
