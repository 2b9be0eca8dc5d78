import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Stores the responses of servers.
extension CacheExchange {
    /// Stores a response while it is delivered.
    func store(
        _ entry: CacheEntry, replacing: [CacheEntry], _ received: Received
    ) async throws(NetworkError) -> IncomingResponse {
        var entry = entry
        do throws(NetworkError) {
            if let choice = try await exchange.storing(of: received.response.head) {
                guard choice.isAllowed else {
                    noteUnstorable(received.forwarding)
                    received.end(.notShared)
                    await discard(replacing)
                    return deliver(received, outcome: .policy)
                }
                entry = entry.changing { properties in
                    properties.lifetimeLimit = choice.maximumLifetime
                    properties.userInfo = Self.limited(choice.userInfo)
                }
            }
        } catch {
            received.end(.notShared)
            await received.response.discard()
            throw error
        }
        // The server has made its user known by now: the response belongs to those who send the cookies.
        if received.response.head.maySetCookies, received.response.head.headers.contains("Set-Cookie") {
            let scope = exchange.scopeOfCookies
            entry = entry.changing { $0.key = $0.key.with(partition: scope.partition, trust: scope.trust) }
        }
        if exchange.deliversDecodedBodies { entry = entry.withoutCoding }
        if !store.acceptsRule(of: entry) { entry = entry.changing { $0.headers.remove("No-Vary-Search") } }
        if entry.properties.storedLength > store.entryLimit {
            noteUnstorable(received.forwarding)
            received.end(.notShared)
            await discard(replacing)
            return deliver(received, outcome: .bodyTooLarge)
        }
        // Identical requests do not wait for the reader of a stream.
        if received.response.isOpen, !exchange.isCollected { received.end(.notShared) }
        let recorder = BodyRecording(.response(entry, replacing: replacing), received, of: self)
        return deliver(received, recorder: recorder)
    }

    private static func limited(_ userInfo: [String: String]) -> [String: String] {
        let sorted = userInfo.sorted { $0.key < $1.key }.prefix(CacheEntry.userInfoLimit)
        return Dictionary(uniqueKeysWithValues: sorted.map { ($0.key, $0.value) })
    }

    /// Updates entries after 304 or after a response to HEAD, and answers with a stored body.
    func update(
        _ received: Received, entries: [CacheEntry], answer: CacheAnswer?, removing removed: [CacheEntry] = []
    ) async throws(NetworkError) -> IncomingResponse {
        await store.update(entries, generation: received.generation)
        guard let answer else { return deliver(received, outcome: received.decision.reason) }
        let end = await received.response.readRest()
        let served = await serve(
            answer, .forwarded(received.forwarding.reason),
            outcome: Outcome(
                status: received.status, reason: received.decision.reason, isStored: answer.isStored,
                metrics: end?.metrics))
        if !removed.isEmpty { await store.remove(removed) }
        guard let served else {
            // The body was evicted after the look-up.
            return try await send(nil, received.next.with([]))
        }
        received.end(answer.isStored ? .stored : .notShared)
        return served
    }

    /// Stores a received part together with the stored one, or delivers it alone if it must not be stored.
    func combine(
        _ combination: CacheCombination, _ received: Received
    ) async throws(NetworkError) -> IncomingResponse {
        var combination = combination
        var isAllowed = true
        do throws(NetworkError) {
            if combination.obstacle == nil {
                isAllowed = try await exchange.storing(of: received.response.head)?.isAllowed ?? true
            }
        } catch {
            received.end(.notShared)
            await received.response.discard()
            throw error
        }
        if combination.answersCaller {
            if !isAllowed { combination.obstacle = .policy }
            return try await complete(combination, received)
        }
        // Such a response belongs to the user whom it names.
        let namesUser = received.response.head.maySetCookies && received.response.head.headers.contains("Set-Cookie")
        guard isAllowed, !namesUser else {
            received.end(.notShared)
            return deliver(received, outcome: isAllowed ? .otherRepresentation : .policy)
        }
        return deliver(received, recorder: BodyRecording(.combination(combination), received, of: self))
    }

    /// Completes a stored part by the received one, and answers with the whole. If the whole must not be stored, the
    /// part is removed.
    private func complete(
        _ combination: CacheCombination, _ received: Received
    ) async throws(NetworkError) -> IncomingResponse {
        let own = combination.stored.properties.storedLength
        let stored = await body(of: combination.stored, range: 0..<own)
        let rest = await received.response.readBody(upTo: store.entryLimit)
        if exchange.isCancelled { throw exchange.wasCancelled }
        guard let stored, let rest, let whole = combination.body(stored: stored, received: rest.bytes),
            let form = CacheAnswer.form(of: combination.entry, for: request, now: cache.now)
        else {
            // The whole response replaces the part.
            return try await send(nil, received.next.with([combination.stored]))
        }
        var isStored = false
        if combination.obstacle != nil {
            await discard([combination.stored])
        } else {
            isStored = await store.insert(
                combination.entry, body: whole, replacing: [combination.stored], generation: received.generation)
        }
        received.end(isStored ? .stored : .notShared)
        let answer = CacheAnswer(
            combination.entry, form: form, to: request, at: cache.now, isValidated: true, isStored: isStored)
        let outcome = Outcome(
            status: 206, reason: combination.obstacle ?? received.decision.reason, isStored: isStored,
            metrics: rest.metrics)
        let result = CacheHandling.Result.forwarded(received.forwarding.reason)
        guard let served = await serve(answer, result, outcome: outcome, body: whole) else {
            return try await send(nil, received.next.with([]))
        }
        return served
    }
}

extension CacheCombination {
    /// Returns the combined bytes; nil if bytes are missing, and if more were received than announced.
    func body(stored: Data, received: Data) -> Data? {
        var whole = Data()
        for piece in pieces {
            let (source, range) =
                switch piece {
                case .stored(let range): (stored, range)
                case .received(let range): (received, range)
                }
            guard range.upperBound <= Int64(source.count) else { return nil }
            // A received piece goes up to the end of the part.
            if case .received = piece, range.upperBound != Int64(source.count) { return nil }
            let start = source.startIndex
            whole += source[start + Int(range.lowerBound)..<start + Int(range.upperBound)]
        }
        return Int64(whole.count) == entry.properties.storedLength ? whole : nil
    }
}

extension CacheEntry {
    /// The entry of a body that was decompressed before it came to the cache.
    var withoutCoding: CacheEntry {
        guard headers.contains("Content-Encoding") else { return self }
        return changing { properties in
            properties.headers.remove("Content-Encoding")
            properties.headers.remove("Content-Length")
        }
    }
}
