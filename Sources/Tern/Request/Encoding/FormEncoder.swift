/// Turns any `Encodable` value into the names and values of a query or a form.
///
/// ```swift
/// struct Search: Encodable, Sendable { var text: String, tags: [String], page: Int? }
/// let search = Search(text: "a b", tags: ["x", "y"], page: nil)
/// let query = try Request.Query(encoding: search)             // tags%5B%5D=x&tags%5B%5D=y&text=a%20b
/// var encoder = FormEncoder()
/// encoder.arrays = .bare
/// encoder.spaces = .plus
/// let body = Request.Body.form(search, encoder: encoder)      // tags=x&tags=y&text=a+b
/// ```
///
/// The value must have names at its top: a structure, a class or a dictionary; nil gives no items. Names are sorted at
/// each depth, so that equal values give equal text. A `Set` repeats its bare name, sorted. Nested values are joined to
/// their names as ``nesting`` says, to any depth.
public struct FormEncoder: Sendable {
    /// How the elements of an array are named. `.brackets` by default.
    public var arrays = Arrays.brackets
    /// How true and false are written. `.numeric` by default.
    public var bools = Bools.numeric
    /// How data are written. `.base64` by default.
    public var data = DataValues.base64
    /// How dates are written. `.deferred` by default, as with `JSONEncoder`.
    public var dates = Dates.deferred
    /// How the names of properties are changed; the keys of dictionaries are data and stay. `.asIs` by default.
    public var keys = Keys.asIs
    /// How the name of a nested value is joined to the one that holds it. `.brackets` by default.
    public var nesting = Nesting.brackets
    /// What becomes of nil. `.automatic` by default.
    public var nils = Nils.automatic
    /// How a space is written. `.percentEncoded` by default, which every server takes for a space.
    public var spaces = Spaces.percentEncoded
    /// Whether names are sorted at each depth; otherwise they stand as the value encodes them, which for a dictionary
    /// changes from run to run. True by default.
    public var sortsNames = true

    /// An encoder with the defaults, which are AFNetworking's: sorted names, `a[b]=`, `a[]=`, spaces as `%20`.
    public init() {}

    /// The items of a value, in order.
    ///
    /// - Throws: What the value's own `encode(to:)` throws, or an `EncodingError` when the value has no names at its top
    ///   or holds a number that is not finite.
    public func items(of value: some Encodable) throws -> [Request.Query.Item] {
        let root = FormNode()
        try FormValueEncoder(root, self).encode(value)
        var items: [Request.Query.Item] = []
        switch root.content {
        case .empty, .absent, .null: break
        case .keyed: FormItems(encoder: self).append(root, named: "", to: &items)
        case .text, .list:
            let problem = "a form needs names at its top: a structure or a dictionary, not a \(type(of: value))"
            throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: problem))
        }
        return items
    }

    /// The text of a value as it stands in a query or a form's body.
    ///
    /// - Throws: Like ``items(of:)``.
    public func text(of value: some Encodable) throws -> String {
        QueryEncoding.encode(try items(of: value), spaces: spaces)
    }
}
