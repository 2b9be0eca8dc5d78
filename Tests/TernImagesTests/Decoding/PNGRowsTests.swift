#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The two readers of a PNG's rows: Tern's, which decompresses all data at once, and libpng's, which a sound file has only
/// if its data would exceed the memory limit. Every file ends in the same way with both.
struct PNGRowsTests {
    /// A color type, the bits of a sample, and the samples of a pixel (W3C PNG, third edition, §11.2.1).
    struct Kind: CustomTestStringConvertible {
        let color: UInt8
        let depth: Int
        let channels: Int

        var testDescription: String { "color type \(color), \(depth) bits" }

        static let all = [
            (0, 1, 1), (0, 2, 1), (0, 4, 1), (0, 8, 1), (0, 16, 1), (2, 8, 3), (2, 16, 3), (3, 1, 1), (3, 2, 1),
            (3, 4, 1), (3, 8, 1), (4, 8, 2), (4, 16, 2), (6, 8, 4), (6, 16, 4),
        ].map { Kind(color: UInt8($0.0), depth: $0.1, channels: $0.2) }
    }

    /// How a decode ends: an image, or an error.
    private enum Outcome: Equatable, CustomStringConvertible {
        case image(PixelSize, isPartial: Bool, isComplete: Bool, [UInt8])
        case error(ImageError.Kind, String)

        init(_ bytes: [UInt8], _ options: ImageDecodingOptions) {
            do throws(ImageError) {
                let image = try decoded(bytes, options)
                self = .image(
                    image.size, isPartial: image.metadata.isPartial, isComplete: image.metadata.isComplete,
                    image.pixels.bytes)
            } catch {
                self = .error(error.kind, error.message)
            }
        }

        var description: String {
            switch self {
            case .image(let size, let isPartial, let isComplete, let pixels):
                "\(size) \(isPartial ? "partial " : "")\(isComplete ? "" : "cut ")\(pixels.hashValue)"
            case .error(let kind, let message): "\(kind): \(message)"
            }
        }
    }

