/// One step of a request on its way to the wire, and of its response on the way back. A stage owns the next one:
///
/// 1. ``InterceptorStage``, if there are interceptors.
/// 2. ``AcceptanceStage`` collects the body and accepts or refuses the response. A download has its own in its place.
/// 3. ``FollowUpStage`` follows redirects, answers challenges, and repeats a request after 417 and 421.
/// 4. ``CacheStage``, if the session has a cache.
/// 5. ``AttemptStage`` sends the request.
///
/// A stage runs where it is called. `RequestExecution` leaves the caller's actor first if the request can run code of
/// the caller, and steps that take long leave it themselves (`@concurrent`). Short steps are synchronous and never
/// inlined: their variables would add 8 KiB to the frame of each waiting call.
protocol Stage: AnyObject, Sendable {
    /// Returns the response to a request. It can be called any number of times for one task, one call after the other.
    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse
}

/// The stages of a session, made once. A request with interceptors of its own gets an ``InterceptorStage`` of its own,
/// and a download gets a stage in place of ``AcceptanceStage``.
final class Stages: Sendable {
    /// All stages of a request that adds none.
    private let all: any Stage
    /// The stages from the acceptance on.
    private let acceptance: any Stage
    /// The stages behind the acceptance.
    let followUps: any Stage
    /// The stages of one exchange with a server, which follow nothing.
    let exchange: any Stage
    /// Whether an interceptor needs a Swift task of its own (``InterceptorStage/needsSwiftTask``).
    let needsSwiftTask: Bool
    /// Returns the stages of a request with these interceptors of its own, which send it by another stage.
    private let surrounding: @Sendable (_ own: [any Interceptor], _ next: any Stage) -> any Stage

    init(
        all: any Stage, acceptance: any Stage, followUps: any Stage, exchange: any Stage, needsSwiftTask: Bool,
        surrounding: @escaping @Sendable (_ own: [any Interceptor], _ next: any Stage) -> any Stage
    ) {
        self.all = all
        self.acceptance = acceptance
        self.followUps = followUps
        self.exchange = exchange
        self.needsSwiftTask = needsSwiftTask
        self.surrounding = surrounding
    }

    /// Returns the stages of a request.
    ///
    /// - Parameter acceptance: The stage that accepts the response in place of ``AcceptanceStage``; nil for that one.
    func stages(of request: Request, accepting acceptance: (any Stage)? = nil) -> any Stage {
        let own = request.interceptors
        if own.isEmpty, acceptance == nil { return all }
        return surrounding(own, acceptance ?? self.acceptance)
    }
}
