extension ImageProcessors {
    /// Processors one after the other, as one. Compositions within it are laid open: how a list is nested changes
    /// neither its result nor its identity, and a composition of one has the identity of that one.
    public struct Composition: ImageProcessor {
        /// The identities of all steps, in order.
        public let identifier: ProcessorIdentity
        /// The single processors in the order in which they work.
        public let steps: [any ImageProcessor]

        /// The processors in order; an empty list gives the picture as it is.
        public init(_ processors: [any ImageProcessor]) {
            steps = Self.laidOpen(processors)
            identifier = ProcessorIdentity(steps.map { $0.identifier })
        }

        /// What all steps make of the picture. Errors are those of the first step that fails.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            var image = image
            for step in steps {
                if Task.isCancelled { throw ImageError(.cancelled, format: image.format, "the task was cancelled") }
                image = try step.process(image)
            }
            return image
        }

        /// The list with the steps of each composition in its place.
        static func laidOpen(_ processors: [any ImageProcessor]) -> [any ImageProcessor] {
            // This is done for each request: comparing types costs a fraction of a cast.
            guard processors.contains(where: { type(of: $0) == Composition.self }) else { return processors }
            return processors.flatMap { ($0 as? Composition)?.steps ?? [$0] }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Composition {
    /// Processors one after the other, as one.
    public static func composition(_ processors: [any ImageProcessor]) -> Self { Self(processors) }
}
