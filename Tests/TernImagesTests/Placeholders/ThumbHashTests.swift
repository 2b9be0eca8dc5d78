import Testing

@testable import TernImages

@Suite struct ThumbHashTests {
    struct Row: Sendable {
        let kind: Int
        let width: Int
        let height: Int
        let hash: String
        /// The size and the digest of the decoded picture.
        let size: PixelSize
        let digest: UInt64

        init(_ kind: Int, _ width: Int, _ height: Int, _ hash: String, _ w: Int, _ h: Int, _ digest: UInt64) {
            (self.kind, self.width, self.height, self.hash) = (kind, width, height, hash)
            (size, self.digest) = (PixelSize(width: w, height: h), digest)
        }
    }

    static let rows = [
        Row(5, 40, 30, "UCgOHZiQh4eRh4iJd2iIeMcKDulX", 32, 23, 0x2F83_86EC_4EF0_0CC0),
        Row(1, 24, 61, "H/gBCwBbEjV1YQUysfnd6W8=", 14, 32, 0x66F2_C06E_B976_D3CB),
        Row(4, 64, 20, "3+uECooIgId4eHiBfwhoiHFwSEgIiHM=", 32, 13, 0x3597_7952_51DD_9030),
        Row(5, 13, 13, "TygOHxiQh4eRh4d5eGh4iIeHeKzgoH4F", 32, 32, 0x5D68_1E76_5BFF_F78A),
        Row(1, 100, 7, "3wcGEYRjAGlVJ3p4XvWo+nk=", 32, 5, 0x4F43_C97F_3E67_1E21),
        Row(4, 7, 99, "0tiAKQoHhX+IiIeHf3gIiJBqiIcGeWg=", 6, 32, 0xCFE9_C5B0_9353_417F),
        Row(5, 99, 100, "USgOHxqQh4eRiIeJiGiIiIeHiKzgkH4F", 32, 32, 0x6FC9_AC35_44C0_48D4),
    ]

    @Test(arguments: rows) func hashesAreThoseOfTheReference(row: Row) throws {
        let hash = try ThumbHash(PlaceholderPictures.picture(row.kind, row.width, row.height))
        #expect(hash.base64 == row.hash)
        let ratio = Double(row.width) / Double(row.height)
        if (0.3...3).contains(ratio) { #expect(abs(hash.aspectRatio / ratio - 1) < 0.3) }
    }

    @Test(arguments: rows) func pixelsAreThoseOfTheReference(row: Row) throws {
        let image = try #require(ThumbHash(base64: row.hash)).image()
        #expect(image.size == row.size && PlaceholderPictures.digest(image) == row.digest)
    }

    /// Those of the page of ThumbHash.
    @Test(arguments: [
        ("1QcSHQRnh493V4dIh4eXh1h4kJUI", 23, 32, 0x1CE2_0264_01D7_27F3 as UInt64),
        ("3OcRJYB4d3h/iIeHeEh3eIhw+j2w", 32, 23, 0xB2E4_B8DB_E011_1CA9),
        ("HBkSHYSIeHiPiHh8eJd4eTN0EEQG", 32, 23, 0x41C4_8B48_A0CB_BA2D),
    ])
    func publishedHashesAreDecoded(hash: String, width: Int, height: Int, digest: UInt64) throws {
        let image = try #require(ThumbHash(base64: hash)).image()
        #expect(image.size == PixelSize(width: width, height: height))
        #expect(PlaceholderPictures.digest(image) == digest)
    }

    @Test func bothAlphabetsAndAnyPaddingAreRead() throws {
        let hash = try #require(ThumbHash(base64: "3OcRJYB4d3h/iIeHeEh3eIhw+j2w"))
        #expect(ThumbHash(base64: "3OcRJYB4d3h_iIeHeEh3eIhw-j2w") == hash)
        #expect(ThumbHash(base64: "H/gBCwBbEjV1YQUysfnd6W8") == ThumbHash(base64: "H/gBCwBbEjV1YQUysfnd6W8="))
        #expect(ThumbHash(hash.bytes) == hash)
    }

    @Test(arguments: [
        "", "=", "1QcS", "1QcSHQRnh493V4dIh4eXh1h4kJUIAA==", "not base 64", String(repeating: "A", count: 9_999),
    ])
    func otherTextsAreRefused(text: String) {
        #expect(ThumbHash(base64: text) == nil)
    }

    /// Every header has its own number of bytes; no other number is read.
    @Test func damagedHashesAreRefusedOrHaveAPicture() {
        var random = SplitMix(state: 3)
        var accepted = 0
        for _ in 0..<20_000 {
            let bytes = (0..<Int(random.next() % 36)).map { _ in UInt8(random.next() % 256) }
            guard let hash = ThumbHash(bytes) else { continue }
            accepted += 1
            let image = hash.image()
            #expect(
                image.pixels.bytes.count == image.size.pixelCount * 4 && max(image.size.width, image.size.height) == 32)
            _ = hash.averageColor
        }
        #expect(accepted > 50)
    }

    @Test func aPictureOfOneColorHasThatAverage() throws {
        let image = RasterImage(
            color: ImageColor(red: 250, green: 20, blue: 90), size: PixelSize(width: 300, height: 200))
        let color = try ThumbHash(image).averageColor
        for (one, other) in zip([color.red, color.green, color.blue, color.alpha], [250, 20, 90, 255] as [UInt8]) {
            #expect(abs(Int(one) - Int(other)) <= 8)
        }
        let clear = try ThumbHash(RasterImage(color: .clear, size: PixelSize(width: 3, height: 200)))
        #expect(clear.averageColor.alpha == 0 && clear.image().pixels.bytes.allSatisfy { $0 == 0 })
    }
}
