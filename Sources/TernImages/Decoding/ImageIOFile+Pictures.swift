#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO

extension ImageIOFile {
    /// Decodes, then resizes, turns upright and crops: the fewest pixels are turned.
    func image(at index: Int) throws(ImageError) -> RasterImage {
        try checkCancellation()
        let header = try header(at: index)
        guard isWhole || options.allowsPartial else {
            throw failure(at: index)
                ?? ImageError(.truncated, format: format, "the bytes end before the picture does")
        }
        let plan = header.plan(options)
        try checkMemory(header, plan)
        guard let decoded = decoded(index, header, plan) else {
            throw failure(at: index) ?? ImageError(.corrupt, format: format, "ImageIO makes no picture of it")
        }
        try checkCancellation()
        let (space, profile) = try color(decoded, header)
        let pixels = try PixelBuffer(drawing: decoded, in: space)
        // Asked last: only by now the bytes have been read.
        let failure = failure(at: index)
        if let failure, !tolerates(failure) { throw failure }
        let metadata = RasterImage.Metadata(
            originalSize: header.upright, orientation: header.orientation, colorProfile: profile,
            isPartial: !isWhole || failure != nil)
        let size = PixelSize(width: decoded.width, height: decoded.height)
        var image = RasterImage(pixels: pixels, size: size, format: format, metadata: metadata)
        image = try image.resized(to: header.turned(plan.scaled))
        image = try image.oriented(header.orientation)
        return try image.cropped(to: plan.cropped)
    }

    /// Refuses a picture that takes more memory than the options allow: ImageIO's pixels, and those drawn from them.
    private func checkMemory(_ header: ImageIOHeader, _ plan: DecodingPlan) throws(ImageError) {
        let size = header.turned(plan.codecSize(of: header.upright))
        var memory = DecodingMemory(
            codec: size.pixelCount * 4, size: size, scaled: header.turned(plan.scaled),
            cropped: header.turned(plan.cropped))
        memory.isTurned = header.orientation > 1
        guard memory.peak > options.memoryLimit else { return }
        throw ImageError(
            .limitExceeded, format: format,
            "decoding \(header.upright) pixels takes \(memory.peak >> 20) MiB of memory, "
                + "the limit is \(options.memoryLimit >> 20) MiB")
    }

    /// The picture as stored, at its own size or at least twice the size it is resized to.
    private func decoded(_ index: Int, _ header: ImageIOHeader, _ plan: DecodingPlan) -> CGImage? {
        let least = plan.codecSize(of: header.upright)
        if least != header.upright {
            let thumbnail = CGImageSourceCreateThumbnailAtIndex(
                source, index,
                imageIODictionary([
                    kCGImageSourceCreateThumbnailFromImageAlways: true,
                    kCGImageSourceCreateThumbnailWithTransform: false,
                    kCGImageSourceThumbnailMaxPixelSize: max(least.width, least.height),
                    kCGImageSourceShouldCache: false,
                ]))
            // Smaller than what is wanted, it would be made larger again: then rather the whole.
            let wanted = header.turned(plan.scaled)
            if let thumbnail, thumbnail.width >= wanted.width, thumbnail.height >= wanted.height { return thumbnail }
        }
        return CGImageSourceCreateImageAtIndex(
            source, index, imageIODictionary([kCGImageSourceShouldCache: false]))
    }

    /// The colours to draw in, and what that makes of the file's profile.
    private func color(
        _ image: CGImage, _ header: ImageIOHeader
    ) throws(ImageError) -> (CGColorSpace, RasterImage.Metadata.ColorProfile) {
        // Drawn in its own space a picture keeps its numbers. Ink and grey have none that would be RGB.
        if !options.colorConversion, let own = image.colorSpace, own.model == .rgb, own.supportsOutput {
            return (own, header.hasProfile ? .notApplied : .none)
        }
        guard let space = CGColorSpace(name: CGColorSpace.sRGB) else {
            throw ImageError(.unsupported, format: format, "the system has no sRGB")
        }
        return (space, header.hasProfile ? .converted : .none)
    }

    // MARK: Errors

    /// What ImageIO says is wrong with a picture.
    ///
    /// Of the last one only the status of the file as a whole is to be trusted, and that goes before a picture's own
    /// where the latter says no more than that it has not been read yet.
    func failure(at index: Int) -> ImageError? {
        let file = CGImageSourceGetStatus(source)
        let status = index == count - 1 ? file : CGImageSourceGetStatusAtIndex(source, index)
        switch status {
        case .statusComplete:
            return nil
        case .statusUnexpectedEOF:
            return ImageError(.truncated, format: format, "the bytes end before the picture does")
        case .statusInvalidData:
            return ImageError(.corrupt, format: format, "ImageIO says that its data is not valid")
        default:
            if file == .statusComplete { return nil }
            let isShort = status == .statusIncomplete || status == .statusReadingHeader
            return ImageError(
                isShort ? .truncated : .corrupt, format: format, "ImageIO gives up (status \(status.rawValue))")
        }
    }

    private func tolerates(_ error: ImageError) -> Bool {
        options.allowsPartial && (error.kind == .truncated || error.kind == .corrupt)
    }

    private func checkCancellation() throws(ImageError) {
        if Task.isCancelled { throw ImageError(.cancelled, format: format, "the task was cancelled") }
    }
}
#endif
