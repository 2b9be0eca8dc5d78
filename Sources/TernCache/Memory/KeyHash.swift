/// The 64 bits of a key by which its shard and its place are found.
@usableFromInline
struct KeyHash: Sendable {
    /// Nobody outside knows which numbers fall together.
    @usableFromInline let seed = UInt64.random(in: 0 ... .max)

    @usableFromInline
    init() {}

    /// Evenly spread, in the upper half of the bits too. Equal keys of one cache have equal bits.
    @inlinable @inline(__always)
    func callAsFunction<Key: Hashable>(_ key: Key) -> UInt64 {
        // The hash of the standard library is made for whole strings, and is a fourth of a look-up by a number.
        if let number = Self.number(key) {
            let product = (number ^ seed).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            return product.high ^ product.low
        }
        // A product, so that a type's own poor `hashValue` fills the upper bits too.
        return UInt64(UInt(bitPattern: key.hashValue)) &* 0x9E37_79B9_7F4A_7C15
    }

    /// The key as a number, if it is one of the plain types: settled by the compiler in code for one type of key.
    @inlinable @inline(__always)
    static func number<Key: Hashable>(_ key: Key) -> UInt64? {
        if Key.self == Int.self { return unsafe UInt64(bitPattern: Int64(unsafeBitCast(key, to: Int.self))) }
        if Key.self == UInt64.self { return unsafe unsafeBitCast(key, to: UInt64.self) }
        if Key.self == Int64.self { return unsafe UInt64(bitPattern: unsafeBitCast(key, to: Int64.self)) }
        if Key.self == UInt32.self { return unsafe UInt64(unsafeBitCast(key, to: UInt32.self)) }
        if Key.self == Int32.self { return unsafe UInt64(UInt32(bitPattern: unsafeBitCast(key, to: Int32.self))) }
        return nil
    }
}
