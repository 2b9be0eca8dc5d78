extension ImageProcessors {
    /// A processor of a closure and a name.
    public struct Custom: ImageProcessor {
        /// The identity: the name.
        public let identifier: ProcessorIdentity
        private let name: String
        private let body: @Sendable (RasterImage) throws -> RasterImage

        /// What the closure makes of a picture. Equal identifiers must mean equal results: name a closure that depends
        /// on a number with that number. It is called off the caller, and may look at `Task.isCancelled`.
        public init(identifier: String, _ body: @escaping @Sendable (RasterImage) throws -> RasterImage) {
            self.identifier = ProcessorIdentity(identifier)
            name = identifier
            self.body = body
        }

        /// What the closure makes. Throws its `ImageError` as it is, `.cancelled` in place of a `CancellationError`, and
        /// `.processing` in place of any other, which is its `underlying`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            do {
                return try body(image)
            } catch let error as ImageError {
                throw error
            } catch is CancellationError {
                throw ImageError(.cancelled, format: image.format, "the task was cancelled")
            } catch {
                // The type alone: what an error of the user says may hold a secret.
                throw ImageError(
                    .processing, format: image.format, "\(name) threw \(type(of: error))", underlying: error)
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Custom {
    /// What a closure makes of the picture. Equal identifiers must mean equal results.
    public static func custom(
        identifier: String, _ body: @escaping @Sendable (RasterImage) throws -> RasterImage
    ) -> Self {
        Self(identifier: identifier, body)
    }
}
