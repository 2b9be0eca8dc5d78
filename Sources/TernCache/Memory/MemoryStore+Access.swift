extension MemoryStore {
    @inlinable
    func value(for key: Key) -> Value? {
        let place = place(of: key)
        let now = currentTime()
        let value = look(key, place.shard, place.fingerprint, now: now)
        if value == nil, mayFindMore {
            return lookFurther(key, place.shard, place.fingerprint, now: now)
        }
        return value
    }

    @inlinable @inline(__always)
    func look(_ key: Key, _ shard: Int, _ fingerprint: UInt32, now: UInt64) -> Value? {
        if readsTogether { return shards.read(shard) { $0.glance(key, fingerprint, now: now) } }
        return withShard(shard) { $0.look(key, fingerprint, now: now) }
    }

    @inlinable
    func contains(_ key: Key) -> Bool {
        let place = place(of: key)
        let now = currentTime()
        if readsTogether {
            return shards.read(place.shard) { ($0.contains(key, place.fingerprint, now: now), .nothing) }
        }
        return withShard(place.shard) { $0.contains(key, place.fingerprint, now: now) }
    }

    @inlinable
    func remove(_ key: Key) -> Value? {
        let place = place(of: key)
        let now = currentTime()
        let (value, leavers) = withShard(place.shard) { shard in
            var leavers = Leavers()
            let value = shard.remove(key, place.fingerprint, now: now, ledger, into: &leavers)
            return (value, leavers)
        }
        finish(leavers)
        return value
    }

    @inlinable
    func insert(_ value: Value, for key: Key, cost given: Int?, timeToLive time: Duration?) -> Bool {
        let deadline = clock.deadline(after: time ?? timeToLive)
        let arrival = MemoryArrival(
            key: key, value: value, cost: max(0, given ?? cost(value)), deadline: deadline,
            finder: inUse?.finder(value))
        if deadline != .max { expect(deadline) }
        return insert(arrival)
    }

    /// Whether the value came in.
    @inlinable
    func insert(_ arrival: MemoryArrival<Key, Value>) -> Bool {
        let place = place(of: arrival.key)
        var force = false
        // Ends: each round stores, or evicts, or finds that other threads did; a lower limit is seen at its start.
        while ledger.admits(arrival.cost) {
            let (step, leavers) = withShard(place.shard) { shard in
                var leavers = Leavers()
                let step = shard.insert(
                    arrival, place.fingerprint, ledger, shards: shardCount, force: force, into: &leavers)
                return (step, leavers)
            }
            finish(leavers)
            switch step {
            case .stored:
                if inUse != nil { sweepFaded(place.shard) }
                return true
            case .superseded:
                return false
            case .needsPurge:
                purge(for: arrival.cost)
            case .needsRoom(let reason):
                force = !makeRoom(beside: place.shard, reason)
            }
        }
        refuse(arrival, place.shard, place.fingerprint)
        return false
    }
}
