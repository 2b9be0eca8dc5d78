public import Tern
import TernObservation
public import Tracing

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Traces the requests of a session: a span for each task, and in it a span for each request on the wire.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.observers = [TracingObserver()]
/// ```
///
/// The span of a task is a child of the span that is current where the task is started: where `client.get` is called,
/// or where a handle is resumed. It is named after the method, such as `HTTP GET`, and lasts until the task has ended.
///
/// The span of a request is named after the method, such as `GET`, has the kind `client` and the attributes of
/// OpenTelemetry's conventions for HTTP. Each redirect, each answer to a challenge and each retry is a request of its
/// own. A response that a cache answers has none. A request with a template (`Request.URLTemplate` in its `userInfo`) is
/// named after both, such as `GET /users/{id}`, until a redirect leads elsewhere. The context of the span is injected into the header fields of its
/// request, for example as `traceparent` (W3C Trace Context), so that the server's spans become its children. These
/// fields replace those of the same names, and follow no redirect.
///
/// Nothing secret is recorded: a URL has no user information and no query values except revealed ones, header fields are
/// left out unless ``Options`` name them, and then their secrets are hidden, bodies are left out, and errors have Tern's
/// texts.
public struct TracingObserver: SessionObserver {
    private let tracker: AttemptTracker<SpanRecorder>
    private let tracer: (any Tracer)?
    private let propagates: @Sendable (Request) -> Bool

    /// Creates an observer. One observer can serve several sessions.
    ///
    /// - Parameters:
    ///   - tracer: The tracer. By default, the one that was bootstrapped, or that `withTracer` binds where a task
    ///     starts. The bootstrapped instruments then inject the context, also those that are no tracers.
    ///   - revealed: The names of query parameters whose values are recorded in URLs. None by default.
    ///   - options: The attributes beyond those that the conventions recommend. None by default.
    ///   - propagates: Returns whether the context is injected into a request. Into each by default. The context can
    ///     contain baggage of the application; return false for servers that are not to receive it. Called before each
    ///     request is sent.
    public init(
        tracer: (any Tracer)? = nil, revealing revealed: RevealedValues = .none, options: Options = Options(),
        propagates: @escaping @Sendable (_ request: Request) -> Bool = { _ in true }
    ) {
        self.tracer = tracer
        self.propagates = propagates
        tracker = AttemptTracker(SpanRecorder(tracer: tracer, revealed: revealed, options: options))
    }

    /// The number of tasks whose spans have not ended.
    package var count: Int { tracker.count }

    /// Starts the span of a request.
    public func willSend(_ request: Request, of task: AnySessionTask) { tracker.willSend(request, of: task) }

    /// Returns the fields with the context of the request's span.
    public func fields(for request: Request, of task: AnySessionTask) -> Headers {
        guard let span = tracker.attempt(of: task)?.span, propagates(request) else { return [:] }
        var fields = Headers()
        if let tracer {
            tracer.inject(span.context, into: &fields, using: FieldInjector())
        } else {
            InstrumentationSystem.instrument.inject(span.context, into: &fields, using: FieldInjector())
        }
        return fields
    }

    /// Records the status.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) { tracker.didReceive(response, of: task) }

    /// Records the time of the newest bytes.
    public func didReceive(bytes: Data, of task: AnySessionTask) { tracker.didReceiveBytes(of: task) }

    /// Ends the span of a request whose response is refused.
    public func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {
        tracker.didValidate(error: error, of: task)
    }

    /// Ends the span of a request that failed.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) { tracker.didFail(error, of: task) }

    /// Ends the span of a request that is sent again.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: false)
    }

    /// Ends the span of a request that was redirected.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: true)
    }

    /// Records the number of bytes of the request's body.
    public func didSend(bodyBytes: Int64, of task: AnySessionTask) { tracker.didSend(bodyBytes: bodyBytes, of: task) }

    /// Records the peer, and ends the span of a request that another one follows.
    public func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) { tracker.didCollect(metrics, of: task) }

    /// Starts and ends the span of a task.
    public func didObserve(_ event: TaskRegistry.Event) { tracker.observe(event) }
}

/// Writes the context of a span into header fields. A field that cannot be sent is left out: a trace never fails a
/// request.
struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout Headers) {
        guard !key.isEmpty, key.utf8.allSatisfy({ Self.isTokenByte($0) }),
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return }
        carrier[key] = value
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
