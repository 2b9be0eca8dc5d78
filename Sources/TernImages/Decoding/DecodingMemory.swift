import CTernCodecs

/// Estimates the peak memory of decoding an image from its header, without reading pixels.
struct DecodingMemory {
    /// The bytes that the codec takes besides the pixels that it writes.
    var codec: Int
    /// The image that the codec makes, as stored.
    var made: tern_extent
    /// The size to scale to, and the size to crop to afterwards, as stored.
    var scaled: PixelSize
    var cropped: PixelSize
    /// Boolean values that indicate whether the image is rotated, and whether a copy of it is converted to another
    /// color space.
    var isTurned = false
    var isConverted = false
    /// Whether rows are resized while they are decoded, so that the codec's image is never in memory as a whole.
    var isResizedInRows = false
    /// Whether the codec is still open while the image is resized and rotated.
    var keepsCodec = false
    /// Whether the codec writes into its own canvas, which is then copied.
    var isCopied = false
    /// Whether the caller holds a preview of the picture.
    var hasPreview = false
    /// Whether the pixels of the codec, and those of the image, have eight bytes.
    var isDeep = (codec: false, image: false)
    /// Whether light is averaged instead of levels.
    var resizesInLight = false

    /// The bytes at the peak.
    var peak: Int {
        let (settled, result, kept) = (bytes(made.size), bytes(scaled), bytes(cropped))
        let whole = bytes(made.size, isDeep: isDeep.codec)
        let isFine = isDeep.image || resizesInLight
        let resize =
            made.size == scaled ? 0 : Self.resize(made, to: scaled, inRows: isResizedInRows, isFine: isFine)
        let held = sum(codec, isCopied ? whole : 0)
        let decoding = isResizedInRows ? sum(held, result, resize) : sum(held, whole)
        var finishing = isResizedInRows || resize == 0 ? result : sum(settled, result, resize)
        if isDeep != (false, false) { finishing = max(finishing, sum(whole, settled)) }
        if isTurned { finishing = max(finishing, sum(result, result)) }
        if kept != result { finishing = max(finishing, sum(result, kept)) }
        if isConverted { finishing = max(finishing, resizesInLight ? sum(settled, settled) : sum(kept, kept)) }
        return sum(hasPreview ? kept : 0, max(decoding, keepsCodec ? sum(held, finishing) : finishing))
    }

    /// Creates the estimate for an image that the codec makes as a whole.
    init(codec: Int, size: PixelSize, scaled: PixelSize, cropped: PixelSize) {
        self.init(codec: codec, made: tern_extent(size), scaled: scaled, cropped: cropped)
    }

    init(
        codec: Int, made: tern_extent, scaled: PixelSize, cropped: PixelSize, isTurned: Bool = false,
        isConverted: Bool = false
    ) {
        self.codec = codec
        self.made = made
        self.scaled = scaled
        self.cropped = cropped
        self.isTurned = isTurned
        self.isConverted = isConverted
    }

    /// Returns the bytes of the tables of a resize.
    static func resize(_ size: PixelSize, to target: PixelSize, isFine: Bool = false) -> Int {
        resize(tern_extent(size), to: target, inRows: false, isFine: isFine)
    }

    /// Returns the bytes of the tables of a resize, including the rows that it keeps if they come one by one.
    static func resize(_ source: tern_extent, to target: PixelSize, inRows: Bool, isFine: Bool) -> Int {
        let (width, height) = (UInt32(clamping: target.width), UInt32(clamping: target.height))
        return Int(
            clamping: isFine
                ? tern_fine_resize_memory(source, width, height)
                : tern_resize_memory(source, width, height, inRows))
    }

    /// Returns the bytes of an image.
    private func bytes(_ size: PixelSize) -> Int { bytes(size, isDeep: isDeep.image) }

    private func bytes(_ size: PixelSize, isDeep: Bool) -> Int {
        let each = isDeep ? 8 : 4
        return size.pixelCount > .max / each ? .max : size.pixelCount * each
    }

    private func sum(_ parts: Int...) -> Int {
        parts.reduce(0) { sum, part in
            let (total, overflow) = sum.addingReportingOverflow(part)
            return overflow ? .max : total
        }
    }
}

extension tern_extent {
    /// Creates an extent in which every pixel is fully visible.
    init(_ size: PixelSize) { self = tern_extent_whole(UInt32(clamping: size.width), UInt32(clamping: size.height)) }

    var size: PixelSize { PixelSize(width: Int(width), height: Int(height)) }
}
