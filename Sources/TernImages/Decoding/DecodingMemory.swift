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

    /// The bytes at the peak.
    var peak: Int {
        let (whole, result, kept) = (bytes(made.size), bytes(scaled), bytes(cropped))
        let resize = made.size == scaled ? 0 : Self.resize(made, to: scaled, inRows: isResizedInRows)
        let held = sum(codec, isCopied ? whole : 0)
        let decoding = isResizedInRows ? sum(held, result, resize) : sum(held, whole)
        var finishing = isResizedInRows || resize == 0 ? result : sum(whole, result, resize)
        if isTurned { finishing = max(finishing, sum(result, result)) }
        if kept != result { finishing = max(finishing, sum(result, kept)) }
        if isConverted { finishing = max(finishing, sum(kept, kept)) }
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
    static func resize(_ size: PixelSize, to target: PixelSize) -> Int {
        resize(tern_extent(size), to: target, inRows: false)
    }

    /// Returns the bytes of the tables of a resize, including the rows that it keeps if they come one by one.
    static func resize(_ source: tern_extent, to target: PixelSize, inRows: Bool) -> Int {
        Int(
            clamping: tern_resize_memory(
                source, UInt32(clamping: target.width), UInt32(clamping: target.height), inRows))
    }

    private func bytes(_ size: PixelSize) -> Int { size.pixelCount > .max / 4 ? .max : size.pixelCount * 4 }

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
