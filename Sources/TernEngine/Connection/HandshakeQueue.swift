import TernConcurrency

/// Lets one handshake run at a time for each address and port of a server (RFC 6455 §4.1). Pure: the caller performs
/// the handshakes.
///
/// A handshake has one key or more: the addresses of its server, or its name where the address is not known. It runs as
/// soon as no earlier handshake has one of its keys. Entering takes time in proportion to the number of its keys;
/// leaving takes time in proportion to the number of those that wait for the same keys only if it has not run yet.
struct HandshakeQueue {
    typealias ID = UInt64

    /// The remote end of a handshake.
    enum Key: Hashable {
        case address(SocketAddress)
        /// The host and port of a server that only a proxy resolves, or the path of a Unix socket.
        case name(String)
    }

    private struct Entry {
        let keys: [Key]
        /// The number of keys that an earlier handshake has.
        var blockers: Int
    }

    private var entries: [ID: Entry] = [:]
    /// The handshakes of each key, in their order.
    private var lines: [Key: FIFO<ID>] = [:]

    /// The number of handshakes that run or wait.
    var count: Int { entries.count }

    /// Adds a handshake, which is not in the queue. Returns true if it runs now; otherwise `leave(_:)` returns it when
    /// its turn comes.
    mutating func enter(_ id: ID, for keys: Set<Key>) -> Bool {
        var blockers = 0
        for key in keys {
            if lines[key]?.isEmpty == false { blockers += 1 }
            lines[key, default: FIFO()].append(id)
        }
        entries[id] = Entry(keys: Array(keys), blockers: blockers)
        return blockers == 0
    }

    /// Removes a handshake that has ended or no longer waits. Returns those that run now.
    mutating func leave(_ id: ID) -> [ID] {
        guard let entry = entries.removeValue(forKey: id) else { return [] }
        var freed: [ID] = []
        for key in entry.keys {
            guard var line = lines.removeValue(forKey: key) else { continue }
            guard line.first == id else {
                line.removeAll { $0 == id }
                lines[key] = line
                continue
            }
            _ = line.popFirst()
            guard let next = line.first else { continue }
            lines[key] = line
            entries[next]?.blockers -= 1
            if entries[next]?.blockers == 0 { freed.append(next) }
        }
        return freed
    }
}
