/// The hash functions of HTTP Digest (RFC 7616 §6.1): MD5 (RFC 1321), SHA-256 and SHA-512/256 (FIPS 180-4).
///
/// Our own, because they are needed whatever TLS library libcurl has, MD5 too where that one is forbidden. They hash
/// what is sent; nothing here is compared with a secret.
package struct DigestFunction: Sendable {
    /// Which function.
    package enum Algorithm: String, Sendable, Hashable {
        case md5 = "MD5"
        case sha256 = "SHA-256"
        /// Not SHA-512 cut short: it starts from other values.
        case sha512Of256 = "SHA-512-256"
    }

    private enum State {
        case md5(MD5Block)
        case sha256(SHA256Block)
        case sha512Of256(SHA512Block)
    }

    private var state: State
    private var pending: [UInt8] = []
    private var length: UInt64 = 0
    private let blockSize: Int

    package init(_ algorithm: Algorithm) {
        blockSize = algorithm == .sha512Of256 ? 128 : 64
        state =
            switch algorithm {
            case .md5: .md5(MD5Block())
            case .sha256: .sha256(SHA256Block())
            case .sha512Of256: .sha512Of256(SHA512Block())
            }
    }

    /// The hash of some bytes: 16 bytes for MD5, 32 for the others.
    package static func hash(_ bytes: [UInt8], _ algorithm: Algorithm) -> [UInt8] {
        var function = DigestFunction(algorithm)
        function.update(bytes)
        return function.finalize()
    }

    /// Takes in the next bytes.
    package mutating func update(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            pending.append(byte)
            length &+= 1
            if pending.count == blockSize { take() }
        }
    }

    /// The hash of all bytes so far; the function is spent then.
    package mutating func finalize() -> [UInt8] {
        let bits = length &* 8
        let lengthSize = blockSize / 8
        update([0x80])
        while pending.count != blockSize - lengthSize { update([0]) }
        for _ in 8..<lengthSize { pending.append(0) }
        // MD5 writes its least significant byte first, the others their most significant one.
        pending += Self.bytes(isMD5 ? bits.byteSwapped : bits)
        take()
        switch state {
        case .md5(let block): return block.words.flatMap { Self.bytes($0.byteSwapped) }
        case .sha256(let block): return block.words.flatMap { Self.bytes($0) }
        case .sha512Of256(let block): return block.words[..<4].flatMap { Self.bytes($0) }
        }
    }

    private var isMD5: Bool {
        if case .md5 = state { true } else { false }
    }

    /// The most significant byte first.
    private static func bytes<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
        stride(from: Word.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    private mutating func take() {
        switch state {
        case .md5(var block):
            block.take(pending)
            state = .md5(block)
        case .sha256(var block):
            block.take(pending)
            state = .sha256(block)
        case .sha512Of256(var block):
            block.take(pending)
            state = .sha512Of256(block)
        }
        pending.removeAll(keepingCapacity: true)
    }
}
