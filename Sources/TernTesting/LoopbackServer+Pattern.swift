#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension LoopbackServer {
    /// A body of any length that nobody has to store: each byte follows from its offset, so that a piece of it can be
    /// verified wherever it begins.
    ///
    /// The bytes repeat every 65,521 bytes, a prime: a piece that lands a multiple of a power of two too early or too
    /// late (below 1 GiB) is always seen.
    public struct Pattern: Sendable, Hashable {
        /// Its length in bytes.
        public let count: Int

        /// Patterns of another seed have other bytes and another `etag`: two versions of one file.
        public let seed: Int

        /// A pattern of `count` bytes.
        public init(count: Int, seed: Int = 0) {
            precondition(count >= 0, "a pattern has no negative length")
            self.count = count
            self.seed = seed
        }

        /// A strong entity tag that stands for exactly these bytes.
        public var etag: String { "\"pattern-\(count)-\(seed)\"" }

        /// The byte at an offset.
        public func byte(at offset: Int) -> UInt8 { Self.block[position(of: offset)] }

        /// The bytes of a range, or all.
        public func bytes(in range: Range<Int>? = nil) -> [UInt8] {
            let range = (range ?? 0..<count).clamped(to: 0..<count)
            var bytes: [UInt8] = []
            bytes.reserveCapacity(range.count)
            var offset = range.lowerBound
            while offset < range.upperBound {
                let start = position(of: offset)
                let part = Self.block[start..<min(Self.block.count, start + range.upperBound - offset)]
                bytes.append(contentsOf: part)
                offset += part.count
            }
            return bytes
        }

        /// Whether these are the pattern's bytes from `offset` on. Contiguous bytes, such as `Data` and `[UInt8]`, are
        /// compared at the speed of memory.
        public func matches(_ bytes: some Sequence<UInt8>, at offset: Int = 0) -> Bool {
            let answer = bytes.withContiguousStorageIfAvailable {
                unsafe matches(raw: UnsafeRawBufferPointer($0), at: offset)
            }
            if let answer { return answer }
            var offset = offset
            for byte in bytes {
                guard offset < count, byte == self.byte(at: offset) else { return false }
                offset += 1
            }
            return true
        }

        private func matches(raw bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
            guard offset >= 0, bytes.count <= count - offset else { return false }
            var done = 0
            while let base = bytes.baseAddress, done < bytes.count {
                let start = position(of: offset + done)
                let length = min(bytes.count - done, Self.block.count - start)
                let isEqual = unsafe Self.block.withUnsafeBytes { block in
                    guard let expected = block.baseAddress else { return false }
                    return unsafe memcmp(base + done, expected + start, length) == 0
                }
                guard isEqual else { return false }
                done += length
            }
            return true
        }

        static let period = 65_521

        /// Five periods, so that it is sent and compared in long runs.
        static let block: [UInt8] = {
            // SplitMix64's mixing steps: no visible order, the same on every machine.
            let one = (0..<period).map { index -> UInt8 in
                var value = UInt64(index) &+ 0x9e37_79b9_7f4a_7c15
                value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
                value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
                return UInt8(truncatingIfNeeded: value ^ (value >> 31))
            }
            return one + one + one + one + one
        }()

        /// Where in the first period of `block` an offset's byte stands.
        func position(of offset: Int) -> Int {
            let shift = seed % Self.period
            let position = (offset % Self.period + shift) % Self.period
            return position < 0 ? position + Self.period : position
        }
    }
}
