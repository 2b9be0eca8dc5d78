import GRPCCore
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of the response of a call, for one reader. Reading drives the call: bytes are taken from the connection
/// when the reader asks for the next part and all messages that have arrived were read.
struct ResponseParts: AsyncSequence, Sendable {
    typealias Element = RPCResponsePart<TernGRPCTransport.Bytes>

    let call: Call

    func makeAsyncIterator() -> Iterator { Iterator(call: call) }

    struct Iterator: AsyncIteratorProtocol {
        private enum Phase {
            case start
            case messages(Messages)
            case ended
        }

        /// A response whose head has arrived.
        private struct Messages {
            let stream: ResponseStream
            var chunks: ResponseStream.Chunks.Iterator
            var reader: MessageReader
            let encoding: MessageEncoding
        }

        private let call: Call
        private var phase = Phase.start

        init(call: Call) { self.call = call }

        mutating func next() async throws -> Element? { try await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> Element? {
            do throws(RPCError) {
                switch phase {
                case .start: return try await start()
                case .messages(var messages):
                    // Moved out, so that the reader's bytes have one owner while they change.
                    phase = .ended
                    return try await next(&messages)
                case .ended: return nil
                }
            } catch {
                phase = .ended
                let reason = call.endError ?? error
                call.end(reason)
                throw reason
            }
        }

        private mutating func start() async throws(RPCError) -> Element {
            let (stream, head) = try await call.response()
            switch try ResponseStart(head, accepted: call.acceptedEncodings) {
            case .messages(let metadata, let encoding):
                let reader = MessageReader(limit: call.responseLimit)
                let chunks = stream.chunks.makeAsyncIterator()
                phase = .messages(Messages(stream: stream, chunks: chunks, reader: reader, encoding: encoding))
                return .metadata(metadata)
            case .status(let status, let metadata):
                var chunks = stream.chunks.makeAsyncIterator()
                if try await Self.chunk(from: &chunks) != nil {
                    throw RPCError(code: .internalError, message: "messages follow a head with the status \(status)")
                }
                return end(status, metadata)
            }
        }

        private mutating func next(_ messages: inout Messages) async throws(RPCError) -> Element {
            while true {
                if let message = try Self.message(from: &messages.reader) {
                    let content = try messages.encoding.content(of: message, upTo: call.responseLimit)
                    phase = .messages(messages)
                    return .message(TernGRPCTransport.Bytes(content))
                }
                guard let chunk = try await Self.chunk(from: &messages.chunks) else {
                    return try lastPart(of: messages.stream, isWhole: messages.reader.isAtBoundary)
                }
                messages.reader.append(chunk)
            }
        }

        private static func chunk(
            from chunks: inout ResponseStream.Chunks.Iterator
        ) async throws(RPCError) -> Data? {
            do throws(NetworkError) {
                return try await chunks.next()
            } catch {
                throw RPCError(error)
            }
        }

        private static func message(from reader: inout MessageReader) throws(RPCError) -> MessageReader.Message? {
            do throws(MessageReader.Failure) {
                return try reader.next()
            } catch {
                throw RPCError(error, limit: reader.limit)
            }
        }

        private mutating func lastPart(of stream: ResponseStream, isWhole: Bool) throws(RPCError) -> Element {
            let trailers: Headers
            do throws(NetworkError) {
                trailers = try stream.trailers
            } catch {
                throw RPCError(error)
            }
            guard let status = Status(grpcFields: trailers) else {
                let reason = "the response ended without the trailer grpc-status"
                throw RPCError(code: .unknown, message: reason)
            }
            if !isWhole, status.code == .ok {
                throw RPCError(code: .internalError, message: "the response ended in the middle of a message")
            }
            return end(status, MetadataFields.metadata(of: trailers))
        }

        /// Ends the call with its status. Messages that are still to be sent are dropped, because the server does not
        /// want them.
        private mutating func end(_ status: Status, _ metadata: Metadata) -> Element {
            phase = .ended
            let reason = "the server has ended the call with the status \(status)"
            call.end(RPCError(status: status) ?? RPCError(code: .unknown, message: reason))
            return .status(status, metadata)
        }
    }
}
