public import TernImages

extension ImageViewModel {
    /// The pipeline of this view alone; nil, the default, for that of its type.
    public var imagePipeline: ImagePipeline? {
        get { bindings[value: .pipeline] }
        set { bindings[value: .pipeline] = newValue }
    }

    /// The pipeline of all views of this type and of its subclasses that have no nearer one; nil, the default, for that of
    /// the superclass, and at last for `ImagePipeline.shared`.
    public static var imagePipeline: ImagePipeline? {
        get { TypePipelines.shared[ObjectIdentifier(Self.self)] }
        set { TypePipelines.shared.set(newValue, for: Self.self) }
    }

    /// Who loads for this view: its own pipeline, else its type's, the nearest first, else the shared one.
    public var currentImagePipeline: ImagePipeline {
        imagePipeline ?? TypePipelines.shared.nearest(to: type(of: self)) ?? .shared
    }
}

extension BindingKey<ImagePipeline> {
    static var pipeline: Self { Self("image pipeline") }
}

/// The pipelines of types.
@MainActor
private final class TypePipelines {
    private struct Entry {
        let type: AnyClass
        /// Whether a type is this one or inherits from it.
        let covers: (AnyClass) -> Bool
        let pipeline: ImagePipeline
    }

    static let shared = TypePipelines()

    private var entries: [ObjectIdentifier: Entry] = [:]

    subscript(type: ObjectIdentifier) -> ImagePipeline? { entries[type]?.pipeline }

    func set<View: AnyObject>(_ pipeline: ImagePipeline?, for type: View.Type) {
        entries[ObjectIdentifier(type)] = pipeline.map { Entry(type: type, covers: { $0 is View.Type }, pipeline: $0) }
    }

    /// Those that cover a class stand in one line of inheritance: the nearest is covered by all others.
    func nearest(to type: AnyClass) -> ImagePipeline? {
        guard !entries.isEmpty else { return nil }
        let covering = entries.values.filter { $0.covers(type) }
        return covering.first { entry in covering.allSatisfy { $0.covers(entry.type) } }?.pipeline
    }
}