    private static let (height, signature) = (11, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] as [UInt8])

    /// The same numbers in every run.
    private static func noise(_ count: Int) -> [UInt8] {
        var state: UInt32 = 1
        return (0..<count).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24)
        }
    }

    /// Returns rows of noise with a filter, or with all of them in turn, each behind its filter.
    private static func rows(_ kind: Kind, _ width: Int, filter: Int?) -> [UInt8] {
        let count = (width * kind.channels * kind.depth + 7) / 8
        var rows = noise((count + 1) * height)
        for y in 0..<height { rows[y * (count + 1)] = UInt8(filter ?? [4, 4, 3, 4, 2, 1, 0][y % 7]) }
        return rows
    }

    /// Returns a file whose data are in three chunks, one of them empty.
    private static func file(_ kind: Kind, width: Int, hasKey: Bool = false, stream: [UInt8]) -> [UInt8] {
        var extra: [UInt8] = []
        if kind.color == 3 {
            // Some samples have no color.
            let count = kind.depth == 8 ? 200 : max(1, (1 << kind.depth) - 1)
            extra += chunk("PLTE", noise(count * 3))
            if hasKey { extra += chunk("tRNS", noise((count + 1) / 2)) }
        } else if kind.color < 3, hasKey {
            // The first pixel behind the filter.
            let samples = kind.depth < 8 ? [0, 1] : Array(stream.dropFirst(8).prefix(kind.channels * kind.depth / 8))
            extra += chunk("tRNS", kind.depth == 8 ? samples.flatMap { [0, $0] } : samples)
        }
        let header = big(width, 4) + big(height, 4) + [UInt8(kind.depth), kind.color, 0, 0, 0]
        return signature + chunk("IHDR", header) + extra + chunk("IDAT", Array(stream.prefix(7))) + chunk("IDAT", [])
            + chunk("IDAT", Array(stream.dropFirst(7))) + chunk("IEND", [])
    }

    /// Returns the least memory that is enough to decode a file, row by row.
    private static func leastMemory(_ bytes: [UInt8], _ target: PixelSize?) -> Int {
        var (low, high) = (0, 8 << 20)
        while high - low > 1 {
            let middle = (low + high) / 2
            let options = ImageDecodingOptions(targetSize: target, limits: .init(memory: middle))
            if errorKind(bytes, options) == .limitExceeded { low = middle } else { high = middle }
        }
        return high
    }

    /// Encoders state a smaller window than their distances need, which most readers do not look at (libpng's manual,
    /// PNG_MAXIMUM_INFLATE_WINDOW). Every fourth row is the same, so that the distances are four rows.
    @Test(arguments: UInt8(0)..<8) func aWindowThatIsStatedTooSmallDoesNotMatter(bits: UInt8) throws {
        let noise = Self.noise(400 * 4 * 3)
        var pixels: [UInt8] = []
        for y in 0..<40 {
            for x in 0..<400 { pixels += noise[(y % 4 * 400 + x) * 3..<(y % 4 * 400 + x + 1) * 3] + [255] }
        }
        let picture = try #require(RasterImage(size: PixelSize(width: 400, height: 40), premultiplied: pixels))
        var bytes = Array(try picture.encoded(as: .png()))
        let name = try #require(bytes.firstRange(of: Array("IDAT".utf8)))
        let length = bytes[..<name.lowerBound].suffix(4).reduce(0) { $0 << 8 | Int($1) }
        var data = Array(bytes[name.upperBound...].prefix(length))
        data[0] = bits << 4 | 8
        data[1] = UInt8((31 - Int(data[0]) * 256 % 31) % 31)
        bytes.replaceSubrange(name.lowerBound - 4..<name.upperBound + length + 4, with: chunk("IDAT", data))
        for memory in [nil, Self.leastMemory(bytes, nil)] {
            let options = ImageDecodingOptions(limits: .init(memory: memory))
            #expect(try decoded(bytes, options).pixels.bytes == pixels)
        }
    }

    @Test(arguments: Kind.all) func bothReadersMakeTheSamePixels(kind: Kind) {
        for (width, target) in [(61, nil), (3, nil), (1, nil), (61, PixelSize(width: 20, height: 20))] {
            var least: Int?
            for hasKey in kind.color <= 3 ? [false, true] : [false] {
                for filter in [0, 1, 2, 3, 4, nil] {
                    let stream = InterlacedFixtures.stored(Self.rows(kind, width, filter: filter))
                    let bytes = Self.file(kind, width: width, hasKey: hasKey, stream: stream)
                    let known = least ?? Self.leastMemory(bytes, target)
                    least = known
                    let quick = Outcome(bytes, ImageDecodingOptions(targetSize: target))
                    let slow = Outcome(bytes, ImageDecodingOptions(targetSize: target, limits: .init(memory: known)))
                    #expect(quick == slow, "\(width), filter \(filter ?? -1), key \(hasKey)")
                    guard case .image(_, false, true, _) = quick else {
                        Issue.record("\(quick)")
                        return
                    }
                }
            }
        }
    }

    /// Every kind of damage behind the header, as a change of the data, of the file, or of both.
    @Test(arguments: [Kind.all[3], Kind.all[5], Kind.all[6], Kind.all[13]])
    func damageEndsInTheSameWay(kind: Kind) {
        let width = 40
        let rows = Self.rows(kind, width, filter: nil)
        let stream = InterlacedFixtures.stored(rows)
        let sound = Self.file(kind, width: width, stream: stream)
        let start = sound.count - 12 - (stream.count - 7) - 4
        var files: [(String, [UInt8])] = []
        for place in [0, 1, 2, 3, 10, 60, stream.count / 2, stream.count - 5, stream.count - 1] {
            var changed = stream
            changed[place] ^= 0x10
            files.append(("byte \(place)", Self.file(kind, width: width, stream: changed)))
            if place > 7 {
                var damaged = sound
                damaged[start + place - 7] ^= 1
                files.append(("checksum of byte \(place)", damaged))
            }
            files.append(("cut at \(place)", Array(sound.prefix(start + max(0, place - 7)))))
            files.append(("a stream of \(place)", Self.file(kind, width: width, stream: Array(stream.prefix(place)))))
        }
        for filter in [5, 255] as [UInt8] {
            var changed = rows
            changed[(rows.count / Self.height) * 6] = filter
            let stream = InterlacedFixtures.stored(changed)
            files.append(("filter \(filter)", Self.file(kind, width: width, stream: stream)))
        }
        for (name, changed) in [("rows too few", Array(rows.dropLast(9))), ("rows too many", rows + [1, 2, 3])] {
            files.append((name, Self.file(kind, width: width, stream: InterlacedFixtures.stored(changed))))
        }
        files.append(("bytes behind the stream", Self.file(kind, width: width, stream: stream + [1, 2, 3])))
        files.append(("no end", Array(sound.dropLast(12))))
        files.append(("an end of another length", Array(sound.dropLast(12)) + chunk("IEND", [0])))
        for (name, chunks) in [
            ("data behind text", chunk("tEXt", [65, 0]) + chunk("IDAT", [0])),
            ("a palette", chunk("PLTE", [1, 2, 3])), ("an unknown critical chunk", chunk("TERN", [1])),
            ("text", chunk("tEXt", [65, 0, 66])),
        ] {
            files.append((name + " behind the data", sound.dropLast(12) + chunks + sound.suffix(12)))
        }
        let least = Self.leastMemory(sound, nil)
        var kinds: Set<String> = []
        for (name, bytes) in files {
            for allowsPartial in [false, true] {
                let quick = Outcome(bytes, ImageDecodingOptions(allowsPartial: allowsPartial))
                let slow = Outcome(
                    bytes, ImageDecodingOptions(limits: .init(memory: least), allowsPartial: allowsPartial))
                #expect(quick == slow, "\(name)")
                if case .error(let kind, _) = quick { kinds.insert("\(kind)") }
            }
        }
        #expect(kinds == ["corrupt", "truncated"])
    }

    @Test func aCancelledTaskDecodesNothing() async throws {
        let bytes = [UInt8](try gradient(200, 200).encoded(as: .png()))
        for target in [nil, PixelSize(width: 20, height: 20)] {
            let task = Task { () -> ImageError.Kind? in
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return errorKind(bytes, ImageDecodingOptions(targetSize: target))
            }
            #expect(await task.value == .cancelled)
        }
    }

    /// A PNG without passes has nothing to show before its end.
    @Test(arguments: [nil, PixelSize(width: 20, height: 20)])
    func aFileThatComesIsDecodedWhenItsEndIsThere(target: PixelSize?) throws {
        let bytes = [UInt8](try gradient(200, 200, alpha: true).encoded(as: .png()))
        let options = ImageDecodingOptions(targetSize: target)
        let decoder = IncrementalDecoder(options: options)
        for byte in bytes.dropLast() {
            #expect(try !decoder.append(Data([byte])))
            #expect(!decoder.isComplete)
        }
        #expect(try !decoder.append(Data(bytes.suffix(1))))
        #expect(decoder.isComplete)
        #expect(try decoder.finish().pixels.bytes == decoded(bytes, options).pixels.bytes)
    }

    @Test func theLibraryIsFoundOrNamed() {
        #expect(LoadedLibrary.deflate.obstacle.map { $0.contains("libdeflate0") } ?? true)
    }
}
#endif
