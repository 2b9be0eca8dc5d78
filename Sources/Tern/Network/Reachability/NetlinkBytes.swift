/// A piece of a netlink message, read with bounds.
struct NetlinkBytes {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var count: Int { bytes.count }

    func prefix(_ count: Int) -> NetlinkBytes { NetlinkBytes(bytes.prefix(count)) }
    func dropFirst(_ count: Int) -> NetlinkBytes { NetlinkBytes(bytes.dropFirst(count)) }

    /// A number in the machine's own order; nil beyond the end.
    func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= 0, offset + size <= bytes.count else { return nil }
        var number = Number.zero
        for (index, byte) in bytes.dropFirst(offset).prefix(size).enumerated() {
            #if _endian(little)
            number |= Number(truncatingIfNeeded: byte) << Number(index * 8)
            #else
            number |= Number(truncatingIfNeeded: byte) << Number((size - 1 - index) * 8)
            #endif
        }
        return number
    }

    /// Up to the first NUL.
    var text: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }

    /// rtattr: length (2), type (2), value; aligned to four bytes. The upper two bits of the type are flags.
    var attributes: [(type: UInt16, value: NetlinkBytes)] {
        var result: [(UInt16, NetlinkBytes)] = []
        var rest = self
        while let length = rest.number(UInt16.self, at: 0), length >= 4, Int(length) <= rest.count {
            let type = (rest.number(UInt16.self, at: 2) ?? 0) & 0x3FFF
            result.append((type, rest.prefix(Int(length)).dropFirst(4)))
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return result
    }

    /// rtnexthop: length (2), flags, hops, interface (4); aligned to four bytes.
    var nextHops: [Int32] {
        var result: [Int32] = []
        var rest = self
        while let length = rest.number(UInt16.self, at: 0), length >= 8, Int(length) <= rest.count {
            if let interface = rest.number(Int32.self, at: 4) { result.append(interface) }
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return result
    }
}
