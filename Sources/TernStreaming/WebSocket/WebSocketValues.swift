public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension WebSocket {
    /// A message of a WebSocket.
    public enum Message: Sendable, Hashable {
        /// A text.
        case text(String)
        /// Bytes.
        case binary(Data)

        /// The number of bytes of the message.
        public var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let data): data.count
            }
        }
    }

    /// The reason for which a WebSocket is closed (RFC 6455 §7.4).
    public struct CloseCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The number of the code.
        public let rawValue: UInt16

        /// Creates a code from its number.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The purpose of the connection is fulfilled (1000).
        public static let normalClosure = CloseCode(rawValue: 1000)
        /// The endpoint goes away, such as a server that shuts down (1001).
        public static let goingAway = CloseCode(rawValue: 1001)
        /// The peer violated the protocol (1002).
        public static let protocolError = CloseCode(rawValue: 1002)
        /// The peer sent a type of message that is not accepted (1003).
        public static let unsupportedData = CloseCode(rawValue: 1003)
        /// The Close frame had no code (1005). Never sent.
        public static let noStatus = CloseCode(rawValue: 1005)
        /// The connection ended without a Close frame (1006). Never sent.
        public static let abnormalClosure = CloseCode(rawValue: 1006)
        /// A message does not fit its type, such as a text that is not UTF-8 (1007).
        public static let invalidPayload = CloseCode(rawValue: 1007)
        /// A message violates the policy of the endpoint (1008).
        public static let policyViolation = CloseCode(rawValue: 1008)
        /// A message is too large (1009).
        public static let messageTooBig = CloseCode(rawValue: 1009)
        /// The server did not agree to an extension that the client needs (1010).
        public static let mandatoryExtension = CloseCode(rawValue: 1010)
        /// The server met an unexpected condition (1011).
        public static let internalError = CloseCode(rawValue: 1011)
        /// The service restarts (1012).
        public static let serviceRestart = CloseCode(rawValue: 1012)
        /// The service is overloaded (1013).
        public static let tryAgainLater = CloseCode(rawValue: 1013)

        /// A Boolean value that indicates whether a Close frame can have the code: 1000–1003, 1007–1014 and 3000–4999
        /// (RFC 6455 §7.4, and the registry of IANA).
        public var isSendable: Bool {
            switch rawValue {
            case 1000...1003, 1007...1014, 3000...4999: true
            default: false
            }
        }

        /// The number of the code.
        public var description: String { "\(rawValue)" }
    }

    /// The end of a WebSocket.
    public struct Closure: Sendable, Hashable {
        /// The code of the peer's Close frame; ``CloseCode/noStatus`` if it had none, and ``CloseCode/abnormalClosure``
        /// if the peer sent no Close frame.
        public var code: CloseCode
        /// The reason in the peer's Close frame; empty for none.
        public var reason: String
        /// A Boolean value that indicates whether the server's Close frame arrived, and this side's has left: the
        /// system has taken it. A server that ends the connection with its frame does not wait for the answer.
        public var isClean: Bool

        /// Creates a value.
        public init(code: CloseCode, reason: String = "", isClean: Bool) {
            self.code = code
            self.reason = reason
            self.isClean = isClean
        }
    }

    /// The state of a WebSocket.
    public enum State: Sendable, Hashable {
        /// Messages can be sent and received.
        case open
        /// One side has sent a Close frame, or the connection is failed. Nothing more can be sent.
        case closing
        /// The connection has ended.
        case closed(Closure)
    }

    /// The measurements of a WebSocket so far.
    public struct Metrics: Sendable, Hashable {
        /// The number of messages that were received.
        public package(set) var receivedMessages = 0
        /// The number of bytes of these messages, after decompression.
        public package(set) var receivedMessageBytes: Int64 = 0
        /// The number of messages that were handed over to be sent, without those that were withdrawn or dropped.
        public package(set) var sentMessages = 0
        /// The number of bytes of these messages, before compression.
        public package(set) var sentMessageBytes: Int64 = 0
        /// The number of bytes that were received after the handshake.
        public package(set) var receivedBytes: Int64 = 0
        /// The number of bytes that were sent after the handshake.
        public package(set) var sentBytes: Int64 = 0
        /// The number of Pong frames that were received, asked for or not.
        public package(set) var receivedPongs = 0
        /// The time between the last ``WebSocket/ping()`` and its answer; nil before.
        public package(set) var roundTrip: Duration?

        package init() {}
    }

    /// The settings of a WebSocket.
    public struct Options: Sendable, Hashable {
        /// The maximum number of bytes of a frame as it was sent, which can be compressed. 16 MiB by default. A longer
        /// one fails the connection with the code 1009.
        public var maximumFrameSize = 16 << 20
        /// The maximum number of bytes of a message after decompression. 16 MiB by default. A longer one fails the
        /// connection with the code 1009.
        public var maximumMessageSize = 16 << 20
        /// The number of bytes of unread messages at which no more is read from the socket. 1 MiB by default. 4,096
        /// unread messages have the same effect.
        public var receiveBufferSize = 1 << 20
        /// The number of bytes above which a message is sent in fragments of this size, so that control frames can be
        /// sent in between. 1 MiB by default, at least 1.
        public var fragmentSize = 1 << 20
        /// The compression that is offered to the server; nil, the default, for none.
        public var compression: Compression?
        /// The time without a byte of the server after which a Ping is sent. 30 seconds by default; nil and zero send
        /// none, and a dead peer is then found only by a failing write.
        public var pingInterval: Duration? = .seconds(30)
        /// The time for which the server may be silent after a Ping. 20 seconds by default. Then the connection ends
        /// with an error of kind `.idleTimedOut`. While messages are being sent, the bytes that the server takes count
        /// like bytes of it.
        public var pingTimeout: Duration = .seconds(20)
        /// The time for which the closing waits for the server's Close frame and for the end of the connection. 10
        /// seconds by default. Then the connection is cut.
        public var closeTimeout: Duration = .seconds(10)

        /// Creates the defaults.
        public init() {}
    }
}

extension NetworkError.Kind {
    /// A WebSocket is closed or closing, and can send nothing more.
    public static let webSocketClosed = NetworkError.Kind(rawValue: "web-socket-closed")
}
