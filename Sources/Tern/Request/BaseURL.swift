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
        root = Target(string: string, authority: target.authority)
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
            let tail = String(decoding: try Reference.normalized(path), as: UTF8.self)
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
        var isInPath = true
        var isAtSegmentStart = true
        var isFirstSegment = true
        var isFirst = true
        var startsWithSlash = false
        for byte in reference.utf8 {
            guard Reference.isPlain(byte) else {
                self = .other
                return
            }
            if isInPath {
                if byte == Reference.slash {
                    // `//host`, and nothing else with an empty first segment.
                    if isFirst { startsWithSlash = true } else if isFirstSegment, isAtSegmentStart {
                        self = .other
                        return
                    }
                    isFirstSegment = isFirst
                    isAtSegmentStart = true
                } else {
                    // A colon in the first segment may end a scheme; a dot at a segment's start may be a dot segment.
                    if isAtSegmentStart && byte == UInt8(ascii: ".") || isFirstSegment && byte == UInt8(ascii: ":") {
                        self = .other
                        return
                    }
                    isAtSegmentStart = false
                    if byte == Reference.query { isInPath = false }
                }
            }
            isFirst = false
        }
        self = startsWithSlash ? .plainAbsolutePath : .plainRelative
    }
}

extension Target {
    /// Takes over a URL, which must be absolute.
    package init(_ url: URL) throws(Problem) { try self.init(absolute: url.absoluteString) }

    /// The same as Foundation's URL. Parsed on each call: not for the hot path.
    package var url: URL? { URL(string: string) }
}
