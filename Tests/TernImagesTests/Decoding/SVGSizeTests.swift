#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the size that is read from the first element, for which no process is started.
@Suite struct SVGSizeTests {
    @Test(arguments: [
        ("width='24' height='20'", 24, 20), ("width=\"24px\"\n height = '20PX'", 24, 20),
        ("width='72pt' height='1in'", 96, 96), ("width='2.54cm' height='25.4mm'", 96, 96),
        ("width='6pc' height='101.6q'", 96, 96), ("width='2em' height='4ex'", 32, 32),
        ("width='1e2' height='.5E+1px'", 100, 5), ("width=' 24 ' height='+20'", 24, 20),
        ("viewBox='-3,7 , 50 25'", 50, 25), ("width='100' viewBox='0 0 50 25'", 100, 50),
        ("height='100' viewBox='0 0 50 25'", 200, 100), ("width='50%' height='100%' viewBox='0 0 50 25'", 50, 25),
        ("width='auto' height='30' viewBox='0 0 50 25'", 60, 30), ("", 300, 150), ("width='40'", 40, 150),
        ("height='40'", 300, 40), ("width='-5' height='calc(1px)'", 300, 150), ("width='&#49;' height='3'", 300, 3),
        ("viewBox='0 0 0 25'", 300, 150), ("viewBox='0 0 50'", 300, 150), ("viewBox='0 0 0.1 0.2'", 0.5, 1),
        ("width='1e30' height='1e400'", 1e9, 1e9), ("style='width:5px' width='24' height='20' width2='9'", 24, 20),
        ("title='>' width='24' height='20'", 24, 20),
    ])
    func theSizeIsReadFromTheFirstElement(attributes: String, width: Double, height: Double) throws {
        let size = try SVGImageDecoder.size(of: SVGFile.file(attributes))
        #expect(abs(size.width - width) < width * 1e-9 && abs(size.height - height) < height * 1e-9, "\(size)")
        // The digits, and no rule of the locale.
        #expect(try SVGImageDecoder.size(of: SVGFile.file(attributes) + Data("<!-- -->\n".utf8)) == size)
    }

    private static let plain = "<svg width='24' height='20'/>"

    @Test(arguments: [
        plain, "\u{FEFF}\n\(plain)", "<?xml version='1.0' encoding='latin1'?><!-- \u{E9} <svg width='1'> -->\(plain)",
        "<!DOCTYPE svg PUBLIC '>' \"]>\" [<!ENTITY a \"]>\"><!-- ]> ' --><?p ]> ' ?><!ATTLIST svg x CDATA '>'>] >\(plain)",
        "<a.b:svg xmlns:a.b='x' width='24' height='20'></a.b:svg>",
        "<!--" + String(repeating: " -- ", count: 200_000) + "-->" + plain,
    ])
    func theFirstElementIsFoundBehindOtherThings(text: String) throws {
        let size = DrawingSize(width: 24, height: 20)
        #expect(try SVGImageDecoder.size(of: Data(text.utf8)) == size)
        // The mark of the byte order is written below.
        let units = text.utf16.drop { $0 == 0xFEFF }
        let (low, high) = (units.map { UInt8($0 & 0xFF) }, units.map { UInt8($0 >> 8) })
        let wide = zip(low, high).flatMap { [$0, $1] }
        let swapped = zip(low, high).flatMap { [$1, $0] }
        if text.utf16.count < 500_000 {
            #expect(try SVGImageDecoder.size(of: Data([0xFF, 0xFE] + wide)) == size)
            #expect(try SVGImageDecoder.size(of: Data([0xFE, 0xFF] + swapped)) == size)
        }
        if text.hasPrefix("<?") {
            #expect(try SVGImageDecoder.size(of: Data(wide)) == size)
            #expect(try SVGImageDecoder.size(of: Data(swapped)) == size)
        }
        #expect(SVGImageDecoder().format(of: Data(text.utf8)) == .svg)
    }

    /// gzip of `plain`.
    static let compressed: [UInt8] = [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 3, 0xB3, 0x29, 0x2E, 0x4B, 0x57, 0x28, 0xCF, 0x4C, 0x29, 0xC9, 0xB0, 0x55,
        0x37, 0x32, 0x51, 0x57, 0xC8, 0x48, 0xCD, 0x4C, 0xCF, 0x28, 0x01, 0xB2, 0x0D, 0xD4, 0xF5, 0xED, 0x00, 0xFF,
        0x38, 0x65, 0x2E, 0x1D, 0, 0, 0,
    ]

    @Test func aCompressedFileIsReadAsFarAsNeeded() throws {
        let size = try SVGImageDecoder.size(of: Data(Self.compressed))
        #expect(size == DrawingSize(width: 24, height: 20))
        #expect(SVGImageDecoder().format(of: Data(Self.compressed)) == .svg)
        #expect(SVGImageDecoder().format(of: Data(Self.compressed.prefix(14))) == nil)
    }

