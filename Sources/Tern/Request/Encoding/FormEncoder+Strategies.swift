#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension FormEncoder {
    /// How the elements of an array are named.
    public enum Arrays: Sendable {
        /// `a[]=1&a[]=2`
        case brackets
        /// `a=1&a=2`
        case bare
        /// `a[0]=1&a[1]=2`
        case indexed
        /// As the closure names an element, from the array's name and the element's place.
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

    /// How true and false are written.
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

    /// How data are written.
    public enum DataValues: Sendable {
        /// As Base64 (RFC 4648 §4), with padding.
        case base64
        /// As `Data` encodes itself: an array of numbers.
        case deferred
        /// As the closure writes them.
        case custom(@Sendable (Data) throws -> String)
    }

    /// How dates are written.
    public enum Dates: Sendable {
        /// As `Date` encodes itself: seconds since 2001-01-01T00:00:00Z.
        case deferred
        /// Seconds since 1970-01-01T00:00:00Z; whole ones without a fraction.
        case secondsSince1970
        /// Whole milliseconds since 1970-01-01T00:00:00Z.
        case millisecondsSince1970
        /// `2026-11-21T05:37:30Z` (RFC 3339 §5.6), by whole seconds.
        case iso8601
        /// As the closure writes them.
        case custom(@Sendable (Date) throws -> String)
    }

    /// How the name of a nested value is joined to the one that holds it.
    public enum Nesting: Sendable {
        /// `a[b]=1`
        case brackets
        /// `a.b=1`
        case dots
        /// As the closure joins the two.
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

    /// What becomes of nil.
    public enum Nils: Sendable {
        /// A property that is nil is left out; what is nil in a dictionary or an array, and so stands there on purpose, is the
        /// bare name.
        case automatic
        /// The name is left out.
        case dropName
        /// `a`: the bare name, as AFNetworking sends it.
        case bareName
        /// `a=`
        case emptyValue
        /// `a=null`
        case null
    }

    /// How a space is written.
    public enum Spaces: Sendable, Hashable {
        /// `%20` (RFC 3986 §2.1)
        case percentEncoded
        /// `+` (WHATWG URL §5.2), which only a form's reader takes for a space.
        case plus
    }
}
