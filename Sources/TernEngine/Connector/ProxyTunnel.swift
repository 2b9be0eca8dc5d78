/// Asks an HTTP proxy for a tunnel to a server (CONNECT, RFC 9110 §9.3.6).
///
/// Basic credentials (RFC 7617) are sent at once. After a 407 response the caller's closure answers the challenges, for
/// example with Digest, at most twice. The body of such a response is read and dropped if its length is stated and at
/// most 64 KiB; otherwise the connection is replaced.
package struct ProxyTunnel: Sendable {
    /// Returns the value of a Proxy-Authorization field that answers challenges; nil if none can be answered.
    ///
    /// - Parameters:
    ///   - challenges: The values of the Proxy-Authenticate fields of the last response, each of which can hold several
    ///     challenges (RFC 9110 §11.6.1).
    ///   - attempt: The number of answers before this one: 0 or 1.
    package typealias Authorize = @Sendable (_ challenges: [[UInt8]], _ attempt: Int) -> String?

    /// The maximum number of answers to challenges. The second one is for a nonce that expires (RFC 7616 §3.3).
    package static let answerLimit = 2
    /// The maximum number of bytes of a response's body that are read in order to keep the connection.
    package static let bodyLimit = 65_536

    private enum State {
        case idle
        case head(ProxyReplyParser)
        /// The body of a 407 response, of which so many bytes are missing.
        case body(Int)
        case ended(ProxyAction)
    }

    private let proxy: ProxyAddress
    private let authorize: Authorize
    /// The request target: host and port (RFC 9112 §3.2.3).
    private let target: String
    /// The value of the Proxy-Authorization field for the next request.
    private var authorization: String?
    private var answers = 0
    /// Whether the connection has carried a response. The proxy can close such a connection at any time (RFC 9112
    /// §9.5), and the request is sent once more.
    private var isKept = false
    private var state = State.idle

    /// - Parameter host: The server in its canonical form: a name or an address, an IPv6 address without brackets.
    package init(_ proxy: ProxyAddress, host: String, port: UInt16, authorize: @escaping Authorize) {
        self.proxy = proxy
        self.authorize = authorize
        target = ProxyAddress.authority(host, port: port)
        authorization = Self.basic(proxy)
    }

    /// Begins on a new connection to the proxy.
    package mutating func start() -> ProxyAction {
        if case .ended(let action) = state, action != .reconnect { return action }
        guard !proxy.hasControlCharacters else {
            let reason = "the user name or the password for the proxy contains a control character"
            return end(with: .failed(EngineError(.invalidRequest, reason)))
        }
        // Canonical hosts have none of these. Others must not add a field or a request.
        guard target.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !"/?#@\\\"<>".utf8.contains($0) }) else {
            return end(with: .failed(EngineError(.invalidRequest, "the host has a character that no host can have")))
        }
        isKept = false
        return request()
    }

    /// Takes all bytes that the proxy has sent since the last call.
    package mutating func receive(_ input: UnsafeRawBufferPointer) -> ProxyAction {
        if unsafe input.isEmpty { return currentAction }
        switch state {
        case .idle: return fail("it sent bytes before the request")
        case .ended(.established): return fail(Self.leftover)
        case .ended(let action): return action
        case .body(let missing):
            guard input.count <= missing else { return end(with: .reconnect) }
            return drop(missing - input.count)
        case .head(var parser):
            var index = 0
            let event = unsafe parser.next(input, from: &index)
            state = .head(parser)
            switch event {
            case .needsInput: return .needsInput
            case .malformed(let reason): return fail(reason)
            case .reply(let reply): return take(reply, rest: input.count - index)
            }
        }
    }

    /// Takes the end of the connection to the proxy.
    package mutating func end() -> ProxyAction {
        switch state {
        case .body: return end(with: .reconnect)
        case .head(let parser):
            if isKept, !parser.hasBegun { return end(with: .reconnect) }
            let when = parser.hasBegun ? "within its answer" : "without an answer"
            return fail("it closed the connection \(when)")
        case .ended(.failed(let error)): return .failed(error)
        case .ended(.reconnect): return .reconnect
        case .idle, .ended: return fail("it closed the connection")
        }
    }

    private static let leftover = "it sent bytes before the client used the tunnel"

    private var currentAction: ProxyAction {
        if case .ended(let action) = state { return action }
        return .needsInput
    }

    private mutating func request() -> ProxyAction {
        state = .head(ProxyReplyParser())
        var text = "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n"
        if let authorization { text += "Proxy-Authorization: \(authorization)\r\n" }
        return .send(Array((text + "\r\n").utf8))
    }

    private mutating func take(_ reply: ProxyReply, rest: Int) -> ProxyAction {
        if 200...299 ~= reply.status {
            return rest == 0 ? end(with: .established) : fail(Self.leftover)
        }
        let refusal = "it answered with status \(reply.status)"
        guard reply.status == 407 else { return fail(refusal) }
        guard !reply.challenges.isEmpty else { return fail("\(refusal) without a challenge (RFC 9110 §15.5.8)") }
        guard answers < Self.answerLimit, let answer = authorize(reply.challenges, answers), answer != authorization
        else { return fail(refusal) }
        answers += 1
        guard answer.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return fail("the answer to its challenge contains a control character")
        }
        authorization = answer
        guard reply.isPersistent, !reply.hasTransferEncoding, let length = reply.contentLength,
            length <= Self.bodyLimit, rest <= length
        else { return end(with: .reconnect) }
        return drop(length - rest)
    }

    /// Waits for the rest of a body, or sends the next request after it.
    private mutating func drop(_ missing: Int) -> ProxyAction {
        if missing > 0 {
            state = .body(missing)
            return .needsInput
        }
        isKept = true
        return request()
    }

    private mutating func fail(_ reason: String) -> ProxyAction {
        end(with: .failed(proxy.failure(to: target, reason)))
    }

    private mutating func end(with action: ProxyAction) -> ProxyAction {
        state = .ended(action)
        return action
    }

    /// Returns the Basic credentials of a proxy. A user name with a colon has no Basic form (RFC 7617 §2).
    package static func basic(_ proxy: ProxyAddress) -> String? {
        guard proxy.hasCredentials, proxy.user?.utf8.contains(UInt8(ascii: ":")) != true else { return nil }
        return "Basic " + base64(Array("\(proxy.user ?? ""):\(proxy.password ?? "")".utf8))
    }

    /// Encodes bytes in base64 (RFC 4648 §4).
    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let value = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for index in 0..<4 {
                let isPadding = index > group.count
                result.append(isPadding ? UInt8(ascii: "=") : alphabet[value >> (18 - 6 * index) & 0x3F])
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension ProxyTunnel: CustomStringConvertible, CustomReflectable {
    /// The proxy and the server, without credentials.
    package var description: String { "tunnel to \(target) through the \(proxy)" }
    /// An empty mirror. Without it, `dump` would show the credentials.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
