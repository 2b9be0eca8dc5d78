import Tern
import TernObservation
import Tracing

/// Creates and ends the spans of tasks and their requests.
struct SpanRecorder: AttemptRecorder {
    struct TaskState {
        let span: any Span
        let tracer: any Tracer
    }

    struct AttemptState {
        let span: any Span
        /// Nanoseconds since 1970, as the span has it.
        let start: UInt64
    }

    /// nil for the bootstrapped one.
    let tracer: (any Tracer)?
    let revealed: RevealedValues

    func taskStarted(_ task: AnySessionTask) -> TaskState {
        let tracer = tracer ?? InstrumentationSystem.tracer
        let facts = task.request.map { RequestFacts($0, revealing: revealed) }
        let span = tracer.startSpan("HTTP \(facts?.method ?? "request")", ofKind: .internal)
        if let facts {
            span.updateAttributes { attributes in
                attributes.add(facts)
                if let label = task.label { attributes["tern.label"] = label }
            }
        }
        return TaskState(span: span, tracer: tracer)
    }

    func attemptStarted(_ request: Request, number: Int, of task: TaskState) -> AttemptState {
        let facts = RequestFacts(request, revealing: revealed)
        let start = DefaultTracerClock.now
        let span = task.tracer.startSpan(facts.method, context: task.span.context, ofKind: .client, at: start)
        span.updateAttributes { attributes in
            attributes.add(facts)
            if number > 1 { attributes["http.request.resend_count"] = number - 1 }
        }
        return AttemptState(span: span, start: start.nanosecondsSinceEpoch)
    }

    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd) {
        let span = attempt.span
        let (seconds, attoseconds) = end.duration.components
        let nanoseconds = UInt64(clamping: seconds) &* 1_000_000_000 &+ UInt64(clamping: attoseconds / 1_000_000_000)
        let instant = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: attempt.start &+ nanoseconds)
        span.updateAttributes { $0.add(end.response) }
        if let type = end.errorType {
            span.updateAttributes { $0["error.type"] = type }
            span.setStatus(SpanStatus(code: .error, message: end.error?.kind.rawValue))
            // A status is an answer of the server and no exception.
            if let error = end.error, error.kind != .status { span.recordError(error, attributes: [:], at: instant) }
        }
        span.end(at: instant)
    }

    func taskEnded(_ task: TaskState, as completion: TaskRegistry.Completion, attempts: Int) {
        let span = task.span
        span.updateAttributes { attributes in
            attributes.add(completion.response)
            attributes["tern.requests"] = attempts
        }
        if let error = completion.error {
            span.updateAttributes { $0["error.type"] = error.errorType }
            span.recordError(error)
            span.setStatus(SpanStatus(code: .error, message: error.kind.rawValue))
        }
        span.end()
    }
}

extension SpanAttributes {
    fileprivate mutating func add(_ facts: RequestFacts) {
        self["http.request.method"] = facts.method
        if let original = facts.originalMethod { self["http.request.method_original"] = original }
        self["url.full"] = facts.url
        self["server.address"] = facts.server.address
        self["server.port"] = facts.server.port
    }

    fileprivate mutating func add(_ response: ResponseHead?) {
        guard let response else { return }
        self["http.response.status_code"] = response.status
        self["network.protocol.name"] = "http"
        self["network.protocol.version"] = response.version.number
    }
}
