/// The sizes on the way from a file to the picture asked for. Decides, touches no pixel.
struct DecodingPlan: Equatable {
    /// The size to resize to before cropping, upright, and what is kept of it.
    let scaled: PixelSize
    let cropped: PixelSize

    init(scaled: PixelSize, cropped: PixelSize) {
        self.scaled = scaled
        self.cropped = cropped
    }

    init(size: PixelSize, _ options: ImageDecodingOptions) {
        let plan = DecodingPlan(size: size, target: options.targetSize, mode: options.contentMode)
        guard let limit = options.byteLimit, plan.cropped.pixelCount > max(1, limit / 4) else {
            self = plan
            return
        }
        let factor = (Double(max(1, limit / 4)) / Double(plan.cropped.pixelCount)).squareRoot()
        func length(_ of: Int) -> Int { max(1, Int((Double(of) * factor).rounded(.down))) }
        scaled = PixelSize(width: length(plan.scaled.width), height: length(plan.scaled.height))
        cropped = PixelSize(width: length(plan.cropped.width), height: length(plan.cropped.height))
    }

    init(size: PixelSize, target: PixelSize?, mode: ImageDecodingOptions.ContentMode) {
        guard let target, target.width > 0, target.height > 0 else {
            scaled = size
            cropped = size
            return
        }
        let across = Double(target.width) / Double(size.width)
        let down = Double(target.height) / Double(size.height)
        let factor = min(1, mode == .fit ? min(across, down) : max(across, down))
        func length(_ of: Int) -> Int { max(1, min(of, Int((Double(of) * factor).rounded()))) }
        scaled = PixelSize(width: length(size.width), height: length(size.height))
        cropped =
            mode == .fill
            ? PixelSize(width: min(target.width, scaled.width), height: min(target.height, scaled.height)) : scaled
    }

    /// The least size, upright, that a codec's own scaling should give: twice the result, so that Lanczos has the last
    /// word (54–57 dB against 40 when the codec scales to the end).
    func codecSize(of size: PixelSize) -> PixelSize {
        scaled == size
            ? size
            : PixelSize(width: min(size.width, scaled.width * 2), height: min(size.height, scaled.height * 2))
    }
}
