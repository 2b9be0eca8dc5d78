/// The room for connections that the pools of one session share, each of which lives on a loop of its own. Pure.
///
/// A pool asks for the room of each connection that it opens, and gives it back when the connection is closed. Pools
/// that need more than there is wait in their order.
///
/// - The room of idle connections goes to those that wait.
/// - The limits are divided into parts: a pool that has less than its part gets room from one that has more, as soon as
///   one of its connections is free.
/// - A pool that is never idle gives the room of one connection in its turn (`turn(of:richest:)`), so that none of those
///   that wait does so for ever.
package struct RoomLedger: Sendable {
    /// A pool that needs room for a connection to an origin.
    struct Need: Hashable, Sendable {
        let origin: String
        let loop: Int
    }

    /// A message to the pool on a loop.
    package struct Message: Hashable, Sendable {
        package enum Content: Hashable, Sendable {
            /// The pool has the room that it has asked for.
            case granted(origin: String)
            /// Another pool needs the room of an idle connection to an origin; with `isOwed`, that of any.
            case giveRoom(origin: String, isOwed: Bool)
            /// Another pool needs the room of an idle connection.
            case closeOldestIdle
        }

        let loop: Int
        let content: Content
    }

    /// The numbers of connections to one origin, by loop.
    private struct Counts: Sendable {
        var used: [Int]
        var sum = 0
    }

    private let loops: Int
    private let limitPerOrigin: Int
    private let limit: Int
    private var origins: [String: Counts] = [:]
    /// The numbers of connections to all origins, by loop.
    private var used: [Int]
    private var sum = 0
    /// The pools that wait for room, in their order.
    private(set) var needs: [Need] = []

    /// - Parameters:
    ///   - loops: The number of pools.
    ///   - limitPerOrigin: The limit of connections to one origin, at least `loops`.
    ///   - limit: The limit of connections to all origins, at least `loops`.
    init(loops: Int, limitPerOrigin: Int, limit: Int) {
        self.loops = loops
        self.limitPerOrigin = limitPerOrigin
        self.limit = limit
        used = Array(repeating: 0, count: loops)
    }

    /// Returns the number of connections to an origin for which a pool has room.
    func room(of need: Need) -> Int { origins[need.origin]?.used[need.loop] ?? 0 }

    /// The number of further connections that the limit allows.
    var free: Int { limit - sum }

    /// Takes the room of one connection, or lets the pool wait for it. Returns the messages that follow.
    ///
    /// - Parameters:
    ///   - hasIdleOfOrigin: Whether the pool itself has an idle connection to the origin, for another key.
    ///   - hasIdle: Whether it has any idle connection.
    mutating func ask(_ need: Need, hasIdleOfOrigin: Bool = false, hasIdle: Bool = false) -> [Message] {
        if !needs.contains(need) { needs.append(need) }
        let granted = grant()
        guard granted.isEmpty else { return granted }
        let isOriginFull = isFull(need.origin)
        if isOriginFull ? hasIdleOfOrigin : hasIdle {
            let content: Message.Content =
                isOriginFull ? .giveRoom(origin: need.origin, isOwed: false) : .closeOldestIdle
            return [Message(loop: need.loop, content: content)]
        }
        return requests(for: need)
    }

    /// Returns the messages to the other pools whose room one that waits can get.
    private func requests(for need: Need) -> [Message] {
        isFull(need.origin) ? requestsForOrigin(need) : requestsForAny(need)
    }

    private func isFull(_ origin: String) -> Bool { (origins[origin]?.sum ?? 0) >= limitPerOrigin }

    /// Takes back what a pool has asked for. Does nothing if it has got it.
    mutating func stopAsking(_ need: Need) { needs.removeAll { $0 == need } }

    /// Gives the room of connections back. Returns the messages to the pools that get it.
    mutating func giveBack(_ need: Need, count: Int) -> [Message] {
        guard var counts = origins[need.origin] else { return [] }
        let given = min(count, counts.used[need.loop])
        counts.used[need.loop] -= given
        counts.sum -= given
        origins[need.origin] = counts.sum > 0 ? counts : nil
        used[need.loop] -= given
        sum -= given
        // The same room of a pool can have been asked for by several others.
        return grant() + (needs.first { hasLessThanItsPart($0) }.map { requests(for: $0) } ?? [])
    }

    /// Gives all room of a pool that has ended back.
    mutating func leave(_ loop: Int) -> [Message] {
        needs.removeAll { $0.loop == loop }
        for (name, counts) in origins where counts.used[loop] > 0 {
            var counts = counts
            counts.sum -= counts.used[loop]
            sum -= counts.used[loop]
            counts.used[loop] = 0
            origins[name] = counts.sum > 0 ? counts : nil
        }
        used[loop] = 0
        return grant()
    }

    /// Returns whether other pools have connections to an origin.
    func isUsedElsewhere(_ need: Need) -> Bool {
        guard let counts = origins[need.origin] else { return false }
        return counts.sum > counts.used[need.loop]
    }

    /// Returns the message to a busy pool that has served many exchanges while the first need waits: it gives the room of
    /// a connection to the origin that needs it, or to the origin with the most connections.
    ///
    /// - Parameter richest: Returns the pool's origin with the most connections, other than one.
    func turn(of loop: Int, richest: (_ except: String) -> String?) -> Message? {
        guard let need = needs.first else { return nil }
        if isFull(need.origin) {
            guard need.loop != loop, room(of: Need(origin: need.origin, loop: loop)) > 0 else { return nil }
            return Message(loop: loop, content: .giveRoom(origin: need.origin, isOwed: true))
        }
        return richest(need.origin).map { Message(loop: loop, content: .giveRoom(origin: $0, isOwed: true)) }
    }

    /// Gives room to the pools that wait, as far as the limits allow: first to those that have less than their parts,
    /// and then to all, in their order.
    private mutating func grant() -> [Message] {
        var messages: [Message] = []
        for servesAll in [false, true] {
            var index = 0
            while index < needs.count, sum < limit {
                guard servesAll || hasLessThanItsPart(needs[index]), take(needs[index]) else {
                    index += 1
                    continue
                }
                let need = needs.remove(at: index)
                messages.append(Message(loop: need.loop, content: .granted(origin: need.origin)))
            }
        }
        return messages
    }

    private func hasLessThanItsPart(_ need: Need) -> Bool {
        room(of: need) < limitPerOrigin / loops && used[need.loop] < limit / loops
    }

    /// Takes the room of one connection, if the limit of the origin allows it.
    private mutating func take(_ need: Need) -> Bool {
        var counts = origins[need.origin] ?? Counts(used: Array(repeating: 0, count: loops))
        guard counts.sum < limitPerOrigin else { return false }
        counts.used[need.loop] += 1
        counts.sum += 1
        origins[need.origin] = counts
        used[need.loop] += 1
        sum += 1
        return true
    }

    /// Returns the messages to the other pools with connections to an origin, where its limit is reached.
    private func requestsForOrigin(_ need: Need) -> [Message] {
        guard let counts = origins[need.origin] else { return [] }
        let richest = Self.richest(counts.used)
        let part = limitPerOrigin / loops
        let isOwed = counts.used[need.loop] < part && counts.used[richest] > part
        return counts.used.indices.filter { $0 != need.loop && counts.used[$0] > 0 }.map {
            Message(loop: $0, content: .giveRoom(origin: need.origin, isOwed: isOwed && $0 == richest))
        }
    }

    /// Returns the messages to the other pools, where the limit for all origins is reached.
    private func requestsForAny(_ need: Need) -> [Message] {
        var messages = used.indices.filter { $0 != need.loop && used[$0] > 0 }.map {
            Message(loop: $0, content: .closeOldestIdle)
        }
        let richest = Self.richest(used)
        let part = limit / loops
        if used[need.loop] < part, used[richest] > part,
            let origin = origins.max(by: { $0.value.used[richest] < $1.value.used[richest] })?.key
        {
            messages.append(Message(loop: richest, content: .giveRoom(origin: origin, isOwed: true)))
        }
        return messages
    }

    private static func richest(_ counts: [Int]) -> Int {
        counts.indices.max { counts[$0] < counts[$1] } ?? 0
    }

    /// Returns the messages to a pool that has idle connections, because others wait for room, or the pool itself does
    /// for another key of an origin.
    func requests(to loop: Int) -> [Message] {
        var contents: [Message.Content] = []
        for need in needs {
            let content: Message.Content =
                isFull(need.origin) ? .giveRoom(origin: need.origin, isOwed: false) : .closeOldestIdle
            if !contents.contains(content) { contents.append(content) }
        }
        return contents.map { Message(loop: loop, content: $0) }
    }
}
