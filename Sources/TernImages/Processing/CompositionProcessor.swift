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
            // A list is made for each request: the types are compared first, since the cast alone costs more than the rest.
            var steps: [any ImageProcessor] = []
            var parts: [ProcessorIdentity] = []
            steps.reserveCapacity(processors.count)
            parts.reserveCapacity(processors.count)
            for processor in processors {
                if type(of: processor) == Composition.self, let nested = processor as? Composition {
                    steps += nested.steps
                } else {
                    steps.append(processor)
                }
                parts.append(processor.identifier)
            }
            self.steps = steps
            identifier = ProcessorIdentity(parts)
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

        /// The picture after each step, the shortest prefix first: whoever shares a prefix shares its result.
        var prefixes: [Prefix] {
            var parts: [ProcessorIdentity] = []
            return steps.map { step in
                parts.append(step.identifier)
                return Prefix(identity: ProcessorIdentity(parts), last: step)
            }
        }

        /// The first steps of a composition.
        struct Prefix {
            /// The identity of all of them.
            let identity: ProcessorIdentity
            /// The last of them, which works on the result of the prefix before.
            let last: any ImageProcessor
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Composition {
    /// Processors one after the other, as one.
    public static func composition(_ processors: [any ImageProcessor]) -> Self { Self(processors) }
}
