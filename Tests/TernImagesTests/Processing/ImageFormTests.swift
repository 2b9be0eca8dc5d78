#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Each operation on pixels carries each form of them, or refuses it with an error.
@Suite struct ImageFormTests {
    private static let bt2020 = ImageColorSpace.numbers(.init(primaries: 9, transfer: 14))
    private static let pq = ImageColorSpace.numbers(.init(primaries: 9, transfer: 16))
    private static let swapped = ImageColorSpace.profile(Data(ColorProfileFile.swapped))

    static let forms = [
        PixelForm.standard, PixelForm(space: .displayP3), PixelForm(space: swapped), PixelForm(space: bt2020),
        PixelForm(space: pq), PixelForm(component: .uint16), PixelForm(component: .uint16, space: .displayP3),
        PixelForm(component: .uint16, space: pq), PixelForm(component: .float16),
        PixelForm(component: .float16, space: swapped),
    ]

    private static func image(_ form: PixelForm, alpha: Bool = true) throws -> RasterImage {
        let words = try gradient(12, 8, alpha: alpha).converted(to: .asStored(form.component))
        return words.with(words.pixels.labeled(form), words.size)
    }

    /// The images that an operation carries.
    private enum Carried {
        case all, bytes, knownSpaces

        func includes(_ form: PixelForm) -> Bool {
            switch self {
            case .all: true
            case .bytes: form.component == .uint8
            case .knownSpaces: form.component == .uint8 && (form.space == .sRGB || form.space == .displayP3)
            }
        }
    }

    private static let operations: [(any ImageProcessor, Carried)] = [
        (.crop(to: PixelSize(width: 5, height: 4)), .all), (.crop(x: 3, y: 1, width: 4, height: 4), .all),
        (.flip(.horizontal), .all), (.flip(.vertical), .all), (.rotate(degrees: 90), .all),
        (.rotate(degrees: 180), .all), (.rotate(degrees: 270), .all),
        (.resize(to: PixelSize(width: 6, height: 4)), .all),
        (.resize(to: PixelSize(width: 24, height: 16), allowsUpsampling: true), .all),
        (.rotate(degrees: 30), .bytes), (.circle(), .bytes), (.roundedCorners(radius: 2), .bytes),
        (.gaussianBlur(radius: 2), .bytes), (.rotate(degrees: 30, background: .white), .knownSpaces),
        (.border(width: 1, color: .white), .knownSpaces),
        (.tint(ImageColor(red: 255, green: 0, blue: 0)), .knownSpaces),
        (.overlay(ImageColor(red: 255, green: 0, blue: 0, alpha: 9)), .knownSpaces), (.monochrome(), .knownSpaces),
        (.overlay(RasterImage(color: .white), identifier: "white"), .knownSpaces),
    ]

    @Test(arguments: forms) func processorsCarryOrRefuse(form: PixelForm) throws {
        let image = try Self.image(form)
        for (processor, carried) in Self.operations {
            if carried.includes(form) {
                let made = try processor.process(image)
                #expect(made.pixels.form == form, "\(processor.identifier)")
                #expect(made.byteCount == made.size.pixelCount * form.component.bytesPerPixel)
            } else {
                let error = #expect(throws: ImageError.self) { try processor.process(image) }
                #expect(error?.kind == .unsupported, "\(processor.identifier)")
            }
        }
        for orientation in 1...8 { #expect(try image.oriented(orientation).pixels.form == form) }
    }

    /// Words and halves take the same places as bytes, and resize to the same levels.
    @Test func deepPixelsGoWhereBytesGo() throws {
        let bytes = try Self.image(.standard)
        for component in [RasterImage.Component.uint16, .float16] {
            let deep = try bytes.converted(to: .asStored(component))
            #expect(try deep.converted(to: .asStored(.uint8)).pixels.bytes == bytes.pixels.bytes)
            for orientation in 1...8 {
                let turned = try deep.oriented(orientation).converted(to: .asStored(.uint8))
                #expect(try turned.pixels.bytes == bytes.oriented(orientation).pixels.bytes)
            }
            for (processor, carried) in Self.operations where carried == .all {
                let made = try processor.process(deep).converted(to: .asStored(.uint8))
                let expected = try processor.process(bytes)
                #expect(made.size == expected.size)
                let isResize = processor is ImageProcessors.Resize
                #expect(
                    zip(made.pixels.bytes, expected.pixels.bytes).allSatisfy {
                        abs(Int($0) - Int($1)) <= (isResize ? 2 : 0)
                    }, "\(processor.identifier)")
            }
        }
    }

