// Checks the statuses of a network that comes and goes. Runs in a network of its own (scripts/checks/reachability);
// prints "reachability: N changes seen" as its last line.
import Foundation
import Glibc
import Tern

struct UnexpectedState: Error, CustomStringConvertible {
    let description: String
}

// Foundation's Process is not used: its run loop needs a loopback interface, which a new network does not have.
func ip(_ arguments: String) throws {
    guard let pipe = popen("ip \(arguments)", "r"), pclose(pipe) == 0 else {
        throw UnexpectedState(description: "ip \(arguments) failed")
    }
}

struct Watcher {
    private var statuses = Reachability.shared.statuses.makeAsyncIterator()
    var seen = 0

    mutating func expect(_ expected: Reachability.Status, after step: String) async throws {
        guard let status = await statuses.next(), status == expected else {
            throw UnexpectedState(description: "after \(step): not \(expected), but \(Reachability.shared.status)")
        }
        seen += 1
    }
}

/// Returns the number of sockets to the kernel's tables that this process has open.
func netlinkSockets() -> Int {
    (0..<Int32(256)).count { descriptor in
        var domain: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK
    }
}

func expectSockets(_ expected: Int, _ when: String) async throws {
    // They are closed on a queue of their own, without a notification: this function polls.
    for _ in 0..<500 where netlinkSockets() != expected { try await Task.sleep(for: .milliseconds(10)) }
    guard netlinkSockets() == expected else {
        throw UnexpectedState(description: "\(when): not \(expected) sockets, but \(netlinkSockets())")
    }
}

@main
struct WatchNetwork {
    static func main() async throws {
        let watchdog = Thread {
            // The time limit of the program.
            Thread.sleep(forTimeInterval: 60)
            print("reachability: no answer within 60 seconds")
            exit(1)
        }
        watchdog.start()

        try await expectSockets(0, "before anybody listens")
        let seen = try await watch()
        try await expectSockets(0, "once nobody listens")
        // A query needs no watch.
        guard Reachability.shared.status == .reachable(.wired) else {
            throw UnexpectedState(description: "asked: no way out")
        }
        try await expectSockets(0, "after asking")
        print("reachability: \(seen) changes seen")
    }

    private static func watch() async throws -> Int {
        var watcher = Watcher()
        try await expectSockets(1, "while somebody listens")
        try await watcher.expect(.unreachable, after: "the start")
        try ip("link add eth9 type veth peer name v1")
        try ip("link set v1 up")
        try ip("link set eth9 up")
        try ip("addr add 10.9.9.1/24 dev eth9")
        // These messages do not change the status: nothing is reported.
        try ip("route add 10.8.0.0/16 dev eth9")
        try ip("route add default dev eth9")
        try await watcher.expect(.reachable(.wired), after: "a default route")
        try ip("link set v1 down")
        try await watcher.expect(.unreachable, after: "the carrier's loss")
        try ip("link set v1 up")
        try await watcher.expect(.reachable(.wired), after: "the carrier's return")
        try ip("route del default")
        try await watcher.expect(.unreachable, after: "the route's end")
        try ip("-6 addr add fd00::1/64 dev eth9")
        try ip("-6 route add default dev eth9")
        try await watcher.expect(.reachable(.wired), after: "a default route of IPv6")
        return watcher.seen
    }
}
