import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Messages in the form of a kernel (little-endian), written by hand from linux/rtnetlink.h.
@Suite("Netlink table", .enabled(if: 1.littleEndian == 1))
struct NetlinkTableTests {
    private typealias Bytes = [UInt8]

    private func number<Number: FixedWidthInteger>(_ value: Number) -> Bytes {
        (0..<MemoryLayout<Number>.size).map { UInt8(truncatingIfNeeded: value >> Number($0 * 8)) }
    }

    private func attribute(_ type: UInt16, _ value: Bytes) -> Bytes {
        let bytes = number(UInt16(value.count + 4)) + number(type) + value
        return bytes + Bytes(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    private func message(_ type: UInt16, _ body: Bytes) -> Bytes {
        let bytes = number(UInt32(body.count + 16)) + number(type) + Bytes(repeating: 0, count: 10) + body
        return bytes + Bytes(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    private func link(_ index: Int32, _ name: String, flags: UInt32 = 0x41) -> Bytes {
        message(
            16,
            [0, 0] + number(UInt16(1)) + number(index) + number(flags) + number(UInt32(0))
                + attribute(3, Bytes(name.utf8) + [0]))
    }

    private func route(
        through index: Int32?, length: UInt8 = 0, type: UInt8 = 1, table: UInt8 = 254, metric: UInt32 = 0,
        more: Bytes = []
    ) -> Bytes {
        var body: Bytes = [2, length, 0, 0, table, 3, 0, type] + number(UInt32(0))
        if let index { body += attribute(4, number(index)) }
        if metric > 0 { body += attribute(6, number(metric)) }
        return message(24, body + more)
    }

    private func status(_ datagrams: Bytes...) -> Reachability.Status {
        var table = NetlinkTable()
        for datagram in datagrams { table.take(datagram[...]) }
        return table.status { $0.hasPrefix("wl") ? .wifi : .wired }
    }

    @Test(arguments: [
        (NetlinkRecordings.empty, Reachability.Status.unreachable), (NetlinkRecordings.way, .reachable(.wired)),
        (NetlinkRecordings.withoutCarrier, .unreachable),
    ])
    func recordedKernelMessagesAreParsed(recorded: [String], expected: Reachability.Status) throws {
        var table = NetlinkTable()
        var names: Set<String> = []
        for text in recorded {
            table.beginDump()
            let datagram = try #require(Data(base64Encoded: text))
            table.take(Bytes(datagram)[...])
        }
        #expect(table.isDone && !table.hasFailed)
        let status = table.status { name in
            names.insert(name)
            return .wired
        }
        #expect(status == expected)
        #expect(names == (expected.isReachable ? ["eth9"] : []))
    }

    @Test func defaultRouteOverARunningInterfaceIsReachable() {
        #expect(status(link(2, "eth0"), route(through: 2)) == .reachable(.wired))
        #expect(status(link(1, "lo", flags: 0x49) + link(3, "wlan0"), route(through: 3)) == .reachable(.wifi))
    }

    @Test func missingDefaultRouteIsUnreachable() {
        #expect(status() == .unreachable)
        #expect(status(link(2, "eth0")) == .unreachable)
        #expect(status(link(2, "eth0"), route(through: 2, length: 24)) == .unreachable)
        // Up without a carrier, down, loopback, missing.
        #expect(status(link(2, "eth0", flags: 0x1), route(through: 2)) == .unreachable)
        #expect(status(link(2, "eth0", flags: 0x40), route(through: 2)) == .unreachable)
        #expect(status(link(2, "lo", flags: 0x49), route(through: 2)) == .unreachable)
        #expect(status(link(2, "eth0"), route(through: 9)) == .unreachable)
    }

    @Test func routesWithoutTrafficDoNotCount() {
        // "unreachable default", and a default route of another table.
        #expect(status(link(2, "eth0"), route(through: 2, type: 7)) == .unreachable)
        #expect(status(link(2, "eth0"), route(through: 2, table: 100)) == .unreachable)
        let other = attribute(15, number(UInt32(5_000)))
        #expect(status(link(2, "eth0"), route(through: 2, table: 252, more: other)) == .unreachable)
        let main = attribute(15, number(UInt32(254)))
        #expect(status(link(2, "eth0"), route(through: 2, table: 252, more: main)) == .reachable(.wired))
    }

    @Test func routeWithTheLowestMetricDeterminesTheInterface() {
        let links = link(2, "eth0") + link(3, "wlan0")
        #expect(status(links, route(through: 2, metric: 600), route(through: 3, metric: 100)) == .reachable(.wifi))
        #expect(status(links, route(through: 2, metric: 50), route(through: 3, metric: 100)) == .reachable(.wired))
        let down = link(2, "eth0", flags: 0x1) + link(3, "wlan0")
        #expect(status(down, route(through: 2, metric: 50), route(through: 3, metric: 100)) == .reachable(.wifi))
    }

    @Test func routesOverSeveralInterfacesCountEach() {
        let hops = number(UInt16(8)) + [0, 0] + number(Int32(8)) + number(UInt16(8)) + [0, 0] + number(Int32(2))
        #expect(status(link(2, "eth0"), route(through: nil, more: attribute(9, hops))) == .reachable(.wired))
    }

    @Test func truncatedAndInvalidMessagesAreIgnored() {
        let whole = link(2, "eth0") + route(through: 2)
        for length in 0..<whole.count {
            let seen = status(Bytes(whole[..<length]))
            #expect(seen == .unreachable)
        }
        var state: UInt64 = 7
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0..<4 {
                state = state &* 6_364_136_223_846_793_005 &+ 1
                bytes[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 56)
            }
            _ = status(bytes)
        }
    }

    @Test func anErrorOfTheKernelEndsTheDump() {
        var table = NetlinkTable()
        table.take(message(3, Bytes(repeating: 0, count: 4))[...])
        #expect(table.isDone && !table.hasFailed)
        table.beginDump()
        table.take(message(2, Bytes(repeating: 0, count: 20))[...])
        #expect(table.isDone && table.hasFailed)
    }

    @Test(arguments: [
        ("wlp2s0", Reachability.Medium.wifi), ("wwan0", .cellular), ("ppp0", .cellular), ("enp3s0", .wired),
        ("eth0", .wired), ("tun0", .other), ("docker0", .other), ("wg0", .other),
    ])
    func interfacesAreKnownByTheirNames(name: String, medium: Reachability.Medium) {
        #if os(Linux)
        #expect(NetlinkReachability.medium(named: name) == medium)
        #endif
    }
}
