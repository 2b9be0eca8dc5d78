import Foundation
import Testing

@testable import TernSharedCache

@Suite("Stored values") struct StoredValueTests {
    private func generations(_ first: UInt8 = 1, _ second: UInt8 = 2) throws -> StoredValue.Generations {
        try #require(
            StoredValue.Generations(
                .bytes([UInt8](repeating: first, count: 16)), .bytes([UInt8](repeating: second, count: 16))))
    }

    private func noise(_ count: Int) -> Data { Data((0..<count).map { _ in UInt8.random(in: 0 ... .max) }) }

    @Test(arguments: [0, 1, 4_096, 4_097, 300_000])
    func aValueIsReadAsItWasWritten(count: Int) throws {
        let own = try generations()
        for value in [Data(count: count), noise(count)] {
            let bytes = StoredValue.encoded(value, lifetime: 5_000, own)
            let stored = try #require(StoredValue(bytes, own, limit: count))
            #expect(stored.value == value && stored.lifetime == 5_000)
            #expect(count == 0 || StoredValue(bytes, own, limit: count - 1) == nil)
        }
    }

    @Test func longValuesAreCompressedIfThatSavesSpace() throws {
        let own = try generations()
        #expect(StoredValue.encoded(Data(count: 4_096), lifetime: 1, own).count == 4_096 + StoredValue.headCount)
        #expect(StoredValue.encoded(Data(count: 4_097), lifetime: 1, own).count < 200)
        let image = noise(100_000)
        #expect(StoredValue.encoded(image, lifetime: 1, own).count == image.count + StoredValue.headCount)
        // Compressible around an image in the middle.
        let mixed = Data(count: 50_000) + noise(10_000) + Data(count: 50_000)
        let bytes = StoredValue.encoded(mixed, lifetime: 1, own)
        #expect(StoredValue(bytes, own, limit: 1 << 20)?.value == mixed)
    }

    @Test func anAlteredOrTornValueIsNotRead() throws {
        let own = try generations()
        for value in [noise(40), Data((0..<5_000).map { UInt8($0 / 100) })] {
            let bytes = StoredValue.encoded(value, lifetime: 5_000, own)
            for index in bytes.indices where !(36..<44).contains(index) {
                var altered = bytes
                altered[index] ^= 0x10
                #expect(StoredValue(altered, own, limit: 1 << 20) == nil, "byte \(index)")
            }
            for count in 0..<bytes.count {
                #expect(StoredValue(Array(bytes.prefix(count)), own, limit: 1 << 20) == nil)
            }
            #expect(StoredValue(bytes + [0], own, limit: 1 << 20) == nil)
        }
    }

    @Test func theLengthIsCheckedBeforeMemoryIsTaken() throws {
        let own = try generations()
        var bytes = StoredValue.encoded(Data(count: 100_000), lifetime: 1, own)
        // A length of 1 GiB in 100 bytes of zlib.
        bytes.replaceSubrange(44..<48, with: [0, 0, 0, 0x40])
        #expect(StoredValue(bytes, own, limit: 2 << 30) == nil)
    }

    @Test func aValueOfAnotherGenerationIsNotRead() throws {
        let own = try generations()
        let bytes = StoredValue.encoded(noise(10), lifetime: 1, own)
        #expect(StoredValue(bytes, try generations(3, 2), limit: 100) == nil)
        #expect(StoredValue(bytes, try generations(1, 3), limit: 100) == nil)
        #expect(StoredValue.Generations(.bytes([1]), .nothing) == nil)
    }
}