    @Test func sRGBColorsArePaintedInTheImagesSpace() throws {
        let red = ImageColor(red: 255, green: 0, blue: 0)
        let image = try Self.image(PixelForm(space: .displayP3), alpha: false)
        let over = try ImageProcessors.Overlay(red).process(image)
        #expect(Array(over.pixels.bytes.prefix(4)) == [234, 51, 35, 255])
        let laid = try ImageProcessors.Overlay(RasterImage(color: red), identifier: "red").process(image)
        #expect(laid.pixels.bytes == over.pixels.bytes)
        let back = try over.converted(to: .sRGB).pixels.bytes.prefix(4)
        #expect(zip(back, [255, 0, 0, 255]).allSatisfy { abs(Int($0) - $1) <= 3 })
    }

    /// The space and the component that a file has after it is written, and whether it can be.
    @Test(arguments: forms) func encodersStateTheSpaceOrConvert(form: PixelForm) throws {
        let options = ImageDecodingOptions(color: .asStored(form.component))
        for encoding in [ImageEncoding.png(), .jpeg(quality: 100), .webp(quality: 100), .losslessWebP] {
            let image = try Self.image(form, alpha: encoding == .png() || encoding == .losslessWebP)
            if encoding == .png(), form.component == .float16 {
                let error = #expect(throws: ImageError.self) { try image.encoded(as: encoding) }
                #expect(error?.kind == .unsupported)
                continue
            }
            let again = try decoded([UInt8](try image.encoded(as: encoding)), options)
            switch (encoding, form.space) {
            case (.png, _), (_, .sRGB), (_, .displayP3), (_, .profile): #expect(again.colorSpace == form.space)
            case (_, Self.pq): #expect(again.colorSpace == .sRGB)
            default:
                guard case .profile = again.colorSpace else {
                    Issue.record("\(encoding) \(again.colorSpace)")
                    continue
                }
            }
            #expect(again.component == form.component)
            let (shown, expected) = (try again.converted(to: .sRGB), try image.converted(to: .sRGB))
            let differences = zip(shown.pixels.bytes, expected.pixels.bytes).map { Int($0) - Int($1) }
            // A lossy encoding mixes colors of neighbours, and keeps their means.
            let isExact = encoding == .png() || encoding == .losslessWebP
            for channel in 0..<4 {
                let of = stride(from: channel, to: differences.count, by: 4).map { differences[$0] }
                let off = isExact ? of.map(abs).max() ?? 0 : abs(of.reduce(0, +)) / of.count
                #expect(off <= 6, "\(encoding), channel \(channel)")
            }
        }
    }

    @Test func otherUsersConvert() throws {
        for form in Self.forms {
            let image = try Self.image(form)
            let plain = try image.converted(to: .sRGB)
            #expect(plain.pixels.form == .standard)
            #expect(try ThumbHash(image) == ThumbHash(plain))
            #expect(try BlurHash(image) == BlurHash(plain))
            #expect(image.isOpaque == plain.isOpaque)
            let frames = StillFrames(image: image)
            let gif = try decoded([UInt8](try frames.encoded(as: .gif)))
            let expected = try decoded([UInt8](try StillFrames(image: plain).encoded(as: .gif)))
            #expect(gif.pixels.bytes == expected.pixels.bytes)
            #expect(try ProcessedFrames(frames, processor: .flip(.vertical)).bytesPerPixel == image.bytesPerPixel)
        }
    }

    private struct StillFrames: ImageFrames {
        let image: RasterImage
        var count: Int { 1 }
        var loopCount: Int { 0 }
        var size: PixelSize { image.size }

        func frame(at index: Int) throws(ImageError) -> ImageFrame { ImageFrame(image: image, duration: .seconds(1)) }
    }

