/// Watches the stages of a session's requests. It changes nothing, and many may be attached
/// (`Session.Configuration.observers`).
///
/// Every method has an empty default implementation. They are called synchronously where the stage is passed, in the
/// task's own Swift task or that of whoever caused the event, so they return soon; each after the task's own handling of
/// the stage. For one task the order of calls is the order of its stages.
public protocol SessionObserver: Sendable {
    /// A request is about to be sent: the first one of a task, one after a redirect or a challenge, or one that an
    /// interceptor sends again.
    func willSend(_ request: Request, of task: AnySessionTask)

    /// The head of a response has come: whatever its status, of redirects and challenges too.
    func didReceive(_ response: ResponseHead, of task: AnySessionTask)

    /// A redirect is followed.
    func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask)

    /// A server or proxy asks for credentials, and somebody who may have them is asked.
    func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask)

    /// No pin of a trust policy that is `isReportOnly` fits the certificates of a new connection: which were found, and
    /// which expected.
    func didFindUnpinned(_ report: String, of task: AnySessionTask)

    /// Something has happened to a task or to the session: what `TaskRegistry.events` tells, without a bound and without
    /// loss.
    func didObserve(_ event: TaskRegistry.Event)
}

extension SessionObserver {
    /// Nothing.
    public func willSend(_ request: Request, of task: AnySessionTask) {}
    /// Nothing.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) {}
    /// Nothing.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {}
    /// Nothing.
    public func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask) {}
    /// Nothing.
    public func didFindUnpinned(_ report: String, of task: AnySessionTask) {}
    /// Nothing.
    public func didObserve(_ event: TaskRegistry.Event) {}
}
