#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What an interceptor gets from `next`, and gives: the head of an accepted response, and its body where that is in
/// memory.
public struct Reply: Sendable {
    /// Status, header fields and URL.
    public var head: ResponseHead
    /// What came from the wire, if anything did.
    var arrival: Arrival?
    private var given: Data?

    init(_ arrival: Arrival) {
        self.arrival = arrival
        head = arrival.head
    }

    /// What another task's response was, for one that shares it.
    init(sharing other: Reply) {
        head = other.head
        given = other.body ?? Data()
    }

    /// A reply without a server: from a cache, or made up for a test.
    public init(to request: Request, status: Int = 200, headers: Headers = [:], body: Data = Data()) {
        head = ResponseHead(status: status, version: .http11, target: request.target, headers: headers)
        given = body
    }

    /// The whole body of a response that is collected in memory; nil for a download or a stream, whose body is read
    /// after the interceptors are done. Setting it replaces the body, whatever the task does with it.
    public var body: Data? {
        get { given ?? arrival?.outcome?.body }
        set { given = newValue }
    }

    /// The status code.
    public var status: Int { head.status }

    /// The header fields.
    public var headers: Headers { head.headers }

    /// What was measured of a response that is collected in memory.
    public var metrics: TaskMetrics? { arrival?.outcome?.metrics }

    /// The reply as the task goes on with it.
    func arrived(for plan: RequestPlan) async -> Arrival {
        if let given {
            let metrics = arrival?.outcome?.metrics ?? TaskMetrics()
            let plan = arrival?.plan ?? plan
            await arrival?.discard()
            return Arrival(given: given, plan, head: head, metrics: metrics)
        }
        guard var arrival else { return Arrival(given: Data(), plan, head: head, metrics: TaskMetrics()) }
        arrival.head = head
        return arrival
    }
}

extension Reply: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without secrets and without the body.
    public var description: String { "\(head)" }

    /// The head without secrets. Without this mirror, `dump` would show the body.
    public var customMirror: Mirror { Mirror(self, children: ["head": head]) }
}
