/// Computes the hash functions of HTTP Digest (RFC 7616 §6.1): MD5 (RFC 1321), SHA-256 and SHA-512/256 (FIPS 180-4).
///
/// They are implemented here because Digest needs them with every TLS library, and MD5 also where a library forbids it.
/// They hash data to send; no result is compared with a secret.
package struct DigestFunction: Sendable {
    /// A hash function.
    package enum Algorithm: String, Sendable, Hashable {
        case md5 = "MD5"
        case sha256 = "SHA-256"
        /// SHA-512/256. It starts from other values than SHA-512, so it is not a truncated SHA-512.
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

    /// Returns the hash of bytes: 16 bytes for MD5, 32 for the others.
    package static func hash(_ bytes: [UInt8], _ algorithm: Algorithm) -> [UInt8] {
        var function = DigestFunction(algorithm)
        function.update(bytes)
        return function.finalize()
    }

    /// Adds the next bytes.
    package mutating func update(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { append(byte) }
    }

    private mutating func append(_ byte: UInt8) {
        pending.append(byte)
        length &+= 1
        if pending.count == blockSize { take() }
    }

    /// Returns the hash of all bytes so far. The value must not be used afterwards.
    package mutating func finalize() -> [UInt8] {
        let bits = length &* 8
        let lengthSize = blockSize / 8
        append(0x80)
        while pending.count != blockSize - lengthSize { append(0) }
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

    /// Returns the bytes of a word, most significant byte first.
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

// One block of each hash function. Names follow the specifications.

/// Returns the sixteen words of a block.
private func bigEndianWords<Word: FixedWidthInteger>(of block: [UInt8]) -> [Word] {
    var words = [Word](repeating: 0, count: 16)
    let size = Word.bitWidth / 8
    for (index, byte) in block.enumerated() { words[index / size] = words[index / size] << 8 | Word(byte) }
    return words
}

/// The state of MD5 (RFC 1321 §3.4).
struct MD5Block: Sendable {
    var words: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]

    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]

    /// floor(abs(sin(i + 1)) · 2³²).
    private static let constants: [UInt32] = [
        0xD76A_A478, 0xE8C7_B756, 0x2420_70DB, 0xC1BD_CEEE, 0xF57C_0FAF, 0x4787_C62A, 0xA830_4613, 0xFD46_9501,
        0x6980_98D8, 0x8B44_F7AF, 0xFFFF_5BB1, 0x895C_D7BE, 0x6B90_1122, 0xFD98_7193, 0xA679_438E, 0x49B4_0821,
        0xF61E_2562, 0xC040_B340, 0x265E_5A51, 0xE9B6_C7AA, 0xD62F_105D, 0x0244_1453, 0xD8A1_E681, 0xE7D3_FBC8,
        0x21E1_CDE6, 0xC337_07D6, 0xF4D5_0D87, 0x455A_14ED, 0xA9E3_E905, 0xFCEF_A3F8, 0x676F_02D9, 0x8D2A_4C8A,
        0xFFFA_3942, 0x8771_F681, 0x6D9D_6122, 0xFDE5_380C, 0xA4BE_EA44, 0x4BDE_CFA9, 0xF6BB_4B60, 0xBEBF_BC70,
        0x289B_7EC6, 0xEAA1_27FA, 0xD4EF_3085, 0x0488_1D05, 0xD9D4_D039, 0xE6DB_99E5, 0x1FA2_7CF8, 0xC4AC_5665,
        0xF429_2244, 0x432A_FF97, 0xAB94_23A7, 0xFC93_A039, 0x655B_59C3, 0x8F0C_CC92, 0xFFEF_F47D, 0x8584_5DD1,
        0x6FA8_7E4F, 0xFE2C_E6E0, 0xA301_4314, 0x4E08_11A1, 0xF753_7E82, 0xBD3A_F235, 0x2AD7_D2BB, 0xEB86_D391,
    ]

    /// Processes 64 bytes.
    mutating func take(_ block: [UInt8]) {
        let swapped: [UInt32] = bigEndianWords(of: block)
        let input = swapped.map(\.byteSwapped)
        var (a, b, c, d) = (words[0], words[1], words[2], words[3])
        for step in 0..<64 {
            let mix: UInt32
            let index: Int
            switch step / 16 {
            case 0: (mix, index) = ((b & c) | (~b & d), step)
            case 1: (mix, index) = ((d & b) | (~d & c), (5 * step + 1) % 16)
            case 2: (mix, index) = (b ^ c ^ d, (3 * step + 5) % 16)
            default: (mix, index) = (c ^ (b | ~d), 7 * step % 16)
            }
            let sum: UInt32 = a &+ mix &+ Self.constants[step] &+ input[index]
            let shift = Self.shifts[step / 16 * 4 + step % 4]
            let turned: UInt32 = (sum << shift) | (sum >> (32 - shift))
            (a, d, c, b) = (d, c, b, b &+ turned)
        }
        for (index, word) in [a, b, c, d].enumerated() { words[index] &+= word }
    }
}

/// The state of SHA-256 (FIPS 180-4 §6.2).
struct SHA256Block: Sendable {
    var words: [UInt32] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]

    /// The first 32 bits of the fractions of the cube roots of the first 64 primes.
    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
        0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
        0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
        0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
        0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
        0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
        0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
        0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
    ]

    /// Processes 64 bytes.
    mutating func take(_ block: [UInt8]) {
        var schedule: [UInt32] = bigEndianWords(of: block)
        schedule.reserveCapacity(64)
        for index in 16..<64 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small = rotated(early, 7) ^ rotated(early, 18) ^ (early >> 3)
            let large = rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10)
            schedule.append(schedule[index - 16] &+ small &+ schedule[index - 7] &+ large)
        }
        var (a, b, c, d) = (words[0], words[1], words[2], words[3])
        var (e, f, g, h) = (words[4], words[5], words[6], words[7])
        for index in 0..<64 {
            let mix = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
            let choice = (e & f) ^ (~e & g)
            let first = h &+ mix &+ choice &+ Self.constants[index] &+ schedule[index]
            let majority = (a & b) ^ (a & c) ^ (b & c)
            let turned = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
            let second = turned &+ majority
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ second)
        }
        for (index, word) in [a, b, c, d, e, f, g, h].enumerated() { words[index] &+= word }
    }

    private func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { (word >> count) | (word << (32 - count)) }
}

