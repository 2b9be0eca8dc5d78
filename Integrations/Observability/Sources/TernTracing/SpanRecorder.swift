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
    let options: TracingObserver.Options

    private func facts(of request: Request, isRedirected: Bool = false) -> RequestFacts {
        RequestFacts(
            request, revealing: revealed, knownMethods: options.knownMethods, isRedirected: isRedirected)
    }

    func taskStarted(_ task: AnySessionTask) -> TaskState {
        let tracer = tracer ?? InstrumentationSystem.tracer
        let facts = task.request.map { self.facts(of: $0) }
        let span = tracer.startSpan(facts.map(Self.taskName) ?? "HTTP request", ofKind: .internal)
        if let facts {
            span.updateAttributes { attributes in
                attributes.add(facts)
                if let label = task.label { attributes["tern.label"] = label }
            }
        }
        return TaskState(span: span, tracer: tracer)
    }

    /// Returns `HTTP GET` or `HTTP GET /users/{id}`; a method that is not known adds nothing.
    private static func taskName(_ facts: RequestFacts) -> String {
        facts.originalMethod == nil ? "HTTP \(facts.spanName)" : facts.spanName
    }

    func attemptStarted(_ request: Request, as attempt: AttemptStart, of task: TaskState) -> AttemptState {
        let facts = facts(of: request, isRedirected: attempt.isRedirected)
        let start = DefaultTracerClock.now
        let span = task.tracer.startSpan(facts.spanName, context: task.span.context, ofKind: .client, at: start)
        span.updateAttributes { attributes in
            attributes.add(facts)
            if attempt.number > 1 { attributes["http.request.resend_count"] = attempt.number - 1 }
            if options.attributes.contains(.scheme) { attributes["url.scheme"] = facts.scheme }
            if options.attributes.contains(.userAgent),
                let agent = request.headers["User-Agent"] ?? options.userAgent
            {
                attributes["user_agent.original"] = agent
            }
            attributes.add(request.headers, named: options.requestHeaders, to: "http.request.header.")
        }
        return AttemptState(span: span, start: start.nanosecondsSinceEpoch)
    }

    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd) {
        let span = attempt.span
        let (seconds, attoseconds) = end.duration.components
        let nanoseconds = UInt64(clamping: seconds) &* 1_000_000_000 &+ UInt64(clamping: attoseconds / 1_000_000_000)
        let instant = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: attempt.start &+ nanoseconds)
        span.updateAttributes { attributes in
            attributes.add(end.response)
            attributes.add(end, options)
        }
        if let type = end.errorType {
            span.updateAttributes { $0["error.type"] = type }
            // The description is left out where the status code says the same.
            let isStatus = end.error == nil || end.error?.kind == .status
            span.setStatus(SpanStatus(code: .error, message: isStatus ? nil : end.error?.kind.rawValue))
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
        if let template = facts.template { self["url.template"] = template }
    }

    /// Adds what is known at the end of a request.
    fileprivate mutating func add(_ end: AttemptEnd, _ options: TracingObserver.Options) {
        if let metrics = end.metrics {
            if let address = metrics.remoteAddress { self["network.peer.address"] = address }
            if let port = metrics.remotePort { self["network.peer.port"] = port }
            if options.attributes.contains(.sizes) {
                self["http.request.size"] = Int(metrics.sentBytes)
                if end.response != nil { self["http.response.size"] = Int(metrics.receivedBytes) }
            }
        }
        if options.attributes.contains(.transport), let transport = end.transport {
            self["network.transport"] = transport
        }
        if options.attributes.contains(.bodySizes) {
            if let count = end.sentBodyBytes { self["http.request.body.size"] = Int(count) }
            if let count = end.receivedBodyBytes { self["http.response.body.size"] = Int(count) }
        }
        if let headers = end.response?.headers {
            add(headers, named: options.responseHeaders, to: "http.response.header.")
        }
    }

    /// Adds the fields with these names, each with all of its values.
    fileprivate mutating func add(_ headers: Headers, named names: Set<String>, to prefix: String) {
        for name in names where headers.contains(name) {
            let isSecret = Headers.Field(name: name, value: "").isSecret
            let values = headers.values(for: name).map { isSecret ? "<redacted>" : $0 }
            set(prefix + name.lowercased(), value: .stringArray(values))
        }
    }

    fileprivate mutating func add(_ response: ResponseHead?) {
        guard let response else { return }
        self["http.response.status_code"] = response.status
        self["network.protocol.name"] = "http"
        self["network.protocol.version"] = response.version.number
    }
}
