import Testing

@testable import TernCache

struct DiskItemTests {
    @Test(
        arguments: [
            (nil, 0, .max), (.seconds(2), 5, 2_005), (.milliseconds(1_500), 5, 1_505), (.zero, 5, 5),
            (.seconds(-2), 5_000, 3_000), (.milliseconds(-1_500), 5_000, 3_500),
            // Beyond the range of the numbers a value lives forever, or not at all.
            (.seconds(Int64.max), 5, .max), (.seconds(Int64.min), 5, 5), (.seconds(Int64.max / 1_000), 5, .max - 802),
            (.seconds(Int64.max / 1_000), 807, .max), (.seconds(Int64.max / 1_000) + .milliseconds(807), 0, .max),
            (.seconds(Int64.max / 1_000) + .milliseconds(900), 0, .max), (.seconds(1), .max, .max),
            (.seconds(Int64.min / 1_000) - .milliseconds(900), 5, 5), (.seconds(-1), .min, .min),
        ] as [(Duration?, Int64, Int64)])
    func theExpiryStaysWithinTheNumbers(life: Duration?, now: Int64, expiry: Int64) {
        #expect(DiskItem.expiry(life, now: now) == expiry)
    }
}
