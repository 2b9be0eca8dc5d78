/// The connections with a property, by the keys of a pool.
struct KeyedConnections {
    private var connections: [ConnectionPool.KeyID: Set<ConnectionPool.ConnectionID>] = [:]

    mutating func insert(_ connection: ConnectionPool.ConnectionID, _ key: ConnectionPool.KeyID) {
        connections[key, default: []].insert(connection)
    }

    mutating func remove(_ connection: ConnectionPool.ConnectionID, _ key: ConnectionPool.KeyID) {
        guard !connections.isEmpty else { return }
        connections[key]?.remove(connection)
        if connections[key]?.isEmpty == true { connections[key] = nil }
    }

    func contains(_ connection: ConnectionPool.ConnectionID, _ key: ConnectionPool.KeyID) -> Bool {
        connections[key]?.contains(connection) == true
    }

    func hasOne(of key: ConnectionPool.KeyID) -> Bool { connections[key] != nil }
}
