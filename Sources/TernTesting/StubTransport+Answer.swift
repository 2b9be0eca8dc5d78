public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StubTransport {
    /// A response, and how it comes.
    ///
    /// ```swift
    /// let slow = StubTransport.Answer.chunks([Data("one".utf8), Data("two".utf8)], interval: .seconds(1))
    /// let late = StubTransport.Answer.text("late").delayed(by: .seconds(30))
    /// let torn = StubTransport.Answer.text("half").failing(StubTransport.Failure(.connectionLost))
    /// ```
    public struct Answer: Sendable {
        /// What happens to the body, in order.
        public enum Step: Sendable {
            /// These bytes come.
            case chunk(Data)
            /// Nothing comes for so long, on the stub's clock.
            case wait(Duration)
            /// The attempt fails here.
            case fail(Failure)
        }

        /// The status code.
        public var status: Int
        /// The header fields, exactly as given: a Content-Length makes the total known, and a body that is shorter fails
        /// with `.truncatedBody`.
        public var headers: Headers
        /// The time before the head comes.
        public var delay: Duration
        /// The body. HEAD requests, 204 and 304 get none of it.
        public var steps: [Step]
        /// The fields after the body.
        public var trailers: Headers

        /// An answer of any shape.
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

        /// A body of these bytes, with Content-Length and, unless it is nil, Content-Type.
        public static func data(
            _ body: Data, status: Int = 200, contentType: String? = "application/octet-stream", headers: Headers = [:]
        ) -> Answer {
            var fields: Headers = ["Content-Length": String(body.count)]
            if let contentType { fields["Content-Type"] = contentType }
            return Answer(
                status: status, headers: fields.overriding(with: headers), steps: body.isEmpty ? [] : [.chunk(body)])
        }

        /// A body of text in UTF-8.
        public static func text(
            _ body: String, status: Int = 200, contentType: String = "text/plain; charset=utf-8", headers: Headers = [:]
        ) -> Answer {
            data(Data(body.utf8), status: status, contentType: contentType, headers: headers)
        }

        /// A value as JSON.
        /// - Throws: what the encoder throws.
        public static func json(
            _ value: some Encodable, status: Int = 200, encoder: JSONEncoder = JSONEncoder(), headers: Headers = [:]
        ) throws -> Answer {
            data(try encoder.encode(value), status: status, contentType: "application/json", headers: headers)
        }

        /// A status without a body.
        public static func status(_ status: Int, headers: Headers = [:]) -> Answer {
            Answer(status: status, headers: headers)
        }

        /// A body of unknown length that comes in pieces, with a pause before each but the first.
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

        /// The same answer, whose head comes so much later.
        public func delayed(by delay: Duration) -> Answer {
            var answer = self
            answer.delay += delay
            return answer
        }

        /// The same answer, which fails after what it has.
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
