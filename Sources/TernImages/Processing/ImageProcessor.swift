/// A step that makes one picture of another: a pure function, run off the caller and off the pipeline's actor.
public protocol ImageProcessor: Sendable {
    /// What it does, with all its parameters: two processors of equal identity make the same picture of the same one.
    var identifier: ProcessorIdentity { get }

    /// The picture that it makes. Looks at the task's cancellation between groups of rows.
    func process(_ image: RasterImage) throws(ImageError) -> RasterImage
}

/// What a processor does, with all its parameters; a key of caches, in memory and on the disk.
public struct ProcessorIdentity: Sendable, Hashable, CustomStringConvertible {
    /// The text: the same in every process and version for the same picture.
    public let description: String

    /// An identity by its text, as `com.example.sepia(0.5)`.
    public init(_ description: String) { self.description = description }
}
