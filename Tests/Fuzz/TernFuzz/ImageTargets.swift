import Foundation
import TernImages

/// The image decoders.
extension FuzzTarget {
    /// To add a decoder is to add its line; its seeds come from the encoders and `Tests/Pillow/fixtures.py`.
    static let images = [
        FuzzTarget(image: "jpeg", .jpeg),
        FuzzTarget(image: "png", .png, repair: repairPNG),
        FuzzTarget(image: "webp", .webp),
        FuzzTarget(image: "gif", .gif),
        FuzzTarget(image: "bmp", .bmp),
        FuzzTarget(image: "ico", .ico),
        FuzzTarget(image: "avif", .avif),
        FuzzTarget(image: "jpeg-incremental", .jpeg, run: decodeIncrementally),
        FuzzTarget(image: "png-incremental", .png, repair: repairPNG, run: decodeIncrementally),
        FuzzTarget(image: "webp-incremental", .webp, run: decodeIncrementally),
        FuzzTarget(image: "gif-incremental", .gif, run: decodeIncrementally),
    ]

    private init(
        image name: String, _ format: ImageFormat, repair: (@Sendable (inout [UInt8]) -> Void)? = nil,
        run: @escaping @Sendable (Data, UInt64) -> String = FuzzTarget.decode
    ) {
        self.init(
            name: name, seeds: { try FuzzTarget.pictures(of: format, fixtures: $0) }, repair: repair,
            run: { input, choice in run(input, choice) })
    }

    /// Small files only: a million of them should take minutes.
    private static func pictures(of format: ImageFormat, fixtures: String) throws -> [[UInt8]] {
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

    /// The still picture, to a size or in full, whole or in part, and the frames forwards and back.
    @Sendable private static func decode(_ data: Data, _ choice: UInt64) -> String {
        let options = options(choice)
        let decoder = CodecImageDecoder()
        do throws(ImageError) {
            let picture = try decoder.image(from: data, options: options)
            precondition(picture.byteCount == picture.size.width * picture.size.height * 4)
            var told = "picture \(picture.metadata.orientation) \(picture.metadata.isPartial)"
            if let frames = try decoder.animation(from: data, options: options) {
                let order = Array(0..<min(frames.count, 6)) + [0]
                for index in order { _ = try frames.frame(at: index) }
                told += " \(frames.count) frames"
            }
            return told
        } catch {
            return "rejected, " + words(error)
        }
    }

    /// In chunks, with the previews, up to the end; what comes of it whole is what `decode` makes of it.
    @Sendable private static func decodeIncrementally(_ data: Data, _ choice: UInt64) -> String {
        let options = options(choice)
        let decoder = IncrementalDecoder(options: options, showsRows: choice & 4 == 4)
        var numbers = Numbers(state: choice)
        let largest = [1, 16, 256, 8192][Int(choice >> 4 & 3)]
        var told = ""
        do throws(ImageError) {
            var rest = data
            while !rest.isEmpty {
                let chunk = rest.prefix(1 + numbers.below(largest))
                rest = rest.dropFirst(chunk.count)
                var stands = try decoder.append(chunk)
                while stands {
                    if let preview = try decoder.preview() { precondition(preview.byteCount > 0) }
                    stands = try decoder.advance()
                }
            }
        } catch {
            told = words(error) + ", "
        }
        do throws(ImageError) {
            let picture = try decoder.finish()
            precondition(picture.byteCount == picture.size.width * picture.size.height * 4)
            if !picture.metadata.isPartial { expectSame(picture, data, options) }
            return "picture \(told)\(picture.metadata.isPartial) \(decoder.completedPasses)"
        } catch {
            return "rejected, " + told + words(error)
        }
    }

    private static func expectSame(_ picture: RasterImage, _ data: Data, _ options: ImageDecodingOptions) {
        // Bytes that the one decoder never reads may be what the other fails on: then there is nothing to compare.
        guard let other = try? CodecImageDecoder().image(from: data, options: options), !other.metadata.isPartial else {
            return
        }
        // Of damaged files libjpeg and libwebp make one thing when they come in pieces, and another when they do not.
        let isSteady = picture.format == .png || picture.format == .gif
        let isSame =
            !isSteady
            || picture.withPixels { one in
                other.withPixels { two in
                    unsafe one.withUnsafeBytes { a in unsafe two.withUnsafeBytes { b in unsafe a.elementsEqual(b) } }
                }
            }
        let isAlike = picture.size == other.size && (!isSteady || picture.metadata == other.metadata)
        if isSame && isAlike { return }
        print("in pieces \(picture.size) \(picture.metadata), whole \(other.size) \(other.metadata), \(options)")
        fflush(nil)
        preconditionFailure("the decoders make different pictures of it")
    }

    private static func options(_ choice: UInt64) -> ImageDecodingOptions {
        var options = ImageDecodingOptions(limits: .init(pixels: 1 << 16, frames: 64))
        options.allowsPartial = choice & 1 == 1
        if choice & 2 == 2 {
            options.targetSize = PixelSize(width: 1 + Int(choice >> 8 & 63), height: 1 + Int(choice >> 16 & 63))
            options.contentMode = [.fit, .fill, .atLeast][Int(choice >> 24) % 3]
        }
        return options
    }

    /// Without its numbers and the names of chunks.
    private static func words(_ error: ImageError) -> String {
        "\(error.kind): \(error.message.split(separator: ":").last ?? "")".filter { !$0.isNumber }
    }

    @Sendable private static func repairPNG(_ bytes: inout [UInt8]) {
        var at = 8
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
