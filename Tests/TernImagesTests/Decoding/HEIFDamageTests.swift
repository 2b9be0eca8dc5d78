#if os(Linux)
import Tern
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Pictures whose HEVC streams are damaged: each is an error, or has the same pixels whatever the memory held before.
@Suite(.enabled(if: LoadedLibrary.heif.obstacle == nil, "libheif or libde265 is missing: scripts/set-up test"))
struct HEIFDamageTests {
    /// Returns the NAL units of a stream.
    private func units(_ stream: [UInt8]) -> [[UInt8]] {
        var (rest, units) = (stream[...], [[UInt8]]())
        while rest.count >= 4 {
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            units.append(Array(rest.dropFirst(4).prefix(count)))
            rest = rest.dropFirst(4 + count)
        }
        return units
    }

    private func file(_ units: [[UInt8]], of coded: HEIFFile.Coded = HEIFFile.slices) -> [UInt8] {
        let stream = units.flatMap { big($0.count, 4) + $0 }
        return HEIFFile(items: [HEIFFile.coded(HEIFFile.Coded(setup: coded.setup, units: stream))]).bytes
    }

    private func error(_ bytes: [UInt8]) -> ImageError? {
        do throws(ImageError) {
            _ = try decoded(bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test func aPictureInSlicesIsWhole() throws {
        let slices = units(HEIFFile.slices.units)
        try #require(slices.count == 3)
        let picture = try decoded(file(slices))
        #expect(picture.size == PixelSize(width: 64, height: 64) && !picture.metadata.isPartial)
        // Information that is not of the picture, as cameras add it, changes nothing.
        let note: [UInt8] = [39 << 1, 1, 5, 1, 7, 0x80]
        #expect(try decoded(file([note] + slices)).pixels.bytes == picture.pixels.bytes)
    }

    @Test(arguments: 0..<3) func aMissingSliceIsCorrupt(index: Int) {
        var slices = units(HEIFFile.slices.units)
        slices.remove(at: index)
        #expect(error(file(slices))?.kind == .corrupt)
    }

    @Test(arguments: 0..<3, [4, 20, 60]) func aCutSliceIsCorrupt(index: Int, left: Int) {
        var slices = units(HEIFFile.slices.units)
        slices[index] = Array(slices[index].prefix(left))
        #expect(error(file(slices))?.kind == .corrupt)
    }

    @Test func slicesInAnotherOrderAndTwoPicturesAreCorrupt() {
        let slices = units(HEIFFile.slices.units)
        #expect(error(file([slices[1], slices[0], slices[2]]))?.kind == .corrupt)
        #expect(error(file(slices + slices))?.kind == .corrupt)
        #expect(error(file([]))?.kind == .corrupt)
    }

    @Test func aPictureThatRefersToOthersIsCorrupt() throws {
        var slices = units(HEIFFile.slices.units)
        // Behind the header of the unit: 1 for the first slice, 0, 1 for the set, 011 for a slice without references.
        try #require(slices[0][2] >> 2 == 0b10_1011)
        slices[0][2] -= 4
        let referring = error(file(slices))
        #expect(referring?.kind == .corrupt && referring?.message.contains("other pictures") == true)
        slices = units(HEIFFile.slices.units)
        // A picture that follows another one.
        slices[0][0] = 1 << 1
        #expect(error(file(slices))?.kind == .corrupt)
    }

    @Test func aPartOfADamagedPictureIsEmpty() throws {
        let slices = units(HEIFFile.slices.units)
        let part = try decoded(file([slices[0], slices[2]]), ImageDecodingOptions(allowsPartial: true))
        #expect(part.metadata.isPartial && part.pixels.bytes.allSatisfy { $0 == 0 })
    }

    /// Decodes each file twice, in memory that was filled with another byte before.
    @Test func noPixelShowsOldMemory() throws {
        func dirty(_ byte: UInt8) {
            // Blocks of the sizes that the decoder takes, freed behind the last use.
            for size in [480, 4064, 5000, 8160, 16_352, 20_448, 40_000] {
                let blocks = (0..<12).map { _ in [UInt8](repeating: byte, count: size) }
                withExtendedLifetime(blocks) {}
            }
        }
        var state: UInt64 = 7
        func random(_ below: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % below
        }
        var pictures = 0
        for round in 0..<240 {
            let coded = [HEIFFile.slices, HEIFFile.color, HEIFFile.deep][round % 3]
            var units = units(coded.units)
            let index = random(units.count)
            switch round % 4 {
            case 0: units[index].removeLast(random(units[index].count - 3))
            case 1: units[index][2 + random(units[index].count - 2)] = UInt8(random(256))
            case 2: units[index][2 + random(units[index].count - 2)] ^= 1 << UInt8(random(8))
            default: units[index][units[index].count - 1 - random(8)] ^= 1 << UInt8(random(8))
            }
            let bytes = file(units, of: coded)
            let results = [UInt8(0), 0xAA, 0x55].map { byte -> Result<[UInt8], ImageError> in
                dirty(byte)
                return Result { () throws(ImageError) in try [UInt8](decoded(bytes).pixels.bytes) }
            }
            let pixels = results.map { try? $0.get() }
            #expect(pixels[0] == pixels[1] && pixels[0] == pixels[2], "round \(round)")
            if pixels[0] != nil { pictures += 1 }
        }
        // Damage that gives another picture is one that the format cannot tell.
        #expect(pictures > 0 && pictures < 60, "\(pictures) pictures")
    }
}

/// HEIC in a pipeline.
@Suite(
    .timeLimit(.minutes(1)),
    .enabled(if: LoadedLibrary.heif.obstacle == nil, "libheif or libde265 is missing: scripts/set-up test"))
struct HEIFPipelineTests {
    private let kit = PipelineKit(picture: Data())

    private func request(_ identifier: String) -> ImageRequest {
        ImageRequest(.data(identifier) { Data(HEIFFile.picture().bytes) })
    }

    @Test func aPipelineDecodesHEIC() async throws {
        let response = try await kit.pipeline.response(for: request("picture"))
        #expect(response.image.size == PixelSize(width: 24, height: 16) && response.image.format == .heic)
        #expect(kit.decoder.decodes == 1)
    }

    @Test func theBuiltInPipelinesDecodersTakeHEIC() throws {
        let bytes = Data(HEIFFile.picture().bytes)
        #expect(try ImageDecoders().decoder(for: bytes) is CodecImageDecoder)
    }

    @Test func aPipelineKeepsItsLimits() async {
        var large = request("large")
        large.options.limits.pixels = 24 * 16 - 1
        let error = await kit.pipeline.failure(of: large)
        #expect(error?.kind == .limitExceeded && error?.format == .heic)
    }

    @Test func aCancelledLoadDecodesNothing() async throws {
        let gate = LoopbackServer.Gate()
        let held = ImageRequest(
            .data("held") {
                try await gate.wait()
                return Data(HEIFFile.picture().bytes)
            })
        let waiting = Task { try await kit.pipeline.image(from: held) }
        waiting.cancel()
        let error = await #expect(throws: ImageError.self) { _ = try await waiting.value }
        #expect(error?.kind == .cancelled)
        gate.open()
        #expect(kit.decoder.decodes == 0)
    }
}
#endif
