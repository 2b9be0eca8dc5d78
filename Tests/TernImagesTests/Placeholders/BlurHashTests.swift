import Testing

@testable import TernImages

@Suite struct BlurHashTests {
    struct Row: Sendable {
        let kind: Int
        let size: PixelSize
        let columns: Int
        let rows: Int
        let hash: String
        /// The digest of the decoded picture of 20×13.
        let digest: UInt64

        init(_ kind: Int, _ width: Int, _ height: Int, _ columns: Int, _ rows: Int, _ hash: String, _ digest: UInt64) {
            (self.kind, self.columns, self.rows, self.hash) = (kind, columns, rows, hash)
            (size, self.digest) = (PixelSize(width: width, height: height), digest)
        }
    }

    static let rows = [
        Row(5, 40, 30, 4, 3, "LiDIj]2R;+OBm9Wajra#gyfhfRfi", 0xA2B6_A586_D405_D379),
        Row(1, 24, 61, 4, 4, "U9HVC#-@jV-%n2VWZ+i*Ryr:jba#a2RYm:n9", 0xA378_C2AC_261D_4E7B),
        Row(4, 64, 20, 3, 4, "TZC_Kl2-wyq5W;jtg0fQfQpXW.jt", 0x571D_D913_F06A_56F4),
        Row(5, 13, 13, 1, 1, "00CPCb", 0x325D_8C7D_761A_7AE5),
        Row(
            1, 100, 7, 9, 9,
            "|RHLe;VqVvirRNr#VunOVu-XjCaei@WKj_epf2bXaea#WUjdb2fyaej:bL?HjZaef5avkDeofBe;V[WUWUjWWabJWCf5bD.7afWVafW-"
                + "fhWUadWGi~awayjDjdf,e:bIob-;NbR+xDWCniSeoHj^i~awayjDjdf,e:bIob", 0x2874_AABA_6BDF_CFC8),
        Row(4, 7, 99, 5, 2, "D%18_VcAfPgefPhSf~fQf~fQ", 0x3352_804C_F36D_3E14),
        Row(5, 99, 100, 2, 5, "bkDbyd2Rh$a+g{fhifa#gKfP", 0x2148_4BD2_F998_40E4),
    ]

    @Test(arguments: rows) func hashesAreThoseOfTheReference(row: Row) throws {
        let picture = PlaceholderPictures.picture(row.kind, row.size.width, row.size.height, isOpaque: true)
        let hash = try BlurHash(picture, columns: row.columns, rows: row.rows)
        #expect(hash.text == row.hash && hash == BlurHash(row.hash))
    }

    @Test(arguments: rows) func pixelsAreThoseOfTheReference(row: Row) throws {
        let hash = try #require(BlurHash(row.hash))
        #expect(hash.columns == row.columns && hash.rows == row.rows)
        #expect(PlaceholderPictures.digest(hash.image(size: PixelSize(width: 20, height: 13))) == row.digest)
    }

    @Test(arguments: [
        "", "L", "00CPC", "00CPCb0", "LiDIj]2R;+OBm9Wajra#gyfhfRf", "LiDIj]2R;+OBm9Wajra#gyfhfR i", "00~~~~", "é0CPCb",
        String(repeating: "0", count: 10_000),
        // The second component is beyond the last one.
        "10CPCb~~",
    ])
    func otherTextsAreRefused(text: String) { #expect(BlurHash(text) == nil) }

    @Test func sizesAreClamped() throws {
        let hash = try #require(BlurHash("00CPCb"))
        #expect(hash.image(size: PixelSize(width: 0, height: -1)).size == PixelSize(width: 1, height: 1))
        #expect(hash.image(size: PixelSize(width: .max, height: 2)).size == PixelSize(width: 512, height: 2))
        let average = hash.averageColor
        #expect(hash.image().pixel(3, 3) == [average.red, average.green, average.blue, 255])
        #expect(try BlurHash(hash.image(), columns: 0, rows: 99).rows == 9)
    }
}
