import GRPCCore
import Tern

/// The settings of one call: those of its method, and those of the transport.
struct CallSettings: Sendable {
    var channels: Channels
    var url: String
    /// The full name of the method, for errors.
    var name: String
    /// The fields that the transport writes.
    var fields: Headers
    /// The coding of the messages of the request.
    var encoding = MessageEncoding.identity
    var acceptedEncodings: Set<MessageEncoding> = [.identity]
    /// The most bytes of a message, before compression.
    var requestLimit = Int.max
    var responseLimit = 4 << 20
    /// Whether the call waits while no connection can be made.
    var waitsForReady = false
    /// Whether the method sends one message.
    var sendsOneMessage = false
    var reconnectDelay: ClosedRange<Duration> = .milliseconds(250) ... .seconds(30)

    /// Sends the request of the call.
    func stream(
        _ fields: Headers, _ body: Request.Body, over session: Session
    ) throws(RPCError) -> ResponseStream {
        do {
            var request = try Request(.post, url, headers: fields, body: body)
            request.sendsDefaultFields = false
            request.label = name
            return session.stream(request)
        } catch {
            throw RPCError(error)
        }
    }
}
