import Foundation
import TernImages

/// The image decoders.
extension FuzzTarget {
    /// To add a decoder, add its line; its seeds come from the encoders and `Tests/Pillow/fixtures.py`.
    static let images = [
        FuzzTarget(image: "jpeg", .jpeg),
        FuzzTarget(image: "png", .png, repair: repairPNG),
        pngPixels,
        FuzzTarget(image: "webp", .webp),
        FuzzTarget(image: "gif", .gif),
        gifPixels,
        FuzzTarget(image: "bmp", .bmp),
        FuzzTarget(image: "qoi", .qoi),
        FuzzTarget(image: "ico", .ico),
        FuzzTarget(
            name: "ico-png", seeds: { try icons(of: pictures(of: .png, fixtures: $0)) }, repair: repairIcon,
            run: { input, choice in decode(input, choice) }),
        FuzzTarget(image: "avif", .avif),
        FuzzTarget(image: "tiff", .tiff),
        FuzzTarget(image: "heic", .heic),
        FuzzTarget(image: "jxl", .jpegXL),
        svgSize,
        FuzzTarget(image: "jpeg-incremental", .jpeg, run: decodeIncrementally),
        FuzzTarget(image: "png-incremental", .png, repair: repairPNG, run: decodeIncrementally),
        FuzzTarget(image: "webp-incremental", .webp, run: decodeIncrementally),
        FuzzTarget(image: "gif-incremental", .gif, run: decodeIncrementally),
        FuzzTarget(image: "jxl-incremental", .jpegXL, run: decodeIncrementally),
    ]

    private init(
        image name: String, _ format: ImageFormat, repair: (@Sendable (inout [UInt8]) -> Void)? = nil,
        run: @escaping @Sendable (Data, UInt64) -> String = FuzzTarget.decode
    ) {
        self.init(
            name: name, seeds: { try FuzzTarget.pictures(of: format, fixtures: $0) }, repair: repair,
            run: { input, choice in run(input, choice) })
    }

