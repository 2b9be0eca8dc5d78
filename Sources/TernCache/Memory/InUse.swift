/// How a memory cache finds a value again that it has evicted, while somebody else still uses it.
///
/// The cache then holds the value weakly, without cost, and a look-up takes it back. For values that are objects:
/// ```swift
/// let cache = MemoryCache<URL, Document>(inUse: .references) { $0.byteCount }
/// ```
/// For a value that is a struct over a shared object, say how to hold that object weakly and how to make the value
/// from it:
/// ```swift
/// InUse<Picture> { picture in
///     let scale = picture.scale
///     return { [weak pixels = picture.pixels] in pixels.map { Picture(pixels: $0, scale: scale) } }
/// }
/// ```
public struct InUse<Value: Sendable>: Sendable {
    /// Gives the value as long as something else holds it; nil from then on.
    public typealias Finder = @Sendable () -> Value?

    /// Makes the finder of a value, which must not hold the value strongly; nil for a value that cannot be found again.
    /// Called once for each insert, in the caller's thread and under no lock, as is the finder.
    public let finder: @Sendable (Value) -> Finder?

    /// A way to find values again, from a closure that makes the finder of each.
    public init(finder: @escaping @Sendable (Value) -> Finder?) {
        self.finder = finder
    }
}

extension InUse where Value: AnyObject {
    /// Values that are objects, held by weak references.
    public static var references: InUse {
        InUse { value in { [weak value] in value } }
    }
}
