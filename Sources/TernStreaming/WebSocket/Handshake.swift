package import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An extension in the field Sec-WebSocket-Extensions (RFC 6455 §9.1).
package struct HandshakeExtension: Sendable, Hashable {
    package struct Parameter: Sendable, Hashable {
        package var name: String
        /// The value without quotation marks; nil for a name alone.
        package var value: String?

        package init(name: String, value: String? = nil) {
            self.name = name
            self.value = value
        }
    }

    package var name: String
    package var parameters: [Parameter]

    /// Reads the elements of a field's value; nil if it is malformed.
    package static func list(_ value: String) -> [HandshakeExtension]? {
        var extensions: [HandshakeExtension] = []
        for element in split(value, at: ",") {
            if element.isEmpty { continue }
            let parts = split(element, at: ";")
            guard let name = parts.first, isToken(name) else { return nil }
            var parameters: [Parameter] = []
            for part in parts.dropFirst() {
                let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                    trimmed($0)
                }
                guard isToken(pair[0]) else { return nil }
                guard pair.count == 2 else {
                    parameters.append(Parameter(name: pair[0].lowercased()))
                    continue
                }
                var value = pair[1]
                if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
                    value = String(value.dropFirst().dropLast())
                }
                // After the removal of quotation marks, a value is a token (RFC 6455 §9.1).
                guard isToken(value) else { return nil }
                parameters.append(Parameter(name: pair[0].lowercased(), value: value))
            }
            extensions.append(HandshakeExtension(name: name.lowercased(), parameters: parameters))
        }
        return extensions
    }

    private static func split(_ text: String, at separator: Character) -> [String] {
        text.split(separator: separator, omittingEmptySubsequences: false).map { trimmed($0) }
    }

    private static func trimmed(_ text: Substring) -> String {
        var bytes = text.utf8[...]
        while let byte = bytes.first, byte == 0x20 || byte == 0x09 { bytes.removeFirst() }
        while let byte = bytes.last, byte == 0x20 || byte == 0x09 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isToken(_ text: String) -> Bool { Request.Method(text).isValidToken }
}

/// The opening handshake of a client (RFC 6455 §4.1, §4.2.2). Pure.
package struct Handshake: Sendable {
    /// The result of a handshake.
    package struct Agreement: Sendable, Hashable {
        package var subprotocol: String?
        package var compression: PerMessageDeflate?

        package init() {}
    }

    package let protocols: [String]
    package let compression: WebSocket.Compression?

    package init(protocols: [String], compression: WebSocket.Compression?) {
        self.protocols = protocols
        self.compression = compression
    }

    /// The fields that the handshake writes itself, with the parameter to use in their place.
    private static let ownFields = [
        ("Sec-WebSocket-Protocol", "pass subprotocols as `protocols`"),
        ("Sec-WebSocket-Extensions", "ask for compression with `WebSocket.Options.compression`"),
        ("Sec-WebSocket-Key", "remove it"), ("Sec-WebSocket-Version", "remove it"),
        ("Sec-WebSocket-Accept", "remove it"),
    ]

    /// Returns the reason why the handshake cannot be sent with these headers of the request; nil if it can.
    package func problem(with headers: Headers = [:]) -> String? {
        for name in protocols where !Request.Method(name).isValidToken {
            return "a subprotocol is not a token (RFC 6455 §4.1)"
        }
        guard Set(protocols).count == protocols.count else { return "a subprotocol is repeated (RFC 6455 §4.1)" }
        for (name, advice) in Self.ownFields where headers.contains(name) {
            return "the header \(name) is written by the socket: \(advice)"
        }
        return nil
    }

    /// Returns the fields of one attempt, with a key of its own.
    package func fields() -> Headers {
        var generator = SystemRandomNumberGenerator()
        let key = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return fields(key: Data(key).base64EncodedString())
    }

    package func fields(key: String) -> Headers {
        var fields: Headers = ["Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"]
        if !protocols.isEmpty { fields["Sec-WebSocket-Protocol"] = protocols.joined(separator: ", ") }
        if let compression { fields["Sec-WebSocket-Extensions"] = PerMessageDeflate.offer(compression) }
        return fields
    }

    /// Checks the fields of a 101 response (RFC 6455 §4.1), or of a successful one over HTTP/2, where no key is
    /// exchanged (RFC 8441 §5). The engine has checked the status.
    ///
    /// - Throws: A failure if the server does not agree to the handshake.
    package func agreement(
        with fields: Headers, for sent: Headers, isOverHTTP2: Bool = false
    ) throws(ProtocolFailure) -> Agreement {
        if !isOverHTTP2 { try checkSwitch(fields, sent) }
        var agreement = Agreement()
        let chosen = fields.values(for: "Sec-WebSocket-Protocol")
        if let name = chosen.first {
            guard chosen.count == 1, protocols.contains(where: { $0.hasSameBytes(as: name) }) else {
                throw Self.failure("the server chose a subprotocol that was not offered (RFC 6455 §4.1)")
            }
            agreement.subprotocol = name
        }
        agreement.compression = try compression(in: fields.values(for: "Sec-WebSocket-Extensions"))
        return agreement
    }

    private func checkSwitch(_ fields: Headers, _ sent: Headers) throws(ProtocolFailure) {
        guard let key = sent["Sec-WebSocket-Key"],
            fields.hasOnly(SHA1.webSocketAccept(for: key), for: "Sec-WebSocket-Accept")
        else {
            throw Self.failure("Sec-WebSocket-Accept does not fit the key of the request (RFC 6455 §4.1)")
        }
        let options = fields.values(for: "Connection").joined(separator: ",").split(separator: ",")
        let hasOption = options.contains { option in
            String(option.filter { $0 != " " && $0 != "\t" }).lowercased() == "upgrade"
        }
        guard hasOption else { throw Self.failure("Connection does not name upgrade (RFC 6455 §4.1)") }
        let upgrades = fields.values(for: "Upgrade")
        guard upgrades.count == 1, upgrades[0].lowercased() == "websocket" else {
            throw Self.failure("Upgrade is not websocket (RFC 6455 §4.1)")
        }
    }

    private func compression(in values: [String]) throws(ProtocolFailure) -> PerMessageDeflate? {
        guard let extensions = HandshakeExtension.list(values.joined(separator: ",")) else {
            throw Self.failure("Sec-WebSocket-Extensions is malformed (RFC 6455 §9.1)")
        }
        guard let first = extensions.first else { return nil }
        guard extensions.count == 1, first.name == PerMessageDeflate.name, let compression else {
            throw Self.failure("the server uses an extension that was not offered (RFC 6455 §9.1)")
        }
        return try PerMessageDeflate(first.parameters, to: compression)
    }

    private static func failure(_ reason: String) -> ProtocolFailure {
        ProtocolFailure(.mandatoryExtension, "the handshake failed: \(reason)")
    }
}
