#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests how the decoder of Apple's systems detects that a file is cut short. It reads only structure, so these tests
/// can run on Linux.
@Suite struct FileEndTests {
    private static func picture() throws -> RasterImage {
        let bytes = (0..<12 * 9).flatMap { pixel -> [UInt8] in [UInt8(pixel * 2), UInt8(pixel), 99, 255] }
        return try #require(RasterImage(size: PixelSize(width: 12, height: 9), premultiplied: bytes))
    }

    private static func file(_ format: ImageFormat) throws -> Data {
        let animation = GIFFile(width: 3, height: 1, frames: [.init(rows: [[0, 1, 2]]), .init(rows: [[2, 1, 0]])])
        return switch format {
        case .jpeg: try picture().encoded(as: .jpeg())
        case .png: try picture().encoded(as: .png())
        case .webp: try picture().encoded(as: .losslessWebP)
        case .gif: Data(animation.bytes)
        default: Data(box("ftyp", Array("avif".utf8)) + box("meta", [1, 2, 3]) + box("mdat", [9, 8, 7, 6]))
        }
    }

    private static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        [0, 0, 0, UInt8(content.count + 8)] + Array(type.utf8) + content
    }

    private static let formats = [ImageFormat.jpeg, .png, .webp, .gif, .avif]

    @Test(arguments: formats) func aWholeFileReachesItsEnd(_ format: ImageFormat) throws {
        #expect(FileEnd.isReached(by: try Self.file(format), format))
    }

    @Test(arguments: formats) func bytesAfterTheEndAreIgnored(_ format: ImageFormat) throws {
        let file = try Self.file(format)
        #expect(FileEnd.isReached(by: file + Data(Self.box("junk", [0, 0xFF, 0xD9])), format))
    }

    @Test(arguments: formats) func noCutReachesIt(_ format: ImageFormat) throws {
        let file = try Self.file(format)
        // Between two boxes, a file of boxes looks whole. Its decoder has to detect the missing part.
        let between = format == .avif ? [12, 23] : []
        for count in 8..<file.count where !between.contains(count) {
            #expect(!FileEnd.isReached(by: file.prefix(count), format), "\(count) of \(file.count) bytes")
        }
    }

    @Test(arguments: formats) func tooFewBytesAreNoEnd(_ format: ImageFormat) throws {
        let file = try Self.file(format)
        for count in 0..<8 where format != .avif {
            #expect(!FileEnd.isReached(by: file.prefix(count), format), "\(count) bytes")
        }
    }

    /// ImageIO does not tell whether pixels are missing, so all other files must have their end to be whole there.
    @Test(arguments: formats) func aStillGIFAloneIsWholeWithoutItsEnd(_ format: ImageFormat) throws {
        let file = try Self.file(format)
        #expect(FileEnd.isWhole(file, format))
        #expect(!FileEnd.isWhole(file.dropLast(), format))
        let still = Data(GIFFile(width: 3, height: 1, frames: [.init(rows: [[0, 1, 2]], delay: 0)]).bytes)
        #expect(FileEnd.isWhole(still.dropLast(), .gif))
        #expect(!FileEnd.isReached(by: still.dropLast(), .gif))
    }

    @Test func anIconEndsWithItsLastEntry() {
        let icon = Data(IconFile(entries: [[1, 2, 3], [4, 5]]).bytes)
        #expect(FileEnd.isReached(by: icon, .ico))
        for count in 0..<icon.count { #expect(!FileEnd.isReached(by: icon.prefix(count), .ico)) }
        #expect(FileEnd.isWhole(icon.dropLast(), .ico))
    }

    @Test func theEndOfAThumbnailIsNotThePictures() throws {
        let file = try Self.file(.jpeg)
        let thumbnail: [UInt8] = [0xFF, 0xE1, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9]
        let whole = file.prefix(2) + Data(thumbnail) + file.dropFirst(2)
        #expect(FileEnd.isReached(by: whole, .jpeg))
        #expect(!FileEnd.isReached(by: whole.prefix(whole.count - 2), .jpeg))
    }

    @Test func mutatedFilesEndTheSearch() throws {
        var random = SystemRandomNumberGenerator()
        for format in Self.formats {
            let file = [UInt8](try Self.file(format))
            for _ in 0..<500 {
                var mutated = file
                for _ in 0..<4 { mutated[Int.random(in: 0..<file.count, using: &random)] = .random(in: 0...255) }
                _ = FileEnd.isReached(by: Data(mutated), format)
            }
        }
    }
}
#endif
