#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Chooses the attempts to connect to a host with several addresses (RFC 8305).
///
/// The families alternate, beginning with that of the first address (§4). The next attempt starts 250 ms after the last
/// one, or at once when the last open attempt fails (§5). The first connection wins.
///
/// At most 16 addresses are tried, and at most six attempts are open at once: a host with many addresses that do not
/// answer must not exhaust the descriptors of a process that makes many connections. While six are open, the next
/// attempt waits until the oldest is three seconds old, and takes its place. The limit for the whole is the caller's.
///
/// The caller asks for ``next(now:)`` until it returns `.wait`, `.won` or `.failed`, and again after each event and at
/// the given time.
package struct HappyEyeballs: Sendable {
    /// The next action of the caller.
    package enum Action: Sendable, Equatable {
        /// Start an attempt with the address at this index. Its failure can be reported at once.
        case connect(Int)
        /// Close the attempt with this index. It gets no further event.
        case abandon(Int)
        /// Wait for an event, at most until this time; without one, for an event only.
        case wait(until: UInt64?)
        /// The attempt with this index has won. All others are abandoned.
        case won(Int)
        /// No address could be connected to. The error is the most telling one of all attempts.
        case failed(SystemError)
    }

    private enum State: Equatable {
        case open(since: UInt64)
        case closed
    }

    /// The time between the starts of two attempts in nanoseconds (RFC 8305 §8: 250 ms is recommended).
    package static let delay: UInt64 = 250_000_000
    /// The maximum number of addresses that are tried.
    package static let addressLimit = 16
    /// The maximum number of attempts that are open at once.
    package static let openLimit = 6
    /// The time after which an attempt is replaced when the maximum number is open. The system has sent its SYN three
    /// times by then (RFC 6298 §2).
    package static let replacementAge: UInt64 = 3_000_000_000

    /// The addresses in the order of the attempts. The indices of actions and events refer to them.
    package let addresses: [SocketAddress]
    /// The states of the attempts that have started.
    private var attempts: [State] = []
    private var winner: Int?
    /// The time at which the next attempt starts, if no open attempt fails before.
    private var nextStart: UInt64 = 0
    private var error: SystemError?

    /// - Parameter addresses: The addresses of the host in the order of preference (RFC 6724).
    package init(_ addresses: [SocketAddress]) {
        self.addresses = Self.interleaved(addresses)
    }

    /// Returns the next action. The time never goes back.
    package mutating func next(now: UInt64) -> Action {
        if let winner {
            guard let loser = openAttempts.first(where: { $0 != winner }) else { return .won(winner) }
            attempts[loser] = .closed
            return .abandon(loser)
        }
        let open = openAttempts
        if attempts.count == addresses.count {
            return open.isEmpty ? .failed(error ?? SystemError(EADDRNOTAVAIL)) : .wait(until: nil)
        }
        guard now >= nextStart || open.isEmpty else { return .wait(until: nextStart) }
        // The oldest attempt has the lowest index.
        if open.count >= Self.openLimit, let oldest = open.first, case .open(let since) = attempts[oldest] {
            let end = Self.sum(since, Self.replacementAge)
            guard now >= end else { return .wait(until: end) }
            attempts[oldest] = .closed
            note(SystemError(ETIMEDOUT))
            return .abandon(oldest)
        }
        attempts.append(.open(since: now))
        nextStart = Self.sum(now, Self.delay)
        return .connect(attempts.count - 1)
    }

    /// Records that an attempt has failed. The next attempt starts at once.
    package mutating func failed(_ index: Int, error: SystemError) {
        guard isOpen(index), winner == nil else { return }
        attempts[index] = .closed
        note(error)
        nextStart = 0
    }

    /// Records that an attempt has connected. The first one wins; later ones are closed by `.abandon`.
    package mutating func connected(_ index: Int) {
        if isOpen(index), winner == nil { winner = index }
    }

    private var openAttempts: [Int] { attempts.indices.filter { isOpen($0) } }

    private func isOpen(_ index: Int) -> Bool {
        attempts.indices.contains(index) && attempts[index] != .closed
    }

    /// Keeps the error if it tells more than the one before.
    private mutating func note(_ new: SystemError) {
        if error.map({ Self.rank($0) < Self.rank(new) }) ?? true { error = new }
    }

    /// The significance of an error: a lack of descriptors, a refusal, other errors, and last those that an address of
    /// a family without a route causes.
    private static func rank(_ error: SystemError) -> Int {
        if error.isOutOfDescriptors { return 3 }
        return switch error.code {
        case ECONNREFUSED: 2
        case ENETUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT: 0
        default: 1
        }
    }

    private static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first?.family else { return [] }
        var preferred = addresses.filter { $0.family == first }[...]
        var others = addresses.filter { $0.family != first }[...]
        var result: [SocketAddress] = []
        while result.count < addressLimit, !(preferred.isEmpty && others.isEmpty) {
            if let address = preferred.popFirst() { result.append(address) }
            if result.count < addressLimit, let address = others.popFirst() { result.append(address) }
        }
        return result
    }

    private static func sum(_ time: UInt64, _ interval: UInt64) -> UInt64 {
        let (sum, overflow) = time.addingReportingOverflow(interval)
        return overflow ? .max : sum
    }
}
