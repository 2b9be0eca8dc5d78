/// A protocol that a request asks the server to switch to (RFC 9110 §7.8).
package final class UpgradeOffer: Sendable {
    /// The name of the protocol in the field `Upgrade`.
    package let name: String
    /// The number of bytes to send at which the sender waits.
    package let pipeCapacity: Int
    /// The maximum number of bytes of a message that is received, for a transport that reads messages itself.
    package let messageLimit: Int
    /// Returns the header fields of one attempt. They replace those of the request, and differ for each attempt if the
    /// protocol requires that.
    package let makeFields: @Sendable () -> Headers

    package init(
        name: String, pipeCapacity: Int, messageLimit: Int = .max, makeFields: @escaping @Sendable () -> Headers
    ) {
        self.name = name
        self.pipeCapacity = pipeCapacity
        self.messageLimit = messageLimit
        self.makeFields = makeFields
    }

    /// Returns the values of Location with the schemes of HTTP in place of those of WebSockets (RFC 6455 §3).
    func locations(_ values: [String]) -> [String] {
        values.map { value in
            let start = value.prefix(6).lowercased()
            if start.hasPrefix("wss://") { return "https" + value.dropFirst(3) }
            if start.hasPrefix("ws://") { return "http" + value.dropFirst(2) }
            return value
        }
    }

    /// Returns the reason why a request cannot ask for the protocol; nil if it can.
    func problem(of request: Request) -> String? {
        guard request.method == .get, request.body.isNone else {
            return "a request for the protocol \(name) is a GET without a body"
        }
        return nil
    }
}
