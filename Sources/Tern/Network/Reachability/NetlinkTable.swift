/// What the kernel's routing messages say (rtnetlink(7)): which interfaces are up, and which default routes there are. Pure:
/// it is fed whole datagrams.
struct NetlinkTable {
    private struct Link {
        var name: String
        /// Administratively up, and with a carrier.
        var isRunning: Bool
        var isLoopback: Bool
    }

    private struct Route {
        var link: Int32
        var metric: UInt32
    }

    private var links: [Int32: Link] = [:]
    private var defaults: [Route] = []
    /// The kernel has said that a dump is complete.
    private(set) var isDone = false
    /// The kernel has refused a request.
    private(set) var hasFailed = false

    // The numbers of linux/netlink.h and linux/rtnetlink.h, which Swift does not see.
    private static let (done, error, newLink, newRoute): (UInt16, UInt16, UInt16, UInt16) = (3, 2, 16, 24)
    private static let (up, loopback, running): (UInt32, UInt32, UInt32) = (0x1, 0x8, 0x40)
    private static let interfaceName: UInt16 = 3
    private static let (outInterface, priority, multipath, table): (UInt16, UInt16, UInt16, UInt16) = (4, 6, 9, 15)
    private static let (unicast, mainTable): (UInt8, UInt32) = (1, 254)

    /// A request for everything of a kind: interfaces, or the routes of one family.
    static func dumpRequest(_ kind: DumpKind, sequence: UInt32) -> [UInt8] {
        let (type, family): (UInt16, UInt8) =
            switch kind {
            case .links: (18, 0)
            case .routes(let family): (26, family)
            }
        // nlmsghdr, then an rtgenmsg padded to the longest of the kernel's own forms. NLM_F_REQUEST | NLM_F_DUMP.
        var bytes: [UInt8] = []
        append(UInt32(16 + 16), to: &bytes)
        append(type, to: &bytes)
        append(UInt16(0x1 | 0x300), to: &bytes)
        append(sequence, to: &bytes)
        append(UInt32(0), to: &bytes)
        return bytes + [family] + [UInt8](repeating: 0, count: 15)
    }

    enum DumpKind {
        case links
        case routes(family: UInt8)
    }

    private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        // In the machine's own order, as the kernel has it.
        unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Takes in one datagram: several messages, each aligned to four bytes.
    mutating func take(_ datagram: ArraySlice<UInt8>) {
        var rest = NetlinkBytes(datagram)
        while let length = rest.number(UInt32.self, at: 0), length >= 16, Int(length) <= rest.count {
            let message = rest.prefix(Int(length))
            take(message.number(UInt16.self, at: 4) ?? 0, message.dropFirst(16))
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
    }

    private mutating func take(_ type: UInt16, _ body: NetlinkBytes) {
        switch type {
        case Self.done: isDone = true
        case Self.error: (isDone, hasFailed) = (true, true)
        case Self.newLink: takeLink(body)
        case Self.newRoute: takeRoute(body)
        default: break
        }
    }

    /// ifinfomsg: family, padding, type (2), index (4), flags (4), change (4); then attributes.
    private mutating func takeLink(_ body: NetlinkBytes) {
        guard let index = body.number(Int32.self, at: 4), let flags = body.number(UInt32.self, at: 8) else { return }
        var name = ""
        for (type, value) in body.dropFirst(16).attributes where type == Self.interfaceName { name = value.text }
        let isRunning = flags & Self.up != 0 && flags & Self.running != 0
        links[index] = Link(name: name, isRunning: isRunning, isLoopback: flags & Self.loopback != 0)
    }

    /// rtmsg: family, destination's length, source's length, tos, table, protocol, scope, type, flags (4); then attributes.
    private mutating func takeRoute(_ body: NetlinkBytes) {
        guard let length = body.number(UInt8.self, at: 1), length == 0, body.number(UInt8.self, at: 7) == Self.unicast
        else { return }
        var inTable = UInt32(body.number(UInt8.self, at: 4) ?? 0)
        var metric: UInt32 = 0
        var interfaces: [Int32] = []
        for (type, value) in body.dropFirst(12).attributes {
            switch type {
            case Self.table: inTable = value.number(UInt32.self, at: 0) ?? inTable
            case Self.priority: metric = value.number(UInt32.self, at: 0) ?? 0
            case Self.outInterface: interfaces += value.number(Int32.self, at: 0).map { [$0] } ?? []
            case Self.multipath: interfaces += value.nextHops
            default: break
            }
        }
        guard inTable == Self.mainTable else { return }
        defaults += interfaces.map { Route(link: $0, metric: metric) }
    }

    /// What all of this means. The route of the least metric says through what.
    func status(_ medium: (_ interface: String) -> Reachability.Medium) -> Reachability.Status {
        let usable = defaults.compactMap { route -> (metric: UInt32, name: String)? in
            guard let link = links[route.link], link.isRunning, !link.isLoopback else { return nil }
            return (route.metric, link.name)
        }
        guard let best = usable.min(by: { $0.metric < $1.metric }) else { return .unreachable }
        return .reachable(medium(best.name))
    }

    /// A dump begins again.
    mutating func beginDump() { isDone = false }
}
