#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Encodes an `Encodable` value to the names and values of a query or a form.
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
/// The value must have names at its top level: a structure, a class or a dictionary; nil gives no items. Names are
/// sorted at each depth, so that equal values give equal text. A `Set` repeats its bare name, sorted. ``nesting``
/// decides how nested values are named, at any depth.
public struct FormEncoder: Sendable {
    /// The names of an array's elements. `.brackets` by default.
    public var arrays = Arrays.brackets
    /// The format of true and false. `.numeric` by default.
    public var bools = Bools.numeric
    /// The format of data. `.base64` by default.
    public var data = DataValues.base64
    /// The format of dates. `.deferred` by default, as with `JSONEncoder`.
    public var dates = Dates.deferred
    /// The change made to names of properties. Keys of dictionaries are data and stay unchanged. `.asIs` by default.
    public var keys = Keys.asIs
    /// The name of a nested value. `.brackets` by default.
    public var nesting = Nesting.brackets
    /// The encoding of nil. `.automatic` by default.
    public var nils = Nils.automatic
    /// The encoding of a space. `.percentEncoded` by default, which every server reads as a space.
    public var spaces = Spaces.percentEncoded
    /// A Boolean value that indicates whether names are sorted at each depth. Without sorting they have the value's own
    /// order, which for a dictionary changes from run to run. True by default.
    public var sortsNames = true

    /// Creates an encoder with the defaults, which are AFNetworking's: sorted names, `a[b]=`, `a[]=`, spaces as `%20`.
    public init() {}

    /// Returns the items of a value in order.
    ///
    /// - Throws: The error of the value's own `encode(to:)`, or an `EncodingError` when the value has no names at its
    ///   top level or contains a number that is not finite.
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

    /// Returns the text of a value as a query or a form's body contains it.
    ///
    /// - Throws: The same errors as ``items(of:)``.
    public func text(of value: some Encodable) throws -> String {
        QueryEncoding.encode(try items(of: value), spaces: spaces)
    }
}

extension FormEncoder {
    /// A change made to names of properties.
    public enum Keys: Sendable {
        /// No change.
        case asIs
        /// `oneTwoThree` becomes `one_two_three`.
        case snakeCase
        /// `oneTwoThree` becomes `one-two-three`.
        case kebabCase
        /// `oneTwoThree` becomes `OneTwoThree`.
        case capitalized
        /// `oneTwoThree` becomes `ONETWOTHREE`.
        case uppercased
        /// `oneTwoThree` becomes `onetwothree`.
        case lowercased
        /// The result of the closure.
        case custom(@Sendable (String) -> String)

        func name(_ name: String) -> String {
            switch self {
            case .asIs: name
            case .snakeCase: Self.words(of: name).joined(separator: "_")
            case .kebabCase: Self.words(of: name).joined(separator: "-")
            case .capitalized: name.prefix(1).uppercased() + name.dropFirst()
            case .uppercased: name.uppercased()
            case .lowercased: name.lowercased()
            case .custom(let change): change(name)
            }
        }

        /// Returns the words of a name in lower case, split before each capital that begins a word: `myURLLoader` has
        /// `my`, `url` and `loader`.
        private static func words(of name: String) -> [String] {
            let letters = Array(name)
            var words: [String] = []
            var word = ""
            for (index, letter) in letters.enumerated() {
                let follows = index > 0 && !letters[index - 1].isUppercase
                let leads = index + 1 < letters.count && letters[index + 1].isLowercase
                if letter.isUppercase, !word.isEmpty, follows || leads {
                    words.append(word)
                    word = ""
                }
                word += letter.lowercased()
            }
            return words + [word]
        }
    }
}

extension FormEncoder {
    /// The names of an array's elements.
    public enum Arrays: Sendable {
        /// `a[]=1&a[]=2`
        case brackets
        /// `a=1&a=2`
        case bare
        /// `a[0]=1&a[1]=2`
        case indexed
        /// The result of the closure for the array's name and the element's index.
        case custom(@Sendable (_ name: String, _ index: Int) -> String)

        func name(_ name: String, _ index: Int) -> String {
            switch self {
            case .brackets: "\(name)[]"
            case .bare: name
            case .indexed: "\(name)[\(index)]"
            case .custom(let make): make(name, index)
            }
        }
    }

    /// The format of true and false.
    public enum Bools: Sendable {
        /// `1` and `0`
        case numeric
        /// `true` and `false`
        case literal

        func text(_ value: Bool) -> String {
            switch self {
            case .numeric: value ? "1" : "0"
            case .literal: value ? "true" : "false"
            }
        }
    }

    /// The format of data.
    public enum DataValues: Sendable {
        /// Base64 (RFC 4648 §4) with padding.
        case base64
        /// The encoding of `Data` itself: an array of numbers.
        case deferred
        /// The result of the closure.
        case custom(@Sendable (Data) throws -> String)
    }

    /// The format of dates.
    public enum Dates: Sendable {
        /// The encoding of `Date` itself: seconds since 2001-01-01T00:00:00Z.
        case deferred
        /// Seconds since 1970-01-01T00:00:00Z. Whole seconds have no fraction.
        case secondsSince1970
        /// Whole milliseconds since 1970-01-01T00:00:00Z.
        case millisecondsSince1970
        /// `2026-11-21T05:37:30Z` (RFC 3339 §5.6), in whole seconds.
        case iso8601
        /// The result of the closure.
        case custom(@Sendable (Date) throws -> String)
    }

    /// The name of a nested value.
    public enum Nesting: Sendable {
        /// `a[b]=1`
        case brackets
        /// `a.b=1`
        case dots
        /// The result of the closure for both names.
        case custom(@Sendable (_ outer: String, _ inner: String) -> String)

        func name(_ outer: String, _ inner: String) -> String {
            if outer.isEmpty { return inner }
            return switch self {
            case .brackets: "\(outer)[\(inner)]"
            case .dots: "\(outer).\(inner)"
            case .custom(let join): join(outer, inner)
            }
        }
    }

    /// The encoding of nil.
    public enum Nils: Sendable {
        /// Leaves out a property that is nil. An explicit nil in a dictionary or an array gives the bare name.
        case automatic
        /// Leaves out the name.
        case dropName
        /// `a`: the bare name, as AFNetworking sends it.
        case bareName
        /// `a=`
        case emptyValue
        /// `a=null`
        case null
    }

    /// The encoding of a space.
    public enum Spaces: Sendable, Hashable {
        /// `%20` (RFC 3986 §2.1)
        case percentEncoded
        /// `+` (WHATWG URL §5.2), which only a parser of forms reads as a space.
        case plus
    }
}