    /// Returns small images only: a million of them should take minutes.
    static func pictures(of format: ImageFormat, fixtures: String) throws -> [[UInt8]] {
        var seeds = try encoded().filter { $0.format == format }.map { [UInt8]($0.data) }
        for name in try FileManager.default.contentsOfDirectory(atPath: fixtures).sorted() {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: "\(fixtures)/\(name)")))
            let start = Array(bytes.prefix(ImageFormat.sniffedByteCount))
            guard bytes.count <= 4096, unsafe ImageFormat(sniffing: start.span.bytes) == format else { continue }
            seeds.append(bytes)
        }
        return seeds
    }

    private static func encoded() throws -> [(format: ImageFormat, data: Data)] {
        let side = 24
        let bytes = (0..<side * side).flatMap { index -> [UInt8] in
            let alpha = index % side * 255 / side
            return [index * 7 % 256, index / side * 10, 128].map { UInt8($0 * alpha / 255) } + [UInt8(alpha)]
        }
        guard let picture = RasterImage(size: PixelSize(width: side, height: side), premultiplied: bytes) else {
            throw Failure("no picture of \(bytes.count) bytes")
        }
        let encodings: [ImageEncoding] = [
            .jpeg(), .jpeg(quality: 30, progressive: true), .png(), .webp(), .losslessWebP,
        ]
        return try encodings.map { ($0.format, try picture.encoded(as: $0)) }
    }

    /// Decodes the still image, to a size or in full, whole or in part, and the frames forwards and back.
    @Sendable private static func decode(_ data: Data, _ choice: UInt64) -> String {
        let options = options(choice)
        let decoder = CodecImageDecoder()
        do throws(ImageError) {
            let picture = try decoder.image(from: data, options: options)
            precondition(picture.byteCount == picture.size.width * picture.size.height * picture.bytesPerPixel)
            precondition(picture.component == options.color.component)
            use(picture, choice)
            var outcome = "picture \(picture.metadata.orientation) \(picture.metadata.isPartial)"
            if let frames = try decoder.animation(from: data, options: options) {
                let order = Array(0..<min(frames.count, 6)) + [0]
                for index in order { _ = try frames.frame(at: index) }
                outcome += " \(frames.count) frames"
            }
            return outcome
        } catch {
            return "rejected, " + words(error)
        }
    }

    /// Converts and writes some of the pictures: their profiles come from the file.
    private static func use(_ picture: RasterImage, _ choice: UInt64) {
        guard choice >> 46 & 3 == 0 else { return }
        do throws(ImageError) {
            let plain = try picture.converted(to: .sRGB)
            precondition(plain.colorSpace == .sRGB && plain.bytesPerPixel == 4)
            _ = try picture.encoded(as: .png(level: 1))
        } catch {
            precondition(error.kind == .unsupported || error.kind == .encodingFailed, "\(error)")
        }
    }

    /// Decodes in chunks, with the previews, up to the end. The outcome is that of `CodecImageDecoder`: the same image,
    /// or an error of the same kind, for every input and every way to split it. A mutation can change the format of the
    /// input to one that is decoded only as a whole.
    @Sendable private static func decodeIncrementally(_ data: Data, _ choice: UInt64) -> String {
        if let format = ImageFormat(sniffing: data), !IncrementalDecoder.decodes(format) {
            return "rejected, not incremental"
        }
        let options = options(choice)
        let decoder = IncrementalDecoder(options: options, showsRows: choice & 4 == 4)
        var numbers = Numbers(state: choice)
        let largest = [1, 16, 256, 8192][Int(choice >> 4 & 3)]
        var (outcome, hasFailed) = ("", false)
        var rest = data
        while !rest.isEmpty {
            let chunk = rest.prefix(1 + numbers.below(largest))
            rest = rest.dropFirst(chunk.count)
            do throws(ImageError) {
                var hasMore = try decoder.append(chunk)
                while hasMore {
                    if choice & 8 == 8, let preview = try decoder.preview() { precondition(preview.byteCount > 0) }
                    hasMore = try decoder.advance()
                }
            } catch {
                outcome = words(error) + ", "
                hasFailed = true
            }
        }
        let pieces = Result { () throws(ImageError) in try decoder.finish() }
        let whole = Result { () throws(ImageError) in try CodecImageDecoder().image(from: data, options: options) }
        // An error before the end is final.
        if hasFailed, case .success = pieces { preconditionFailure("an image after \(outcome)") }
        guard isSame(pieces, whole) else {
            print("in pieces \(text(pieces)), whole \(text(whole)), \(options)")
            fflush(nil)
            preconditionFailure("the decoders end differently")
        }
        switch pieces {
        case .success(let picture): return "picture \(outcome)\(picture.metadata.isPartial) \(decoder.completedPasses)"
        case .failure(let error): return "rejected, " + outcome + words(error)
        }
    }

    private static func isSame(
        _ one: Result<RasterImage, ImageError>, _ other: Result<RasterImage, ImageError>
    ) -> Bool {
        switch (one, other) {
        case (.failure(let one), .failure(let other)): one.kind == other.kind
        case (.success(let one), .success(let other)):
            one.size == other.size && one.metadata == other.metadata && one.component == other.component
                && one.colorSpace == other.colorSpace
                && one.withPixels { one in
                    other.withPixels { other in
                        unsafe one.withUnsafeBytes { one in
                            unsafe other.withUnsafeBytes { other in unsafe one.elementsEqual(other) }
                        }
                    }
                }
        default: false
        }
    }

    private static func text(_ result: Result<RasterImage, ImageError>) -> String {
        switch result {
        case .success(let picture): "\(picture.size) \(picture.metadata)"
        case .failure(let error): "\(error)"
        }
    }

    private static func options(_ choice: UInt64) -> ImageDecodingOptions {
        var options = ImageDecodingOptions(limits: .init(pixels: 1 << 16, frames: 64))
        options.allowsPartial = choice & 1 == 1
        if choice & 2 == 2 {
            options.targetSize = PixelSize(width: 1 + Int(choice >> 8 & 63), height: 1 + Int(choice >> 16 & 63))
            options.contentMode = [.fit, .fill, .atLeast][Int(choice >> 24) % 3]
        }
        let colors: [ImageDecodingOptions.Color] = [
            .displayP3, .asStored(), .asStored(.uint16), .asStored(.float16),
        ]
        // Half of the inputs have the options that most callers have.
        let number = Int(choice >> 40 & 7)
        if number < colors.count {
            options.color = colors[number]
            options.resizesInLinearLight = choice >> 44 & 1 == 1
            if number == 3, choice >> 45 & 1 == 1 { options.gainMap = .applied(headroom: 4) }
        }
        return options
    }

    /// Returns the text of the error without its numbers and the names of chunks.
    private static func words(_ error: ImageError) -> String {
        "\(error.kind): \(error.message.split(separator: ":").last ?? "")".filter { !$0.isNumber }
    }

    /// Returns icons of one, two and three PNG files each.
    private static func icons(of files: [[UInt8]]) -> [[UInt8]] {
        func little(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
        }
        return files.indices.map { index in
            let entries = (0...index % 3).map { files[(index + $0) % files.count] }
            var start = 6 + entries.count * 16
            var directory = [0, 0, 1, 0] + little(entries.count, 2)
            for entry in entries {
                directory += [0, 0, 0, 0, 1, 0, 32, 0] + little(entry.count, 4) + little(start, 4)
                start += entry.count
            }
            return directory + entries.flatMap(\.self)
        }
    }

    /// Corrects the checksums of every PNG file within the input.
    @Sendable private static func repairIcon(_ bytes: inout [UInt8]) {
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for at in bytes.indices.dropLast(7) where bytes[at] == 0x89 && Array(bytes[at..<at + 8]) == signature {
            repairChunks(&bytes, from: at + 8)
        }
    }

    @Sendable private static func repairPNG(_ bytes: inout [UInt8]) { repairChunks(&bytes, from: 8) }

    private static func repairChunks(_ bytes: inout [UInt8], from start: Int) {
        var at = start
        while at + 12 <= bytes.count {
            let length = bytes[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytes.count - at - 12 else { return }
            var sum = ~UInt32(0)
            for byte in bytes[(at + 4)..<(at + 8 + length)] {
                sum ^= UInt32(byte)
                for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
            }
            for i in 0..<4 { bytes[at + 8 + length + i] = UInt8(truncatingIfNeeded: ~sum >> (24 - 8 * UInt32(i))) }
            at += 12 + length
        }
    }
}
