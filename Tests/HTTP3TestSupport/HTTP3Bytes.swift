/// The bytes of frames, as a server writes them.
package enum HTTP3Bytes {
    /// Returns an integer of variable length (RFC 9000 §16).
    package static func integer(_ value: UInt64) -> [UInt8] {
        switch value {
        case ..<0x40: bigEndian(value, count: 1, flags: 0)
        case ..<0x4000: bigEndian(value, count: 2, flags: 0x40)
        case ..<0x4000_0000: bigEndian(value, count: 4, flags: 0x80)
        default: bigEndian(value, count: 8, flags: 0xC0)
        }
    }

    private static func bigEndian(_ value: UInt64, count: Int, flags: UInt8) -> [UInt8] {
        var bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
        bytes[0] |= flags
        return bytes
    }

    package static func frame(_ type: UInt64, _ payload: [UInt8]) -> [UInt8] {
        integer(type) + integer(UInt64(payload.count)) + payload
    }

    package static func data(_ bytes: [UInt8]) -> [UInt8] { frame(0, bytes) }
    package static func data(_ text: String) -> [UInt8] { frame(0, Array(text.utf8)) }
    package static func goAway(_ stream: UInt64) -> [UInt8] { frame(7, integer(stream)) }

    /// Returns HEADERS without a use of the dynamic table.
    package static func head(_ status: Int?, _ fields: [(name: String, value: String)] = []) -> [UInt8] {
        let all = (status.map { [(name: ":status", value: "\($0)")] } ?? []) + fields
        return frame(1, [0, 0] + all.flatMap { literal($0.name, $0.value) })
    }

    /// Returns a field line with a literal name (RFC 9204 §4.5.6).
    package static func literal(_ name: String, _ value: String) -> [UInt8] {
        length(name.utf8.count, prefix: 3, flags: 0x20) + Array(name.utf8)
            + length(value.utf8.count, prefix: 7, flags: 0) + Array(value.utf8)
    }

    /// Returns an integer behind a prefix (RFC 7541 §5.1).
    private static func length(_ value: Int, prefix: Int, flags: UInt8) -> [UInt8] {
        let limit = 1 << prefix - 1
        guard value >= limit else { return [flags | UInt8(value)] }
        var bytes = [flags | UInt8(limit)]
        var rest = value - limit
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}
