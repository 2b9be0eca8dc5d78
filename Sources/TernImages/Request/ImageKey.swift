import Tern

/// The identity of an image: its source, its decoding, and its processors.
struct ImageKey: Sendable, Hashable {
    let source: SourceKey
    let decoding: ImageDecodingOptions
    let processors: [ProcessorIdentity]
    let scale: Double
    /// Indicates whether the frames of an animation are kept, and whether they are processed.
    let animation: Animation

    /// Whether the source gives decoded images, each for the options of one request.
    let isDecodedBySource: Bool

    enum Animation: Sendable, Hashable {
        case frames, processedFrames, firstFrame
    }

    /// Creates the key of a request.
    ///
    /// - Parameters:
    ///   - named: The identity that the user gives the source; nil for the source's own identity.
    ///   - partition: The cache partition of images from the network.
    init(_ request: ImageRequest, source named: SourceKey? = nil, in partition: CachePartition = .common) {
        let options = request.options
        var source = named ?? request.source.key
        if !partition.name.isEmpty, request.source.request != nil { source = source.in(partition) }
        self.source = options.acceptsAnyCertificate ? source.acceptingAnyCertificate : source
        decoding = ImageDecodingOptions(
            targetSize: request.targetSize, contentMode: request.targetSize == nil ? .fit : request.contentMode,
            limits: options.limits, allowsPartial: options.allowsPartial, byteLimit: options.decodedByteLimit,
            color: options.color,
            resizesInLinearLight: (request.targetSize != nil || options.decodedByteLimit != nil)
                && options.resizesInLinearLight,
            gainMap: options.gainMap.normal)
        processors = request.processors.isEmpty ? [] : request.steps.map(\.identifier)
        // NaN would make the key unequal to itself.
        let given = request.scale.flatMap { $0.isFinite && $0 > 0 ? $0 : nil }
        scale = given ?? request.source.nameScale
        isDecodedBySource = if case .image = request.source.content { true } else { false }
        animation =
            options.decodesFirstFrameOnly
            ? .firstFrame : options.processesAnimations && !processors.isEmpty ? .processedFrames : .frames
    }

    private init(_ key: ImageKey, processors: [ProcessorIdentity]) {
        source = key.source
        decoding = key.decoding
        scale = key.scale
        animation = key.animation
        isDecodedBySource = key.isDecodedBySource
        self.processors = processors
    }

    /// The key of the image before the last processor; nil without processors.
    var inputKey: ImageKey? {
        processors.isEmpty ? nil : ImageKey(self, processors: Array(processors.dropLast()))
    }

    /// The key on the disk: one line, the same in every process.
    var text: String {
        let name = source.text
        // With its length, because a name that the caller chose can end like what follows it. A URL has no blank.
        var text = source.hasNameWithBlank ? "image \(name.utf8.count):\(name)" : "image \(name)"
        if let target = decoding.targetSize { text += " \(target) \(decoding.contentMode)" }
        if let limit = decoding.byteLimit { text += " ≤\(limit)" }
        switch decoding.color {
        case .sRGB: break
        case .displayP3: text += " P3"
        case .asStored(.uint8): text += " stored"
        case .asStored(.uint16): text += " stored16"
        case .asStored(.float16): text += " storedHalf"
        }
        if decoding.resizesInLinearLight { text += " light" }
        if case .applied(let headroom) = decoding.gainMap { text += " gain \(headroom)" }
        // Whole and processed animations are not stored on the disk, but a first frame alone is.
        if animation == .firstFrame { text += " first" }
        // Processors may measure in points.
        if !processors.isEmpty, scale != 1 { text += " @\(scale)" }
        for processor in processors { text += " | \(processor)" }
        return text
    }

    // The other properties hardly ever differ for equal values of these; `==` compares them.
    func hash(into hasher: inout Hasher) {
        hasher.combine(source)
        if let target = decoding.targetSize {
            hasher.combine(target.width)
            hasher.combine(target.height)
        }
        for processor in processors { hasher.combine(processor) }
    }

    /// Returns the scale in a name such as `photo@2x.png`, or 1. It reads from the end and does not allocate.
    static func scale(named text: String) -> Double {
        // Only the last path component counts.
        var isInName = false
        var after: (UInt8?, UInt8?, UInt8?) = (nil, nil, nil)
        for byte in text.utf8.suffix(64).reversed() {
            if byte == UInt8(ascii: "@") {
                guard let digit = after.0, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(digit),
                    after.1 == UInt8(ascii: "x"), after.2 == nil || after.2 == UInt8(ascii: ".")
                else { return 1 }
                return Double(digit - UInt8(ascii: "0"))
            }
            if byte == UInt8(ascii: "/") {
                if isInName { return 1 }
            } else {
                isInName = true
                after = (byte, after.0, after.1)
            }
        }
        return 1
    }
}

extension ImageDecodingOptions.GainMap {
    /// The same with a headroom that is equal to itself.
    fileprivate var normal: Self {
        guard case .applied(let headroom) = self else { return self }
        return .applied(headroom: headroom > 1 ? headroom : 1)
    }
}
