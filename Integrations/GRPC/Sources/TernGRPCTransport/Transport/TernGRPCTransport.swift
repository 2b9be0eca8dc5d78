public import GRPCCore
import Synchronization
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Carries the calls of a `GRPCClient` over HTTP/2, by a `Session` of Tern.
///
/// ```swift
/// let transport = try TernGRPCTransport("https://api.example.com")
/// try await withGRPCClient(transport: transport) { client in
///     let greeter = Greeter.Client(wrapping: client)
///     let reply = try await greeter.sayHello(.with { $0.name = "Ada" })
///     print(reply.message)
/// }
/// ```
///
/// All calls share one connection while the server allows more streams on it; calls above that number wait. A connection
/// that the server ends (GOAWAY) finishes its calls, and the next call opens another. A call that the server states not
/// to have processed is made again, up to five times, unless more than 256 KiB of its messages were sent. Every other
/// failure is an `RPCError`, with the `NetworkError` as its cause.
///
/// For Linux. URLSession, on other systems, does not report trailers, in which gRPC sends the status of each call: the
/// initializer throws there.
public final class TernGRPCTransport: ClientTransport {
    private let configuration: Configuration
    private let methods: MethodConfigTable
    private let url: String
    private let peer: String
    private let fields: Headers
    private let acceptedEncodings: Set<MessageEncoding>
    private let channels: Channels
    private let shared = Mutex(Shared())

    fileprivate struct Shared {
        var state = TransportState<Call>()
        /// The caller of `connect()`.
        var waiter: CheckedContinuation<Void, Never>?
    }

    /// The throttle of retries that the service config sets; nil without one.
    public let retryThrottle: RetryThrottle?

    /// Creates a transport to a server. No connection is opened before ``connect()`` or the first call.
    ///
    /// - Parameters:
    ///   - url: The scheme, the host and, unless it is 443 or 80, the port: `https` for TLS, `http` for HTTP/2 in plain
    ///     text (prior knowledge). With a path, it is put before that of each method.
    ///   - configuration: The settings.
    /// - Throws: `RPCError` with the code `.invalidArgument` for another URL or settings that make each call fail, and
    ///   `.unimplemented` on systems other than Linux.
    public init(_ url: String, configuration: Configuration = Configuration()) throws(RPCError) {
        #if !os(Linux)
        throw RPCError(
            code: .unimplemented,
            message:
                "gRPC needs the trailers of responses, which URLSession does not report: TernGRPCTransport is for Linux"
        )
        #else
        let server = try Self.server(of: url)
        self.url = server.url
        peer = server.peer(unixSocketPath: configuration.session.unixSocketPath)
        self.configuration = configuration
        methods = MethodConfigTable(configuration.serviceConfig)
        retryThrottle = configuration.serviceConfig.retryThrottling.map { RetryThrottle(policy: $0) }
        var accepted: Set<MessageEncoding> = [.identity]
        for algorithm in configuration.acceptedCompressions.elements { accepted.insert(MessageEncoding(algorithm)) }
        acceptedEncodings = accepted
        var fields: Headers = ["te": "trailers", "content-type": "application/grpc"]
        fields.append(name: "user-agent", value: configuration.userAgent)
        // Without the field, servers compress as they like.
        let names = MessageEncoding.allCases.filter { accepted.contains($0) }.map(\.rawValue)
        fields.append(name: "grpc-accept-encoding", value: names.joined(separator: ","))
        self.fields = fields
        let takesTurns = configuration.serviceConfig.loadBalancingConfig.first?.roundRobin != nil
        let addresses = configuration.addresses
        let places = takesTurns && addresses.count > 1 ? addresses.map { [$0] } : [addresses]
        var sessions: [Session] = []
        for place in places {
            let settings = configuration.session(for: server.host, at: place)
            do {
                try settings.check()
            } catch {
                throw RPCError(code: .invalidArgument, message: error.reason, cause: error)
            }
            sessions.append(Session(configuration: settings))
        }
        channels = Channels(sessions, delays: configuration.reconnectDelay)
        #endif
    }

