/// A pure function from one picture to another, with a name by which its results are cached and shared.
///
/// Write `.resize(to: size)`, `.circle()` and so on where a processor is wanted; the types are in `ImageProcessors`.
/// Equal identities must mean equal results: two loads that ask for them get one.
public protocol ImageProcessor: Sendable {
    /// What is done, with every parameter that changes the result. Best made once, in the initialiser.
    var identifier: ProcessorIdentity { get }

    /// The picture that comes of it. Synchronous: the caller puts it on an executor where it may take its time.
    ///
    /// Looks at the current task's cancellation between groups of rows, and then throws the kind `.cancelled`.
    /// Throws `.invalidArgument` for parameters that make no sense, as a rectangle outside the picture.
    func process(_ image: RasterImage) throws(ImageError) -> RasterImage
}

/// The processors that come with the library. All keep the picture's scale, format and metadata, and colours at or
/// below their alpha.
public enum ImageProcessors {}
