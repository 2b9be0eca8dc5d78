/// A pure function from one image to another, with an identity by which its results are cached and shared.
///
/// Write `.resize(to: size)`, `.circle()` and so on where a processor is expected; the types are in `ImageProcessors`.
/// Equal identities must mean equal results, because two loads with equal identities share one result.
public protocol ImageProcessor: Sendable {
    /// The identity, with every parameter that changes the result. Create it once, in the initialiser.
    var identifier: ProcessorIdentity { get }

    /// Returns the processed image. Synchronous: the caller runs it on an executor for long work.
    ///
    /// Checks the cancellation of the current task between groups of rows, and then throws `.cancelled`. Throws
    /// `.invalidArgument` for invalid parameters, such as a rectangle outside the image.
    func process(_ image: RasterImage) throws(ImageError) -> RasterImage
}

/// The built-in processors. All keep the image's components, color space, scale, format and metadata, and keep
/// premultiplied colours at or below their alpha.
///
/// Crops, flips, resizes and turns by multiples of 90° take every image. All others take images of 8 bits a component.
/// Those that paint a color, lay another image over the image, or make greys, take them in sRGB and Display P3. They throw
/// `.unsupported` for other images; `RasterImage.converted(to:)` makes those that they take.
public enum ImageProcessors {}

/// The identity of a processor or a list of processors: equal exactly when the processors and all their parameters are.
///
/// Created once with its hash: comparing and hashing build no string. A copy costs one reference count.
public struct ProcessorIdentity: Sendable, Hashable, CustomStringConvertible {
    private final class Content: Sendable {
        let name: String
        let text: String?
        let numbers: [UInt64]
        let parts: [ProcessorIdentity]

        init(name: String, text: String?, numbers: [UInt64], parts: [ProcessorIdentity]) {
            self.name = name
            self.text = text
            self.numbers = numbers
            self.parts = parts
        }
    }

    private let fingerprint: UInt64
    private let content: Content

    /// Creates the identity of a custom processor: a unique name, such as `com.example.sepia`, and the numbers that
    /// change its result.
    public init(_ name: String, parameters: [Double] = []) {
        self.init(library: "custom", text: name, parameters)
    }

    /// Creates the identity of a built-in processor. Its label differs from those of custom processors, so that their
    /// names cannot collide.
    init(library name: String, text: String? = nil, _ parameters: [Double] = []) {
        // Zero has two bit patterns, and NaN has many.
        let numbers = parameters.map { $0 == 0 ? 0 : $0.isNaN ? Double.nan.bitPattern : $0.bitPattern }
        var mixer = Mixer()
        mixer.add(name)
        if let text { mixer.add(text) }
        for number in numbers { mixer.add(number) }
        fingerprint = mixer.value
        content = Content(name: name, text: text, numbers: numbers, parts: [])
    }

    /// Creates the identity of a list of processors. The identity of a list of one is that of the processor.
    init(_ parts: [ProcessorIdentity]) {
        var flat = parts
        if parts.contains(where: { $0.content.name.isEmpty }) {
            flat = parts.flatMap { $0.content.name.isEmpty ? $0.content.parts : [$0] }
        }
        if flat.count == 1 {
            self = flat[0]
            return
        }
        var mixer = Mixer()
        for part in flat { mixer.add(part.fingerprint) }
        fingerprint = mixer.value
        content = Content(name: "", text: nil, numbers: [], parts: flat)
    }

    /// Returns a Boolean value that indicates whether both are the same processors with the same parameters.
    public static func == (one: ProcessorIdentity, other: ProcessorIdentity) -> Bool {
        guard one.fingerprint == other.fingerprint else { return false }
        let (left, right) = (one.content, other.content)
        return left === right
            || left.name == right.name && left.text == right.text && left.numbers == right.numbers
                && left.parts == right.parts
    }