    @Test(arguments: [
        "", "<", "<svgx/>", "<a><svg width='1'/></a>", "<html><svg/></html>", "text <svg/>", "<!-- <svg/>",
        "<!DOCTYPE svg [<svg/>", "<?xml <svg/>", "<SVG/>", "<x:y:svg/>", "\u{1F}\u{8B}", "{\"a\": 1}",
        "<!--" + String(repeating: "x", count: 1 << 20) + "--><svg/>",
    ])
    func otherBytesAreNoSVG(text: String) {
        #expect(SVGImageDecoder().format(of: Data(text.utf8)) == nil)
        #expect(SVGImageDecoder().failure(Data(text.utf8))?.kind == (text.isEmpty ? .truncated : .unsupported))
    }

    @Test(
        arguments: [
            ("<svg", .truncated), ("<svg width='2", .truncated), ("<svg width=", .truncated), ("<svg width>", .corrupt),
            ("<svg width=2>", .corrupt), ("<svg a='<'>", .corrupt), ("<svg ='2'>", .corrupt),
            ("<svg width='0' height='2'/>", .corrupt), ("<svg width='1e-9' height='2'/>", .corrupt),
            ("<svg width='1' viewBox='0 0 1e9 1'/>", .corrupt),
        ] as [(String, ImageError.Kind)])
    func aFaultyFirstElementIsAnError(text: String, kind: ImageError.Kind) {
        let decoder = SVGImageDecoder(program: URL(filePath: "/nonexistent/rsvg-convert"))
        #expect(decoder.format(of: Data(text.utf8)) == .svg)
        let error = decoder.failure(Data(text.utf8))
        #expect(error?.kind == kind && error?.format == .svg, "\(String(describing: error))")
    }

    @Test(
        arguments: [
            ((24, 24), (200, 200), .fit, (200, 200), (200, 200)), ((24, 12), (200, 200), .fit, (200, 100), (200, 100)),
            ((24, 12), (200, 200), .fill, (400, 200), (200, 200)),
            ((24, 12), (200, 200), .atLeast, (400, 200), (400, 200)),
            ((2_000, 1_000), (100, 100), .fit, (100, 50), (100, 50)),
            ((0.3, 1), (100, 100), .fit, (30, 100), (30, 100)),
            ((10.2, 37.801), (0, 9), .fit, (11, 38), (11, 38)), ((200.001, 1e9), (10, 10), .fit, (1, 10), (1, 10)),
            ((1e9, 0.001), (10, 10), .fill, (2_147_483_647, 10), (10, 10)),
        ] as [((Double, Double), (Int, Int), ImageDecodingOptions.ContentMode, (Int, Int), (Int, Int))])
    func aTargetIsTheSizeThatIsDrawn(
        size: (Double, Double), target: (Int, Int), mode: ImageDecodingOptions.ContentMode, scaled: (Int, Int),
        cropped: (Int, Int)
    ) {
        let plan = DecodingPlan(
            drawing: DrawingSize(width: size.0, height: size.1),
            target: PixelSize(width: target.0, height: target.1), mode: mode)
        #expect(plan.scaled == PixelSize(width: scaled.0, height: scaled.1))
        #expect(plan.cropped == PixelSize(width: cropped.0, height: cropped.1))
    }

    /// The program of the decoder does not exist, so that an error of a limit is one before the start.
    @Test(arguments: [
        ImageDecodingOptions(limits: .init(pixels: 99)), ImageDecodingOptions(limits: .init(bytes: 20)),
        ImageDecodingOptions(limits: .init(memory: 60 << 20)),
        ImageDecodingOptions(targetSize: PixelSize(width: 40_000, height: 40_000), limits: .init(pixels: .max)),
        ImageDecodingOptions(targetSize: PixelSize(width: 5_700, height: 5_700)),
        ImageDecodingOptions(
            targetSize: PixelSize(width: 33_000, height: 33_000), limits: .init(pixels: .max, memory: .max)),
    ])
    func limitsAreCheckedBeforeTheProcessStarts(options: ImageDecodingOptions) {
        let decoder = SVGImageDecoder(program: URL(filePath: "/nonexistent/rsvg-convert"))
        let file = SVGFile.file("width='10' height='10'")
        #expect(decoder.failure(file, options)?.kind == .limitExceeded)
        let error = decoder.failure(file)
        #expect(error?.kind == .unsupported && error?.message.contains("rsvg-convert") == true)
    }

    @Test func theErrorWithoutADecoderNamesIt() {
        let error = #expect(throws: ImageError.self) { try ImageDecoders().decoder(for: SVGFile.file("")) }
        #expect(error?.kind == .unsupported && error?.message.contains("SVGImageDecoder") == true)
    }

    @Test func previewsStayWithThisDecoder() {
        let decoders = ImageDecoders()
        #expect(decoders.areSystem)
        let registration = decoders.register(SVGImageDecoder())
        #expect(decoders.areSystem)
        decoders.register(CountingDecoder())
        #expect(!decoders.areSystem)
        decoders.remove(registration)
        #expect(!decoders.areSystem)
        #expect(ImageDecoders([SVGImageDecoder(), CodecImageDecoder()]).areSystem)
        #expect(!ImageDecoders([SVGImageDecoder()]).areSystem)
    }
}
#endif
