public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StubTransport {
    /// A response of a stub, with its timing.
    ///
    /// ```swift
    /// let slow = StubTransport.Answer.chunks([Data("one".utf8), Data("two".utf8)], interval: .seconds(1))
    /// let late = StubTransport.Answer.text("late").delayed(by: .seconds(30))
    /// let torn = StubTransport.Answer.text("half").failing(StubTransport.Failure(.connectionLost))
    /// ```
    public struct Answer: Sendable {
        /// A step in the delivery of the body.
        public enum Step: Sendable {
            /// Delivers these bytes.
            case chunk(Data)
            /// Waits for this duration on the stub's clock.
            case wait(Duration)
            /// Fails the attempt.
            case fail(Failure)
        }

        /// The status code.
        public var status: Int
        /// The header fields, exactly as given. A Content-Length makes the total known, and a shorter body fails with
        /// `.truncatedBody`.
        public var headers: Headers
        /// The delay before the head.
        public var delay: Duration
        /// The steps that deliver the body, in order. HEAD requests and the statuses 204 and 304 get no body.
        public var steps: [Step]
        /// The trailer fields.
        public var trailers: Headers
        /// The script of the server of a WebSocket; nil for a response.
        var script: StubTransport.WebSocket.Script?
        /// The version of HTTP and the reason phrase of a recorded response.
        var version = HTTPVersion.http11
        var reasonPhrase = ""
        /// The measurements of a response that came from a real server; nil for those of the stub.
        var metrics: TaskMetrics?

        /// Creates an answer of any shape.
        public init(
            status: Int = 200, headers: Headers = [:], delay: Duration = .zero, steps: [Step] = [],
            trailers: Headers = [:]
        ) {
            self.status = status
            self.headers = headers
            self.delay = delay
            self.steps = steps
            self.trailers = trailers
        }

        /// Returns an answer with these bytes, with Content-Length and, unless it is nil, Content-Type.
        public static func data(
            _ body: Data, status: Int = 200, contentType: String? = "application/octet-stream", headers: Headers = [:]
        ) -> Answer {
            var fields: Headers = ["Content-Length": String(body.count)]
            if let contentType { fields["Content-Type"] = contentType }
            return Answer(
                status: status, headers: fields.overriding(with: headers), steps: body.isEmpty ? [] : [.chunk(body)])
        }

        /// Returns an answer with UTF-8 text.
        public static func text(
            _ body: String, status: Int = 200, contentType: String = "text/plain; charset=utf-8", headers: Headers = [:]
        ) -> Answer {
            data(Data(body.utf8), status: status, contentType: contentType, headers: headers)
        }

        /// Returns an answer with a value encoded as JSON.
        ///
        /// - Throws: The error of the encoder.
        public static func json(
            _ value: some Encodable, status: Int = 200, encoder: TernJSONEncoder = TernJSONEncoder(),
            headers: Headers = [:]
        ) throws -> Answer {
            data(try encoder.encode(value), status: status, contentType: "application/json", headers: headers)
        }

        /// Returns an answer without a body.
        public static func status(_ status: Int, headers: Headers = [:]) -> Answer {
            Answer(status: status, headers: headers)
        }

        /// Returns an answer of unknown length that delivers chunks, with a pause before each chunk except the first.
        public static func chunks(
            _ chunks: [Data], interval: Duration = .zero, status: Int = 200, headers: Headers = [:]
        ) -> Answer {
            var steps: [Step] = []
            for chunk in chunks {
                if interval > .zero, !steps.isEmpty { steps.append(.wait(interval)) }
                steps.append(.chunk(chunk))
            }
            return Answer(status: status, headers: headers, steps: steps)
        }

        /// Returns the same answer with an additional delay before the head.
        public func delayed(by delay: Duration) -> Answer {
            var answer = self
            answer.delay += delay
            return answer
        }

        /// Returns the same answer with a failure after its last step.
        public func failing(_ failure: Failure) -> Answer {
            var answer = self
            answer.steps.append(.fail(failure))
            return answer
        }
    }
}

extension StubTransport.Answer: CustomReflectable {
    /// The status and the headers without secrets. Without this mirror, `dump` would show the body.
    public var customMirror: Mirror { Mirror(self, children: ["status": status, "headers": headers]) }
}
