import Synchronization

/// The connection that carries an exchange. A class, so that each exchange has one reference to it.
package final class ConnectionInfo: Sendable {
    /// The steps by which a connection was opened.
    package struct Opening: Sendable {
        /// The time in nanoseconds at which the connection's own steps ended; 0 for a step that did not happen.
        package var nameLookupEnd: UInt64 = 0
        package var connectEnd: UInt64 = 0
        package var tlsEnd: UInt64 = 0
        /// The numeric address of the peer; nil for a Unix socket.
        package var remoteAddress: String?
        package var remotePort: UInt16 = 0
        /// The reason why a policy that only reports would have refused the server. Reported with the first exchange.
        package var pinReport: String?

        package init() {}
    }

    package let opening: Opening
    package let version: WireVersion
    /// Whether the connection carried an exchange before.
    package let isReused: Bool
    /// A number that no other connection of the process has, from 1.
    package let number: UInt64

    private static let lastNumber = Atomic<UInt64>(0)

    package convenience init(_ opening: Opening, version: WireVersion) {
        self.init(opening, version, isReused: false, number: Self.lastNumber.add(1, ordering: .relaxed).newValue)
    }

    private init(_ opening: Opening, _ version: WireVersion, isReused: Bool, number: UInt64) {
        self.opening = opening
        self.version = version
        self.isReused = isReused
        self.number = number
    }

    /// Returns the same connection for the exchanges after the first.
    func reused() -> ConnectionInfo {
        var opening = opening
        opening.pinReport = nil
        return ConnectionInfo(opening, version, isReused: true, number: number)
    }
}
