extension ImageFlight {
    /// Whether the processed picture is kept on the disk.
    func storesProcessed(_ content: ImagePipeline.DiskContent) -> Bool {
        let isChanged = !key.processors.isEmpty || key.decoding.targetSize != nil
        return switch content {
        case .original: false
        case .automatic: isChanged
        case .processed, .all: true
        }
    }
}

extension ImageRequest.Options {
    /// What decides how a picture is come by. What the key says, or what is looked at for each task, hinders no sharing.
    var deciding: ImageRequest.Options {
        var options = self
        let defaults = ImageRequest.Options()
        options.presentation = defaults.presentation
        options.continuesInBackground = defaults.continuesInBackground
        options.requiresAnimation = defaults.requiresAnimation
        options.waitsForScrolling = defaults.waitsForScrolling
        options.processesAnimations = defaults.processesAnimations
        options.decodesFirstFrameOnly = defaults.decodesFirstFrameOnly
        options.decodedByteLimit = defaults.decodedByteLimit
        return options
    }
}

extension ImagePipeline.DiskContent {
    /// Whether the fetched bytes are kept.
    func holdsOriginal(of request: ImageRequest) -> Bool {
        switch self {
        case .original, .all: true
        case .automatic: request.processors.isEmpty && request.targetSize == nil
        case .processed: false
        }
    }
}

extension ImageRequest {
    /// The processors one by one, those of compositions too.
    var steps: [any ImageProcessor] { ImageProcessors.Composition.laidOpen(processors) }

    /// The request for the picture before the last processor.
    var withoutLastProcessor: ImageRequest {
        var copy = self
        copy.processors = steps.dropLast()
        return copy
    }
}

extension RasterImage {
    /// PNG with alpha, else JPEG.
    var diskEncoding: ImageEncoding { isOpaque ? .jpeg() : .png() }
}
