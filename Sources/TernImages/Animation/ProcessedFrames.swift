/// The frames of an animation, each processed when it is asked for.
struct ProcessedFrames: ImageFrames {
    let size: PixelSize
    private let source: any ImageFrames
    private let processor: any ImageProcessor

    var count: Int { source.count }
    var loopCount: Int { source.loopCount }
    var byteCount: Int { source.byteCount }

    init(_ source: any ImageFrames, _ processor: any ImageProcessor) {
        self.source = source
        self.processor = processor
        size = source.size
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        var frame = try source.frame(at: index)
        frame.image = try processor.process(frame.image)
        return frame
    }
}