    /// Feeds the stored hash.
    public func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }

    /// The identity as text, the same in every process: `resize.fit(400,300)|circle`. Different identities always have
    /// different texts, so that disk caches can use them in keys. Built at each access; empty for an empty list.
    public var description: String {
        if content.name.isEmpty { return content.parts.map(\.description).joined(separator: "|") }
        var arguments = content.numbers.map(Self.text)
        if let text = content.text {
            var quoted = "\""
            // By scalars: a quotation mark followed by a combining mark is a different character.
            for scalar in text.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
                quoted.unicodeScalars.append(scalar)
            }
            arguments.insert(quoted + "\"", at: 0)
        }
        return arguments.isEmpty ? content.name : "\(content.name)(\(arguments.joined(separator: ",")))"
    }

    private static func text(_ bits: UInt64) -> String {
        let number = Double(bitPattern: bits)
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
}

extension ProcessorIdentity {
    /// A hash that is the same in every process, unlike `Hasher`'s.
    private struct Mixer {
        private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func add(_ word: UInt64) {
            value = (value ^ word) &* 0x9E37_79B9_7F4A_7C15
            value ^= value >> 29
        }

        mutating func add(_ text: String) {
            for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            add(UInt64(text.utf8.count))
        }
    }
}

extension ImageProcessors {
    /// Applies processors in order, as one. Nested compositions are flattened: nesting changes neither the result nor
    /// the identity, and a composition of one has the identity of that processor.
    public struct Composition: ImageProcessor {
        /// The identities of all steps, in order.
        public let identifier: ProcessorIdentity
        /// The single processors, in order.
        public let steps: [any ImageProcessor]

        /// Creates a composition. An empty list returns the image unchanged.
        public init(_ processors: [any ImageProcessor]) {
            steps = Self.flattened(processors)
            identifier = ProcessorIdentity(steps.map { $0.identifier })
        }

        /// Returns the result of all steps. Throws the error of the first step that fails.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            var image = image
            for step in steps {
                if Task.isCancelled { throw ImageError(.cancelled, format: image.format, "the task was cancelled") }
                image = try step.process(image)
            }
            return image
        }

        /// Replaces each composition in the list by its steps.
        static func flattened(_ processors: [any ImageProcessor]) -> [any ImageProcessor] {
            // Called for each request: comparing types costs a fraction of a cast.
            guard processors.contains(where: { type(of: $0) == Composition.self }) else { return processors }
            return processors.flatMap { ($0 as? Composition)?.steps ?? [$0] }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Composition {
    /// Applies processors in order, as one.
    public static func composition(_ processors: [any ImageProcessor]) -> Self { Self(processors) }
}

extension ImageProcessors {
    /// A processor from a closure and a name.
    public struct Custom: ImageProcessor {
        /// The identity: the name.
        public let identifier: ProcessorIdentity
        private let name: String
        private let body: @Sendable (RasterImage) throws -> RasterImage

        /// Creates a processor from a closure. Equal identifiers must mean equal results: if the closure depends on a
        /// number, include it in the identifier. The closure runs off the caller, and may check `Task.isCancelled`.
        public init(identifier: String, _ body: @escaping @Sendable (RasterImage) throws -> RasterImage) {
            self.identifier = ProcessorIdentity(identifier)
            name = identifier
            self.body = body
        }

        /// Returns the closure's image. Throws an `ImageError` of the closure unchanged, `.cancelled` for a
        /// `CancellationError`, and `.processing` with the error as `underlying` for all others.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            do {
                return try body(image)
            } catch let error as ImageError {
                throw error
            } catch is CancellationError {
                throw ImageError(.cancelled, format: image.format, "the task was cancelled")
            } catch {
                // Only the type: the description of a user's error may contain a secret.
                throw ImageError(
                    .processing, format: image.format, "\(name) threw \(type(of: error))", underlying: error)
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Custom {
    /// Processes the image with a closure. Equal identifiers must mean equal results.
    public static func custom(
        identifier: String, _ body: @escaping @Sendable (RasterImage) throws -> RasterImage
    ) -> Self {
        Self(identifier: identifier, body)
    }
}
