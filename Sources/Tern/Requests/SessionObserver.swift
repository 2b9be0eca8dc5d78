#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Observes the stages of a session's requests without changing them, except for the fields that it can add on the
/// wire. A session can have several observers (`Session.Configuration.observers`).
///
/// For one task the stages are: `willSend`, `fields`, `didReceive(interim:)`, `didReceive(_:of:)`, then for a redirect
/// or a challenge its own call and `willSend` again, otherwise `didReceive(bytes:)`, `didValidate` and `didDecode`;
/// `didSend` comes when an attempt with a body has ended, which is after the response's body was read, and `didCollect`
/// behind it, with the measurements of each attempt;
/// `didResumeDownload` follows `didValidate`;
/// `willRetry` comes before the `willSend` of a request that an interceptor sends again. `didFail` takes the place of
/// the stages that a request does not reach.
///
/// Every method has an empty default implementation. Observers are called synchronously, where the event happens: in
/// the task's own Swift task, or in that of the caller that caused the event. They run on the session's event loop only
/// if that Swift task prefers `Session.executor`. An observer must return soon and never block. The invalidation is
/// observed last, before `Session.finishTasksAndInvalidate()` and `invalidateAndCancel()` return. Each call follows the
/// task's own handling of the stage. For one task, calls come in the order of its stages.
public protocol SessionObserver: Sendable {
    /// Called before a request is sent: the first one of a task, one after a redirect or a challenge, or one that an
    /// interceptor sends again.
    func willSend(_ request: Request, of task: AnySessionTask)

    /// Returns header fields to add to one request on the wire, such as the `traceparent` of a trace. Called after
    /// `willSend`, for each request that it is called for.
    ///
    /// The fields replace those of the request with the same names, and those of observers earlier in the list. They
    /// are not part of the request: they follow no redirect, no cache distinguishes requests by them, and no error has
    /// them. Do not return secrets, because a redirect can lead to any host. A field that cannot be sent fails the task
    /// with `.invalidRequest`. Empty by default.
    func fields(for request: Request, of task: AnySessionTask) -> Headers

    /// Called when a request that `willSend` was called for failed: before its response has arrived, or while the body
    /// was collected in memory. The task fails, unless an interceptor sends the request again.
    ///
    /// Not called for a response that the validation refuses, which `didValidate` reports, and not for a stream or a
    /// download that fails after its head, which ends its task.
    func didFail(_ error: NetworkError, of task: AnySessionTask)

    /// Called for each interim response: 102, 103 (Early Hints, RFC 8297) and others with a status of 1xx, in the order
    /// in which they arrive and before `didReceive(_:of:)`. Use the `Link` fields of a 103 to fetch other resources
    /// early.
    ///
    /// 100 (Continue) and 101 are not reported. A server can send at most 100 interim responses before a response; more
    /// are a malformed response. Their fields do not become part of the response, and their cookies are not stored.
    /// URLSession does not report interim responses. Each attempt of a task reports its own. The call comes in the
    /// task's own Swift task, and the response waits for its return.
    func didReceive(interim response: ResponseHead, of task: AnySessionTask)

    /// Called when the head of a response has arrived, with any status, including redirects and challenges.
    func didReceive(_ response: ResponseHead, of task: AnySessionTask)

    /// Called once for each attempt whose request had a body, when the attempt has ended, also after a failure. Not called
    /// if no byte of the body was sent.
    ///
    /// The sum of the calls is what a session has sent in bodies. `TaskHandle.uploadProgress` reports the bytes while they
    /// are sent.
    ///
    /// - Parameter bodyBytes: The number of bytes of the body that were sent, after compression.
    func didSend(bodyBytes: Int64, of task: AnySessionTask)

    /// Called once for each attempt that went to the wire, when it has ended, also after a failure: with the time of each
    /// phase, the bytes, the peer and the connection. For a response that redirects or asks for credentials, the call
    /// comes behind `didRedirect` or that for the challenge, and before the next `willSend`.
    ///
    /// The measurements of a task (`TaskHandle.metrics`) are those of its last attempt. A request that Tern itself sends
    /// again on a new connection is measured with its last try. Not called for a response that is abandoned unread.
    func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask)

    /// Called when a download continues a partial file: the server sends the rest, from an offset on. Called again for
    /// each further part if the server sends the rest in several. Not called when the server sends the whole file in its
    /// place.
    ///
    /// - Parameters:
    ///   - offset: The number of bytes that were there.
    ///   - total: The length of the whole file.
    func didResumeDownload(at offset: Int64, of total: Int64, of task: AnySessionTask)

    /// Called when bytes of the final response's body have arrived, after decompression: for each portion that a
    /// stream, a download or a task with a policy reads, and otherwise once for the whole body. Not called for the
    /// bodies of redirects and challenges, which are discarded. The call comes in the Swift task that reads the body.
    func didReceive(bytes: Data, of task: AnySessionTask)

    /// Called when the final response was checked by `ResponseValidation`: before the body of a download or a stream is
    /// read, and after the body was collected in memory.
    ///
    /// - Parameter error: The error that the task, or the interceptor around the request, receives; nil for an accepted
    ///   response.
    func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask)

    /// Called when the body of a task that collects it in memory was decoded.
    ///
    /// - Parameters:
    ///   - result: The decoded value, or the error of the task.
    ///   - body: The bytes that the decoder received.
    func didDecode(_ result: Result<any Sendable, NetworkError>, from body: Data, of task: AnySessionTask)

    /// Called before an interceptor sends a request again, such as `RetryInterceptor` after its delay.
    ///
    /// A request that Tern itself sends again on a new connection is not reported; `TaskMetrics.transactions` counts
    /// it.
    ///
    /// - Parameter error: The failure of the attempt before; nil if its response was accepted.
    func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask)

    /// Called when a redirect is followed.
    func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask)

    /// Called when a server or proxy asks for credentials, before a policy or provider is asked.
    func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask)

    /// Called when no pin of a trust policy that is `isReportOnly` matches the certificates of a new connection. The
    /// report names the expected and the found ones.
    func didFindUnpinned(_ report: String, of task: AnySessionTask)

    /// Called for each event of a task or of the session: the events of `TaskRegistry.events`, without a bound and
    /// without loss. The `TaskRegistry.Completion` of a task that has a value contains it.
    func didObserve(_ event: TaskRegistry.Event)
}

extension SessionObserver {
    /// Does nothing.
    public func willSend(_ request: Request, of task: AnySessionTask) {}
    /// Returns no fields.
    public func fields(for request: Request, of task: AnySessionTask) -> Headers { [:] }
    /// Does nothing.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(interim response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didSend(bodyBytes: Int64, of task: AnySessionTask) {}
    /// Does nothing.
    public func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) {}
    /// Does nothing.
    public func didResumeDownload(at offset: Int64, of total: Int64, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(bytes: Data, of task: AnySessionTask) {}
    /// Does nothing.
    public func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {}
    /// Does nothing.
    public func didDecode(_ result: Result<any Sendable, NetworkError>, from body: Data, of task: AnySessionTask) {}
    /// Does nothing.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {}
    /// Does nothing.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask) {}
    /// Does nothing.
    public func didFindUnpinned(_ report: String, of task: AnySessionTask) {}
    /// Does nothing.
    public func didObserve(_ event: TaskRegistry.Event) {}
}
