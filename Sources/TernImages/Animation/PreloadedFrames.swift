/// The frames of an animation, all decoded.
struct PreloadedFrames: ImageFrames {
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    private let frames: [ImageFrame]

    var count: Int { frames.count }

    init(_ source: any ImageFrames) throws(ImageError) {
        loopCount = source.loopCount
        size = source.size
        var frames: [ImageFrame] = []
        frames.reserveCapacity(source.count)
        for index in 0..<source.count { frames.append(try source.frame(at: index)) }
        self.frames = frames
        byteCount = frames.reduce(0) { $0 + $1.image.byteCount }
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard frames.indices.contains(index) else {
            throw ImageError(.invalidArgument, "frame \(index) of \(frames.count)")
        }
        return frames[index]
    }
}