/// The state of SHA-512/256 (FIPS 180-4 §6.4), with the initial values of §5.3.6.2.
struct SHA512Block: Sendable {
    var words: [UInt64] = [
        0x2231_2194_FC2B_F72C, 0x9F55_5FA3_C84C_64C2, 0x2393_B86B_6F53_B151, 0x9638_7719_5940_EABD,
        0x9628_3EE2_A88E_FFE3, 0xBE5E_1E25_5386_3992, 0x2B01_99FC_2C85_B8AA, 0x0EB7_2DDC_81C5_2CA2,
    ]

    /// The first 64 bits of the fractions of the cube roots of the first 80 primes.
    private static let constants: [UInt64] = [
        0x428A_2F98_D728_AE22, 0x7137_4491_23EF_65CD, 0xB5C0_FBCF_EC4D_3B2F, 0xE9B5_DBA5_8189_DBBC,
        0x3956_C25B_F348_B538, 0x59F1_11F1_B605_D019, 0x923F_82A4_AF19_4F9B, 0xAB1C_5ED5_DA6D_8118,
        0xD807_AA98_A303_0242, 0x1283_5B01_4570_6FBE, 0x2431_85BE_4EE4_B28C, 0x550C_7DC3_D5FF_B4E2,
        0x72BE_5D74_F27B_896F, 0x80DE_B1FE_3B16_96B1, 0x9BDC_06A7_25C7_1235, 0xC19B_F174_CF69_2694,
        0xE49B_69C1_9EF1_4AD2, 0xEFBE_4786_384F_25E3, 0x0FC1_9DC6_8B8C_D5B5, 0x240C_A1CC_77AC_9C65,
        0x2DE9_2C6F_592B_0275, 0x4A74_84AA_6EA6_E483, 0x5CB0_A9DC_BD41_FBD4, 0x76F9_88DA_8311_53B5,
        0x983E_5152_EE66_DFAB, 0xA831_C66D_2DB4_3210, 0xB003_27C8_98FB_213F, 0xBF59_7FC7_BEEF_0EE4,
        0xC6E0_0BF3_3DA8_8FC2, 0xD5A7_9147_930A_A725, 0x06CA_6351_E003_826F, 0x1429_2967_0A0E_6E70,
        0x27B7_0A85_46D2_2FFC, 0x2E1B_2138_5C26_C926, 0x4D2C_6DFC_5AC4_2AED, 0x5338_0D13_9D95_B3DF,
        0x650A_7354_8BAF_63DE, 0x766A_0ABB_3C77_B2A8, 0x81C2_C92E_47ED_AEE6, 0x9272_2C85_1482_353B,
        0xA2BF_E8A1_4CF1_0364, 0xA81A_664B_BC42_3001, 0xC24B_8B70_D0F8_9791, 0xC76C_51A3_0654_BE30,
        0xD192_E819_D6EF_5218, 0xD699_0624_5565_A910, 0xF40E_3585_5771_202A, 0x106A_A070_32BB_D1B8,
        0x19A4_C116_B8D2_D0C8, 0x1E37_6C08_5141_AB53, 0x2748_774C_DF8E_EB99, 0x34B0_BCB5_E19B_48A8,
        0x391C_0CB3_C5C9_5A63, 0x4ED8_AA4A_E341_8ACB, 0x5B9C_CA4F_7763_E373, 0x682E_6FF3_D6B2_B8A3,
        0x748F_82EE_5DEF_B2FC, 0x78A5_636F_4317_2F60, 0x84C8_7814_A1F0_AB72, 0x8CC7_0208_1A64_39EC,
        0x90BE_FFFA_2363_1E28, 0xA450_6CEB_DE82_BDE9, 0xBEF9_A3F7_B2C6_7915, 0xC671_78F2_E372_532B,
        0xCA27_3ECE_EA26_619C, 0xD186_B8C7_21C0_C207, 0xEADA_7DD6_CDE0_EB1E, 0xF57D_4F7F_EE6E_D178,
        0x06F0_67AA_7217_6FBA, 0x0A63_7DC5_A2C8_98A6, 0x113F_9804_BEF9_0DAE, 0x1B71_0B35_131C_471B,
        0x28DB_77F5_2304_7D84, 0x32CA_AB7B_40C7_2493, 0x3C9E_BE0A_15C9_BEBC, 0x431D_67C4_9C10_0D4C,
        0x4CC5_D4BE_CB3E_42B6, 0x597F_299C_FC65_7E2A, 0x5FCB_6FAB_3AD6_FAEC, 0x6C44_198C_4A47_5817,
    ]

    /// Processes 128 bytes.
    mutating func take(_ block: [UInt8]) {
        var schedule: [UInt64] = bigEndianWords(of: block)
        for index in 16..<80 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small = rotated(early, 1) ^ rotated(early, 8) ^ (early >> 7)
            let large = rotated(late, 19) ^ rotated(late, 61) ^ (late >> 6)
            schedule.append(schedule[index - 16] &+ small &+ schedule[index - 7] &+ large)
        }
        var state = words
        for index in 0..<80 {
            let (a, b, c, e, f, g) = (state[0], state[1], state[2], state[4], state[5], state[6])
            let mix = rotated(e, 14) ^ rotated(e, 18) ^ rotated(e, 41)
            let choice = (e & f) ^ (~e & g)
            let first = state[7] &+ mix &+ choice &+ Self.constants[index] &+ schedule[index]
            let majority = (a & b) ^ (a & c) ^ (b & c)
            let turned = rotated(a, 28) ^ rotated(a, 34) ^ rotated(a, 39)
            let second = turned &+ majority
            state = [first &+ second, a, b, c, state[3] &+ first, e, f, g]
        }
        for index in words.indices { words[index] &+= state[index] }
    }

    private func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { (word >> count) | (word << (64 - count)) }
}
