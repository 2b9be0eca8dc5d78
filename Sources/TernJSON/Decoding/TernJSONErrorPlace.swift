/// The place of a decoding error in a JSON text.
///
/// The errors that ``TernJSONDecoder/decode(_:from:)-(_,Data)`` throws have it as the underlying error of their
/// context. An error that an `init(from:)` catches has no place yet.
///
/// ```swift
/// do {
///     user = try TernJSONDecoder().decode(User.self, from: data)
/// } catch {
///     if let place = TernJSONErrorPlace(of: error) { print(place.line, place.column, place.excerpt) }
/// }
/// ```
public struct TernJSONErrorPlace: Error, Sendable, Hashable, CustomStringConvertible {
    /// The number of bytes before the place.
    public let offset: Int
    /// The line, from 1.
    public let line: Int
    /// The column in characters (Unicode scalars), from 1.
    public let column: Int
    /// The keys and punctuation around the place, which is between `▸` and `◂`; if the text is not JSON, those before
    /// the place, which is after `▸`. Values never show, because they can be secrets: their kind stands for them.
    public let excerpt: String

    /// Returns the place of an error; nil if it is not an error of ``TernJSONDecoder`` with a place.
    public init?(of error: any Error) {
        let context: DecodingError.Context? =
            switch error as? DecodingError {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                .dataCorrupted(let context):
                context
            default: nil
            }
        guard let place = context?.underlyingError as? TernJSONErrorPlace else { return nil }
        self = place
    }

    init(offset: Int, line: Int, column: Int, excerpt: String) {
        self.offset = offset
        self.line = line
        self.column = column
        self.excerpt = excerpt
    }

    /// The place without the excerpt.
    package var position: String { "at offset \(offset) (line \(line), column \(column))" }

    /// The place and the excerpt.
    public var description: String { "\(position): \(excerpt)" }
}
