import Tern

extension WebSocket {
    /// The compression of messages with permessage-deflate (RFC 7692): the parameters that the client offers.
    ///
    /// Compression costs about 300 KiB of memory for each connection, and a secret that is compressed together with
    /// text of an attacker can be found by the sizes of messages (CRIME, RFC 7692 §8).
    public struct Compression: Sendable, Hashable {
        /// A Boolean value that indicates whether the server is asked to compress each message on its own
        /// (`server_no_context_takeover`). False by default.
        public var serverNoContextTakeover: Bool
        /// A Boolean value that indicates whether the client compresses each message on its own
        /// (`client_no_context_takeover`). False by default.
        public var clientNoContextTakeover: Bool
        /// The base-2 logarithm of the server's window, from 8 to 15 (`server_max_window_bits`); nil, the default,
        /// leaves it to the server.
        public var serverMaxWindowBits: Int? {
            didSet { serverMaxWindowBits = serverMaxWindowBits.map { min(max($0, 8), 15) } }
        }
        /// The base-2 logarithm of the client's window, from 9 to 15 (`client_max_window_bits`). 15 by default. The
        /// server can ask for a smaller one.
        public var clientMaxWindowBits: Int {
            didSet { clientMaxWindowBits = min(max(clientMaxWindowBits, 9), 15) }
        }
        /// The number of bytes of the shortest message that is compressed. 64 by default.
        public var minimumSize: Int
        /// The level of zlib, from 1 (fastest) to 9 (smallest). 6 by default.
        public var level: Int {
            didSet { level = min(max(level, 1), 9) }
        }

        /// Creates parameters. Values outside of their ranges count as the nearest ones inside.
        public init(
            serverNoContextTakeover: Bool = false, clientNoContextTakeover: Bool = false,
            serverMaxWindowBits: Int? = nil,
            clientMaxWindowBits: Int = 15, minimumSize: Int = 64, level: Int = 6
        ) {
            self.serverNoContextTakeover = serverNoContextTakeover
            self.clientNoContextTakeover = clientNoContextTakeover
            self.serverMaxWindowBits = serverMaxWindowBits.map { min(max($0, 8), 15) }
            self.clientMaxWindowBits = min(max(clientMaxWindowBits, 9), 15)
            self.minimumSize = minimumSize
            self.level = min(max(level, 1), 9)
        }
    }
}

/// The parameters of permessage-deflate that both sides use. Pure.
package struct PerMessageDeflate: Sendable, Hashable {
    package static let name = "permessage-deflate"

    package var serverNoContextTakeover = false
    package var clientNoContextTakeover = false
    package var serverMaxWindowBits = 15
    package var clientMaxWindowBits = 15

    package init() {}

    /// Returns the offer for the field Sec-WebSocket-Extensions (RFC 7692 §7.1).
    package static func offer(_ compression: WebSocket.Compression) -> String {
        var offer = name
        if compression.serverNoContextTakeover { offer += "; server_no_context_takeover" }
        if compression.clientNoContextTakeover { offer += "; client_no_context_takeover" }
        if let bits = compression.serverMaxWindowBits { offer += "; server_max_window_bits=\(bits)" }
        offer += "; client_max_window_bits"
        if compression.clientMaxWindowBits < 15 { offer += "=\(compression.clientMaxWindowBits)" }
        return offer
    }

    /// Reads the response of the server to an offer (RFC 7692 §7.1).
    ///
    /// - Throws: A failure for a parameter that is unknown, repeated or not an answer to the offer.
    package init(
        _ parameters: [HandshakeExtension.Parameter], to offer: WebSocket.Compression
    ) throws(ProtocolFailure) {
        var seen: Set<String> = []
        clientMaxWindowBits = offer.clientMaxWindowBits
        for parameter in parameters {
            guard seen.insert(parameter.name).inserted else {
                throw Self.failure("the parameter \(parameter.name.printable(limit: 80)) is repeated")
            }
            switch (parameter.name, parameter.value) {
            case ("server_no_context_takeover", nil): serverNoContextTakeover = true
            case ("client_no_context_takeover", nil): clientNoContextTakeover = true
            case ("server_max_window_bits", let value?):
                serverMaxWindowBits = try Self.bits(value, upTo: offer.serverMaxWindowBits ?? 15)
            case ("client_max_window_bits", let value?):
                clientMaxWindowBits = try Self.bits(value, upTo: offer.clientMaxWindowBits)
            default: throw Self.failure("the parameter \(parameter.name.printable(limit: 80)) is not valid")
            }
        }
        if offer.clientNoContextTakeover { clientNoContextTakeover = true }
        guard serverNoContextTakeover || !offer.serverNoContextTakeover else {
            throw Self.failure("server_no_context_takeover was asked for and not accepted")
        }
        guard offer.serverMaxWindowBits == nil || seen.contains("server_max_window_bits") else {
            throw Self.failure("server_max_window_bits was asked for and not accepted")
        }
    }

    private static func bits(_ value: String, upTo limit: Int) throws(ProtocolFailure) -> Int {
        guard let bits = Int(value), 8...15 ~= bits, value == "\(bits)", bits <= limit else {
            throw failure("the window is not one that was offered")
        }
        return bits
    }

    private static func failure(_ reason: String) -> ProtocolFailure {
        ProtocolFailure(
            .mandatoryExtension, "the response to permessage-deflate is not valid: \(reason) (RFC 7692 §7.1)")
    }
}