    @Test func damagedSpacesCannotBeConverted() throws {
        let spaces = [
            ImageColorSpace.profile(Data()), .profile(Data([UInt8](repeating: 1, count: 500))),
            .numbers(.init(primaries: 3, transfer: 13)), .numbers(.init(primaries: -1, transfer: 70_000)),
        ]
        for space in spaces {
            let image = try Self.image(PixelForm(space: space))
            for color in [ImageDecodingOptions.Color.sRGB, .displayP3] {
                let error = #expect(throws: ImageError.self) { try image.converted(to: color) }
                #expect(error?.kind == .unsupported)
            }
            #expect(throws: ImageError.self) { try image.encoded(as: .jpeg()) }
        }
    }

    /// Sixteen bits are converted before eight are left of them.
    @Test(arguments: [ImageColorSpace.displayP3, .numbers(.init(primaries: 1, transfer: 8)), swapped])
    func colorsAreConvertedFromAllBits(space: ImageColorSpace) throws {
        var bytes: [UInt8] = []
        for index in 0..<300 * 300 {
            let ramp = UInt16(truncatingIfNeeded: index)
            for word in [ramp, ramp / 2, 65_535 - ramp, 65_535] {
                bytes += [UInt8(word & 255), UInt8(word >> 8)]
            }
        }
        let size = PixelSize(width: 300, height: 300)
        let image = try #require(
            RasterImage(size: size, premultiplied: bytes, component: .uint16, colorSpace: space))
        let file = [UInt8](try image.encoded(as: .png()))
        let (direct, expected) = (try decoded(file), try image.converted(to: .sRGB))
        #expect(direct.component == .uint8 && direct.colorSpace == .sRGB)
        #expect(zip(direct.pixels.bytes, expected.pixels.bytes).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
        // The file is decoded from eight bits where the memory for more is missing.
        let limits = ImageDecodingOptions.Limits(memory: 1_600_000)
        let small = try decoded(file, ImageDecodingOptions(limits: limits))
        #expect(small.size == size && small.component == .uint8)
    }

    @Test func lightIsAveragedWhereItIsKnown() throws {
        let image = try Self.image(PixelForm(space: Self.swapped), alpha: false)
        let file = [UInt8](try image.encoded(as: .png()))
        let target = PixelSize(width: 6, height: 4)
        var options = ImageDecodingOptions(targetSize: target, color: .asStored())
        let plain = try decoded(file, options)
        options.resizesInLinearLight = true
        let light = try decoded(file, options)
        #expect(zip(plain.pixels.bytes, light.pixels.bytes).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
        let error = #expect(throws: ImageError.self) { try image.resized(to: target, inLinearLight: true) }
        #expect(error?.kind == .unsupported)
    }

    @Test func lightAboveWhiteIsWrittenInSRGB() throws {
        let linear = PixelForm(component: .float16, space: .numbers(.init(primaries: 1, transfer: 8)))
        let image = try Self.image(linear, alpha: false)
        let again = try decoded([UInt8](try image.encoded(as: .losslessWebP)), ImageDecodingOptions(color: .asStored()))
        #expect(try again.colorSpace == .sRGB && again.pixels.bytes == image.converted(to: .sRGB).pixels.bytes)
    }

    @Test func memoryOfAConversionIsThatOfItsResult() throws {
        // 8,200 × 8,200 pixels are 269 MB of bytes, and 538 MB of words.
        let image = RasterImage(color: .white, size: PixelSize(width: 8200, height: 8200))
        let error = #expect(throws: ImageError.self) { try image.converted(to: .asStored(.uint16)) }
        #expect(error?.kind == .limitExceeded)
    }

    @Test func theBytesOfAnImageFitItsComponent() {
        let size = PixelSize(width: 2, height: 1)
        #expect(RasterImage(size: size, premultiplied: [UInt8](repeating: 0, count: 8), component: .uint16) == nil)
        let image = RasterImage(size: size, premultiplied: [UInt8](repeating: 0, count: 16), component: .float16)
        #expect(image?.bytesPerRow == 16 && image?.component == .float16 && image?.isOpaque == false)
    }
}
#endif
