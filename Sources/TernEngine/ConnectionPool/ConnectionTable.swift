/// Values for connections, found by their slots without hashing. A pool uses a slot again, so the table stays as
/// small as the largest number of connections at a time.
struct ConnectionTable<Value> {
    private var slots: [(connection: ConnectionPool.ConnectionID, value: Value)?] = []

    /// The value for a connection; nil if there is none.
    subscript(_ connection: ConnectionPool.ConnectionID) -> Value? {
        get {
            let index = Self.index(of: connection)
            guard index < slots.count, let slot = slots[index], slot.connection == connection else { return nil }
            return slot.value
        }
        set {
            let index = Self.index(of: connection)
            guard let newValue else {
                remove(connection)
                return
            }
            while index >= slots.count { slots.append(nil) }
            slots[index] = (connection, newValue)
        }
    }

    /// Removes the value for a connection, and returns it.
    @discardableResult
    mutating func remove(_ connection: ConnectionPool.ConnectionID) -> Value? {
        guard let value = self[connection] else { return nil }
        slots[Self.index(of: connection)] = nil
        return value
    }

    /// The connections with a value.
    var connections: [ConnectionPool.ConnectionID] { slots.compactMap { $0?.connection } }

    private static func index(of connection: ConnectionPool.ConnectionID) -> Int {
        Int(connection.slot)
    }
}
