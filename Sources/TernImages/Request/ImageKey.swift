import Tern

/// What makes two pictures the same: the source, how it is decoded, and what is done to it then.
struct ImageKey: Sendable, Hashable {
    let source: SourceKey
    let decoding: ImageDecodingOptions
    let processors: [ProcessorIdentity]
    let scale: Double
    /// Whether the frames of an animation are kept, and whether they are processed.
    let animation: Animation

    enum Animation: Sendable, Hashable {
        case frames, processedFrames, firstFrame
    }

    /// Creates the key of a request.
    ///
    /// - Parameters:
    ///   - named: The identity that the user gives the source; nil for its own identity.
    ///   - partition: The partition of pictures from the network.
    init(_ request: ImageRequest, source named: SourceKey? = nil, in partition: CachePartition = .common) {
        let options = request.options
        var source = named ?? request.source.key
        if !partition.name.isEmpty, request.source.request != nil { source = source.in(partition) }
        self.source = options.allowsInvalidCertificates ? source.trustingAnyone : source
        decoding = ImageDecodingOptions(
            targetSize: request.targetSize, contentMode: request.targetSize == nil ? .fit : request.contentMode,
            limits: options.limits, allowsPartial: options.allowsPartial, byteLimit: options.decodedByteLimit)
        processors = request.processors.isEmpty ? [] : request.steps.map(\.identifier)
        // A key that holds no number would not be equal to itself.
        let given = request.scale.flatMap { $0.isFinite && $0 > 0 ? $0 : nil }
        scale = given ?? Self.scale(named: request.source.name)
        animation =
            options.decodesFirstFrameOnly
            ? .firstFrame : options.processesAnimations && !processors.isEmpty ? .processedFrames : .frames
    }

    private init(_ key: ImageKey, processors: [ProcessorIdentity]) {
        source = key.source
        decoding = key.decoding
        scale = key.scale
        animation = key.animation
        self.processors = processors
    }

    /// The picture before the last processor; nil for one without.
    var parent: ImageKey? {
        processors.isEmpty ? nil : ImageKey(self, processors: Array(processors.dropLast()))
    }

    /// The key on the disk: one line, the same in every process.
    var text: String {
        var text = "image \(source.text)"
        if let target = decoding.targetSize { text += " \(target) \(decoding.contentMode)" }
        if let limit = decoding.byteLimit { text += " ≤\(limit)" }
        // Of an animation that was processed or is whole nothing is stored, its first frame alone is.
        if animation == .firstFrame { text += " first" }
        // Processors may measure in points.
        if !processors.isEmpty, scale != 1 { text += " @\(scale)" }
        for processor in processors { text += " | \(processor)" }
        return text
    }

    // The rest hardly ever tells apart what these do not: it is compared.
    func hash(into hasher: inout Hasher) {
        hasher.combine(source)
        if let target = decoding.targetSize {
            hasher.combine(target.width)
            hasher.combine(target.height)
        }
        for processor in processors { hasher.combine(processor) }
    }

    /// 2 of `photo@2x.png`; 1 where nothing is said. Made for every request: from the end, without memory.
    private static func scale(named text: String) -> Double {
        // The last component: the rest says nothing of pixels.
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