    /// Opens the first connection, and returns after ``beginGracefulShutdown()``, when the last call has ended and the
    /// connections are closed. Calls can begin before.
    ///
    /// A connection that cannot be made is not an error here, but of the calls. Cancelling the Swift task ends all
    /// calls with `.unavailable`, and their streams with RST_STREAM(CANCEL).
    ///
    /// - Throws: `RPCError` with the code `.failedPrecondition` if it was called before.
    public func connect() async throws {
        let isDone: Bool
        do {
            isDone = try shared.withLock { shared throws(TransportState<Call>.Refusal) in try shared.state.connect() }
        } catch {
            throw RPCError(code: .failedPrecondition, message: "the transport was connected before")
        }
        if !isDone {
            channels.preconnect(to: url)
            await withTaskCancellationHandler {
                await withCheckedContinuation { waiter in
                    let isReady = shared.withLock { shared in
                        if shared.isDone { return true }
                        shared.waiter = waiter
                        return false
                    }
                    if isReady { waiter.resume() }
                }
            } onCancel: {
                cancelCalls()
            }
        }
        await channels.close()
    }

    /// Lets no call begin any more. Those that run go on; ``connect()`` returns after the last one.
    public func beginGracefulShutdown() {
        let waiter = shared.withLock { shared in shared.takeWaiter { $0.close() } }
        waiter?.resume()
    }

    /// Ends all calls, whose ends let `connect()` return.
    private func cancelCalls() {
        let calls = shared.withLock { Array($0.state.calls.values) }
        beginGracefulShutdown()
        for call in calls { call.end(RPCError(code: .unavailable, message: "the transport was cancelled")) }
    }

    /// Makes a call, and gives its stream to the closure. The request is sent when the closure has written the metadata
    /// or, for a method whose descriptor says that it sends one message, when the messages have been finished.
    ///
    /// A call that has not ended when the closure returns is cancelled, which resets its stream with CANCEL. So is a call
    /// whose reader is in a Swift task that is cancelled.
    ///
    /// - Throws: The error of the closure; `RPCError` with the code `.failedPrecondition` after
    ///   ``beginGracefulShutdown()``.
    public func withStream<T: Sendable>(
        descriptor: MethodDescriptor, options: CallOptions,
        _ closure: @concurrent (_ stream: RPCStream<Inbound, Outbound>, _ context: ClientContext) async throws -> T
    ) async throws -> T {
        let call = Call(settings(of: descriptor, options))
        let number: UInt64
        do {
            number = try shared.withLock { shared throws(TransportState<Call>.Refusal) in
                try shared.state.begin(call)
            }
        } catch {
            throw RPCError(
                code: .failedPrecondition, message: "the transport is shutting down: \(descriptor) was not called")
        }
        defer {
            call.end(RPCError(code: .cancelled, message: "the call was left before its end"))
            let waiter = shared.withLock { shared in shared.takeWaiter { $0.end(number) } }
            waiter?.resume()
        }
        let stream = RPCStream(
            descriptor: descriptor, inbound: RPCAsyncSequence(wrapping: ResponseParts(call: call)),
            outbound: RPCWriter.Closable(wrapping: RequestWriter(call: call)))
        let context = ClientContext(descriptor: descriptor, remotePeer: peer, localPeer: "local")
        return try await closure(stream, context)
    }

    /// Returns the configuration of a method: that of its name, of its service, or of all; nil without one.
    public func config(forMethod descriptor: MethodDescriptor) -> MethodConfig? { methods[descriptor] }

    /// The number of open connections.
    var openConnectionCount: Int { get async { await channels.openConnectionCount } }

    private func settings(of descriptor: MethodDescriptor, _ options: CallOptions) -> CallSettings {
        let name = descriptor.fullyQualifiedMethod
        var call = CallSettings(channels: channels, url: "\(url)/\(name)", name: name, fields: fields)
        call.encoding = MessageEncoding(options.compression ?? configuration.compression)
        if call.encoding != .identity { call.fields.append(name: "grpc-encoding", value: call.encoding.rawValue) }
        call.acceptedEncodings = acceptedEncodings
        call.requestLimit = options.maxRequestMessageBytes ?? configuration.maximumRequestMessageSize
        call.responseLimit = options.maxResponseMessageBytes ?? configuration.maximumResponseMessageSize
        call.waitsForReady = options.waitForReady ?? false
        call.sendsOneMessage = descriptor.type.map { !$0.isRequestStreaming } ?? false
        call.reconnectDelay = configuration.reconnectDelay
        return call
    }
}

extension TernGRPCTransport.Shared {
    /// Whether `connect()` has nothing to wait for.
    var isDone: Bool { state.isClosed }

    /// Changes the state. Returns the caller of `connect()` if it can return.
    mutating func takeWaiter(
        _ change: (inout TransportState<Call>) -> Bool
    ) -> CheckedContinuation<Void, Never>? {
        guard change(&state) else { return nil }
        defer { waiter = nil }
        return waiter
    }
}
