#if os(Linux)
import Glibc
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the memory that decoding takes: the estimates, and the kernel's measurements.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DecodingMemoryTests {
    struct CheckFailure: Error, CustomStringConvertible {
        let description: String
    }

    private static let small = PixelSize(width: 200, height: 200)
    static let isSanitized = unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    // MARK: The estimate

    @Test func thePeakIsOfTheStepThatTakesMost() {
        let whole = PixelSize(width: 1_000, height: 1_000)
        let half = PixelSize(width: 500, height: 500)
        var memory = DecodingMemory(
            codec: 3_000_000, size: whole, scaled: whole, cropped: whole)
        #expect(memory.peak == 7_000_000)
        memory.isTurned = true
        #expect(memory.peak == 8_000_000)
        memory.keepsCodec = true
        #expect(memory.peak == 11_000_000)
        memory.isCopied = true
        #expect(memory.peak == 15_000_000)
        memory = DecodingMemory(codec: 10, size: whole, scaled: half, cropped: half)
        let tables = DecodingMemory.resize(whole, to: half)
        #expect(memory.peak == 5_000_000 + tables)
        memory.isResizedInRows = true
        // Resizing by rows keeps as many rows as a target row is made of: 14.
        #expect(memory.peak == 1_000_010 + tables + 14 * 4_000)
        memory.hasPreview = true
        #expect(memory.peak == 2_000_010 + tables + 14 * 4_000)
        memory.codec = .max
        #expect(memory.peak == .max)
    }

    @Test func aResizesTablesAreInProportionToTheLongerSide() {
        func bytes(_ width: Int, _ height: Int) -> Int {
            DecodingMemory.resize(PixelSize(width: width, height: height), to: Self.small)
        }
        #expect(bytes(8_000, 6_000) < 300_000)
        #expect(bytes(100_000_000, 1) > 1_000_000_000)
        #expect(bytes(Int(UInt32.max), Int(UInt32.max)) > 1_000_000_000)
    }

    // MARK: The limits

    @Test func theLimitIsGivenOrDependsOnTheTarget() {
        #expect(ImageDecodingOptions().memoryLimit == 512 << 20)
        #expect(ImageDecodingOptions(targetSize: Self.small).memoryLimit == 256 << 20)
        #expect(ImageDecodingOptions(targetSize: Self.small, limits: .init(memory: 7)).memoryLimit == 7)
        #expect(ImageDecodingOptions(limits: .init(memory: 7)).memoryLimit == 7)
    }

    @Test(arguments: [ImageEncoding.jpeg(), .jpeg(progressive: true), .png(), .webp(), .losslessWebP])
    func decodeBeyondTheMemoryLimitIsRefused(encoding: ImageEncoding) throws {
        let file = [UInt8](try gradient(600, 400).encoded(as: encoding))
        for target in [nil, PixelSize(width: 300, height: 200)] {
            let enough = ImageDecodingOptions(targetSize: target, limits: .init(memory: 8 << 20))
            #expect(errorKind(file, enough) == nil)
            let tooLittle = ImageDecodingOptions(targetSize: target, limits: .init(memory: 200_000))
            #expect(errorKind(file, tooLittle) == .limitExceeded)
            let decoder = IncrementalDecoder(options: tooLittle)
            let thrown = #expect(throws: ImageError.self) {
                try decoder.append(Data(file))
                _ = try decoder.finish()
            }
            #expect(thrown?.kind == .limitExceeded)
        }
    }

    /// Incremental decoding takes one more copy. If that is too much, the whole file is decoded at its end.
    @Test(arguments: [ImageEncoding.jpeg(), .png(), .losslessWebP])
    func bytesThatComeAreHeldToTheLimitOfWholeFiles(encoding: ImageEncoding) throws {
        let file = [UInt8](try gradient(600, 400).encoded(as: encoding))
        var memory = 1_000_000
        while errorKind(file, ImageDecodingOptions(limits: .init(memory: memory))) != nil { memory += 50_000 }
        let options = ImageDecodingOptions(limits: .init(memory: memory))
        let decoder = IncrementalDecoder(options: options)
        for byte in file { try decoder.append(Data([byte])) }
        #expect(try decoder.finish().pixels.bytes == decoded(file, options).pixels.bytes)
    }

    @Test(arguments: [nil, PixelSize(width: 64, height: 64)])
    func aRowThatTakesTooMuchIsRefusedBeforeItIsTaken(target: PixelSize?) {
        let options = ImageDecodingOptions(targetSize: target)
        let decoder = IncrementalDecoder(options: options)
        let thrown = #expect(throws: ImageError.self) { try decoder.append(Data(PictureBombs.widePNG)) }
        #expect(thrown?.kind == .limitExceeded)
        #expect(thrown?.message.contains("a row of 99999999 pixels takes") == true)
        #expect(errorKind(PictureBombs.widePNG, options) == .limitExceeded)
    }

    @Test func framesOfAnAnimationAreHeldToTheLimit() throws {
        let file = GIFFile(width: 500, height: 500, frames: [.init(rows: [[0]]), .init(rows: [[1]])]).bytes
        let options = ImageDecodingOptions(limits: .init(memory: 3_000_000))
        let thrown = #expect(throws: ImageError.self) {
            try CodecImageDecoder().animation(from: Data(file), options: options)
        }
        #expect(thrown?.kind == .limitExceeded)
        #expect(errorKind(file, options) == .limitExceeded)
    }

    @Test func processorsAreLimited() throws {
        let size = PixelSize(width: 1, height: 4_000_000)
        let thin = try #require(
            RasterImage(size: size, premultiplied: [UInt8](repeating: 255, count: size.pixelCount * 4)))
        let processors: [any ImageProcessor] = [
            .resize(to: PixelSize(width: 100, height: 100), mode: .atLeast, allowsUpsampling: true),
            .gaussianBlur(radius: 5), .rotate(degrees: 45),
        ]
        for processor in processors {
            let thrown = #expect(throws: ImageError.self) { try processor.process(thin) }
            #expect(thrown?.kind == .limitExceeded || thrown?.kind == .invalidArgument)
        }
    }

    // MARK: Measurements

    @Test(.disabled(if: isSanitized, "a sanitizer holds memory of its own"))
    func noFileOfFewBytesTakesMuchMemoryAtATargetSize() async {
        await #expect(processExitsWith: .success) {
            DecodingMemoryTests.measure(target: DecodingMemoryTests.small, limit: 266 << 20)
        }
    }

    @Test(.disabled(if: isSanitized, "a sanitizer holds memory of its own"))
    func noFileOfFewBytesTakesMuchMemoryAtItsOwnSize() async {
        await #expect(processExitsWith: .success) {
            DecodingMemoryTests.measure(target: nil, limit: 600 << 20)
        }
    }

    /// Decodes a photograph of 48 megapixels with halved chroma. The estimate comes from its header, and a flat picture
    /// takes as much memory.
    @Test(.disabled(if: isSanitized, "a sanitizer holds memory of its own"), arguments: [false, true])
    func aPhotographOf48MegapixelsDecodes(isProgressive: Bool) async {
        await #expect(processExitsWith: .success) { [isProgressive] in
            let size = PixelSize(width: 8_000, height: 6_000)
            let file = [UInt8](
                try DecodingMemoryTests.flat(size).encoded(as: .jpeg(progressive: isProgressive)))
            for (target, limit) in [(nil, 600), (DecodingMemoryTests.small, 300)] {
                for way in ["whole", "pieces"] {
                    try DecodingMemoryTests.forgetPeak()
                    let options = ImageDecodingOptions(targetSize: target)
                    let outcome = DecodingMemoryTests.decode(file, options, way)
                    let peak = try DecodingMemoryTests.peakSize() >> 20
                    guard outcome == "\(DecodingPlan(size: size, options).cropped)", peak < limit else {
                        throw CheckFailure(description: "\(way): \(peak) MiB, \(outcome)")
                    }
                }
            }
        }
    }

    private static func flat(_ size: PixelSize) throws -> RasterImage {
        try #require(RasterImage(size: size, premultiplied: [UInt8](repeating: 255, count: size.pixelCount * 4)))
    }

    /// Decodes files, and fails if the process has reached the limit at any time. A file is decoded either at its own
    /// size or at a target, and in one of the ways, which take turns; `make soak` sets TERN_PICTURE_BOMBS to `all`, for
    /// each file at both sizes in every way.
    ///
    /// With a target, the memory that the process held before does not count: up to 86 MiB that the construction of the
    /// files left behind. A process without them holds 34 MiB, so a limit of 266 MiB corresponds to 300 MiB.
    private static func measure(target: PixelSize?, limit: Int) {
        // A thrown error would only end the process.
        do { try hold(try PictureBombs.all, target: target, limit: limit) } catch { Issue.record(error) }
    }

    private static func hold(_ bombs: [PictureBombs.Bomb], target: PixelSize?, limit: Int) throws {
        let ways = ["whole", "frames", "pieces"]
        let isWhole = ProcessInfo.processInfo.environment["TERN_PICTURE_BOMBS"] == "all"
        var failures: [String] = []
        for (index, bomb) in bombs.enumerated() {
            guard bomb.bytes.count < 64 << 10 else {
                throw CheckFailure(description: "\(bomb.name): \(bomb.bytes.count) bytes")
            }
            guard isWhole || index.isMultiple(of: 2) == (target == nil) else { continue }
            for way in isWhole ? ways : [ways[index % ways.count]] {
                try forgetPeak()
                let before = try size("VmRSS:")
                let options = ImageDecodingOptions(targetSize: target, allowsPartial: true)
                let outcome = decode(bomb.bytes, options, way)
                let peak = try peakSize() - (target == nil ? 0 : before)
                if peak >= limit {
                    failures.append("\(bomb.name), \(way): \(peak >> 20) MiB, before \(before >> 20), \(outcome)")
                }
            }
        }
        guard failures.isEmpty else { throw CheckFailure(description: failures.joined(separator: "\n")) }
    }

    static func decode(_ bytes: [UInt8], _ options: ImageDecodingOptions, _ way: String) -> String {
        do throws(ImageError) {
            switch way {
            case "whole": return "\(try decoded(bytes, options).size)"
            case "frames":
                guard let frames = try CodecImageDecoder().animation(from: Data(bytes), options: options) else {
                    return "no animation"
                }
                for index in 0..<min(3, frames.count) { _ = try frames.frame(at: index) }
                return "\(frames.count) frames"
            default:
                let decoder = IncrementalDecoder(options: options, showsRows: true)
                // Keeps the preview, as a user that shows it does.
                var shown: RasterImage?
                for start in stride(from: 0, to: bytes.count, by: 10_000) {
                    var stands = try decoder.append(Data(bytes[start..<min(bytes.count, start + 10_000)]))
                    while stands {
                        shown = try decoder.preview() ?? shown
                        stands = try decoder.advance()
                    }
                }
                let picture = try decoder.finish()
                return withExtendedLifetime(shown) { "\(picture.size)" }
            }
        } catch {
            return error.description
        }
    }

    /// Begins a new peak, after the memory that the tests have freed goes back to the system.
    static func forgetPeak() throws {
        typealias Trim = @convention(c) (Int) -> Int32
        if let trim = unsafe dlsym(nil, "malloc_trim") { _ = unsafe unsafeBitCast(trim, to: Trim.self)(0) }
        let file = unsafe open("/proc/self/clear_refs", O_WRONLY)
        let written = unsafe write(file, "5", 1)
        close(file)
        guard written == 1 else { throw CheckFailure(description: "the kernel does not forget the peak") }
    }

    static func peakSize() throws -> Int { try size("VmHWM:") }

    static func size(_ field: String) throws -> Int {
        let status = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(field) }),
            let number = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
        else { throw CheckFailure(description: "the kernel does not say \(field)") }
        return number << 10
    }
}
#endif
