import CTernCodecs

extension RasterImage {
    /// The middle square or all of the picture, cut to round corners and with a border along its inner edge.
    ///
    /// The radii, in pixels, are those of the corners from the top left clockwise, each at most half the shorter side.
    func framed(square: Bool = false, radii: [Double], border: ImageBorder?) throws(ImageError) -> RasterImage {
        let line = border.map { $0.unit.pixels($0.width, scale: scale) } ?? 0
        guard radii.count == 4, radii.allSatisfy({ $0.isFinite && $0 >= 0 }), line.isFinite, line >= 0 else {
            throw ImageError(
                .invalidArgument, format: format, "radii \(radii) and a border of \(line) pixels make no frame")
        }
        let side = min(size.width, size.height)
        let target = square ? PixelSize(width: side, height: side) : size
        let (left, top) = ((size.width - target.width) / 2, (size.height - target.height) / 2)
        let color = (border?.color ?? .clear).codec
        return try unsafe rows(target, work: target.width * 8) { source, base, first, count in
            let part = unsafe tern_picture(
                pixels: source.pixels + top * source.stride + left * 4, stride: source.stride,
                width: UInt32(target.width), height: UInt32(target.height))
            return unsafe tern_frame_rows(part, radii, line, color, base, target.width * 4, first, count)
        }
    }
}
