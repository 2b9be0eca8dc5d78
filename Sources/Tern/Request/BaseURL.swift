#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The URL that relative references are resolved against, as RFC 3986 §5.2 has it.
///
/// A base with a path gains a trailing slash, so that `users` under `https://host/v1` is `https://host/v1/users`; its
/// own query and fragment are dropped. A leading slash starts at the host, and an absolute URL stands for itself.
package struct BaseURL: Sendable, Hashable {
    /// What the empty reference resolves to: the base with its trailing slash.
    package let root: Target

    /// Takes over a URL.
    package init(_ url: URL) throws(Target.Problem) { try self.init(absolute: url.absoluteString) }

    /// Parses an absolute URL.
    package init(absolute: String) throws(Target.Problem) {
        let target = try Target(absolute: absolute)
        var string = String(target.string.prefix { $0 != "?" })
        if string.utf8.last != Reference.slash { string += "/" }
        root = Target(string: string, authority: target.with(fragment: nil).authority)
    }

    /// Resolves a reference: a path relative to the base, an absolute path, `?query`, `//host/path`, or a whole URL.
    ///
    /// A path without dots and without characters to encode, the common case, costs one pass and one string.
    package func resolve(_ reference: String) throws(Target.Problem) -> Target {
        switch Shape(reference) {
        case .plainRelative: return Target(string: root.string + reference, authority: root.authority)
        case .plainAbsolutePath: return Target(string: root.authority.root + reference, authority: root.authority)
        case .other: return try resolveByRule(reference)
        }
    }

    /// RFC 3986 §5.2.2 in full.
    private func resolveByRule(_ reference: String) throws(Target.Problem) -> Target {
        let bytes = Array(reference.utf8)
        if Reference.schemeEnd(bytes) != nil {
            do {
                return try Target(absolute: reference)
            } catch {
                guard !bytes.contains(where: { $0 == Reference.slash }) || error.reason.contains("not supported") else {
                    throw error
                }
                throw Target.Problem(reason: error.reason + " (a relative path with a colon is written \"./path\")")
            }
        }
        if bytes.starts(with: "//".utf8) { return try Target(absolute: root.scheme + ":" + reference) }
        let path = bytes.first == Reference.slash ? bytes : Array(root.pathAndQuery.utf8) + bytes
        do {
            let tail = String(decoding: try Reference.normalized(path[...]), as: UTF8.self)
            return Target(string: root.authority.root + tail, authority: root.authority)
        } catch {
            throw Target.Problem(reason: "\(error.reason): \"\(Target.redact(reference))\"")
        }
    }
}

extension BaseURL: CustomStringConvertible {
    /// The base as errors and logs may show it.
    package var description: String { root.description }
}

/// What one pass over a reference tells.
private enum Shape {
    /// A path that can be put behind the base as it is.
    case plainRelative
    /// A path that can be put behind the host as it is.
    case plainAbsolutePath
    /// Whatever takes the whole algorithm.
    case other

    init(_ reference: String) {
        self = reference.withUTF8Span { Self.of($0) }
    }

    private static func of(_ bytes: Span<UInt8>) -> Shape {
        let isAbsolute = bytes.count > 0 && bytes[0] == Reference.slash
        var index = isAbsolute ? 1 : 0
        // `//host`. An empty segment further on is nothing special.
        if isAbsolute, bytes.count > 1, bytes[1] == Reference.slash { return .other }
        var isFirstSegment = !isAbsolute
        var isAtSegmentStart = true
        while index < bytes.count, bytes[index] != Reference.query {
            let byte = bytes[index]
            if byte == Reference.slash {
                isAtSegmentStart = true
                isFirstSegment = false
            } else {
                // A dot at a segment's start may be a dot segment; a colon in the first segment may end a scheme.
                if isAtSegmentStart, byte == UInt8(ascii: ".") { return .other }
                if isFirstSegment, byte == UInt8(ascii: ":") { return .other }
                isAtSegmentStart = false
            }
            guard ByteSet.urlTail.contains(byte) else { return .other }
            index += 1
        }
        while index < bytes.count {
            guard ByteSet.urlTail.contains(bytes[index]) else { return .other }
            index += 1
        }
        return isAbsolute ? .plainAbsolutePath : .plainRelative
    }
}

extension Target {
    /// Takes over a URL, which must be absolute.
    package init(_ url: URL) throws(Problem) { try self.init(absolute: url.absoluteString) }

    /// The same as Foundation's URL. Parsed on each call: not for the hot path.
    package var url: URL? { URL(string: string) }
}
