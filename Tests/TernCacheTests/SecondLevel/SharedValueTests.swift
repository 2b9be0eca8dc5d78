import Testing

@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Second level: values") struct SharedValueTests {
    private let key = CacheStoreKey(group: "images", name: "abc")
    private let value = SharedValue(
        received: Date(timeIntervalSince1970: 1_700_000_000), metadata: Data("meta".utf8), value: Data("value".utf8))

    @Test func aValueIsReadAsItWasWritten() {
        #expect(SharedValue(value.encoded(for: key), for: key) == value)
        let empty = SharedValue(received: value.received, value: Data())
        #expect(SharedValue(empty.encoded(for: key), for: key) == empty)
        // Also as a part of other bytes.
        let padded = Data([1, 2, 3]) + value.encoded(for: key)
        #expect(SharedValue(padded[3...], for: key) == value)
    }

    @Test func anAlteredValueIsNotRead() {
        let bytes = value.encoded(for: key)
        for index in bytes.indices {
            var altered = bytes
            altered[index] ^= 1
            #expect(SharedValue(altered, for: key) == nil, "byte \(index)")
        }
    }

    @Test func aTornValueIsNotRead() {
        let bytes = value.encoded(for: key)
        for count in 0..<bytes.count { #expect(SharedValue(bytes.prefix(count), for: key) == nil, "\(count) bytes") }
        #expect(SharedValue(bytes + [0], for: key) == nil)
    }

    @Test func aValueOfAnotherKeyIsNotRead() {
        let bytes = value.encoded(for: key)
        #expect(SharedValue(bytes, for: CacheStoreKey(group: "images", name: "abd")) == nil)
        #expect(SharedValue(bytes, for: CacheStoreKey(group: "imagesa", name: "bc")) == nil)
    }

    @Test func theEarlierTimeOfReceiptCounts() {
        let now = value.received.addingTimeInterval(100)
        #expect(value.aged(by: .seconds(20), now: now).received == value.received)
        #expect(value.aged(by: .seconds(150), now: now).received == value.received.addingTimeInterval(-50))
        // A clock that is ahead of this one.
        let early = value.received.addingTimeInterval(-1_000)
        #expect(value.aged(by: .seconds(5), now: early).received == early.addingTimeInterval(-5))
        #expect(value.aged(by: .seconds(-5), now: early).received == early)
    }
}
