#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The rules of RFC 3986 for a path and its query: the valid bytes, and dot segments.
enum Reference {
    static let slash = UInt8(ascii: "/")
    static let query = UInt8(ascii: "?")
    static let hash = UInt8(ascii: "#")
    private static let percent = UInt8(ascii: "%")
    private static let dot = UInt8(ascii: ".")

    /// Returns the index of the colon after the scheme; nil if the text does not begin with a scheme (RFC 3986 §3.1).
    static func schemeEnd(_ bytes: some RandomAccessCollection<UInt8>) -> Int? {
        guard bytes.first?.isASCIILetter == true else { return nil }
        for (offset, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: ":") { return offset }
            let isSchemeByte = byte.isASCIILetter || byte.isASCIIDigit || byte == UInt8(ascii: "+")
            guard isSchemeByte || byte == UInt8(ascii: "-") || byte == dot else { return nil }
        }
        return nil
    }

    /// Returns the start of the authority of a reference, after `//` or `scheme://`; nil without an authority.
    static func authorityStart(_ bytes: ArraySlice<UInt8>) -> Int? {
        let rest = schemeEnd(bytes).map { bytes.dropFirst($0 + 1) } ?? bytes
        return rest.starts(with: "//".utf8) ? rest.startIndex + 2 : nil
    }

    /// Returns whether a byte after `//` begins the path, the query or the fragment (RFC 3986 §3.2).
    static func endsAuthority(_ byte: UInt8) -> Bool { byte == slash || byte == query || byte == hash }

    /// Returns whether the bytes equal a lower-case word without regard to case.
    static func matches(_ bytes: ArraySlice<UInt8>, _ word: String) -> Bool {
        guard bytes.count == word.utf8.count else { return false }
        var index = bytes.startIndex
        for byte in word.utf8 {
            if bytes[index].asciiLowercased != byte { return false }
            index += 1
        }
        return true
    }

    /// Returns a path that begins with `/`, and its query, in the form to send: encoded, without dot segments and
    /// fragment.
    static func normalized(_ bytes: ArraySlice<UInt8>) throws(Target.Problem) -> ArraySlice<UInt8> {
        // Most URLs need no change, and the same bytes are returned.
        if bytes.allSatisfy({ ByteSet.urlTail.contains($0) }), !hasDotSegments(bytes) { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 16)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if byte.isASCIIControl { throw Target.Problem(reason: "the URL contains a control character") }
            if byte == hash { break }
            if byte == percent, index + 2 < bytes.endIndex, bytes[index + 1].hexValue != nil,
                bytes[index + 2].hexValue != nil
            {
                result.append(byte)
            } else if ByteSet.urlTail.contains(byte) {
                result.append(byte)
            } else {
                result.appendPercentEncoded(byte)
            }
            index += 1
        }
        // The fragment is dropped, but a line break in it is an error.
        if bytes[index...].contains(where: \.isASCIIControl) {
            throw Target.Problem(reason: "the URL contains a control character")
        }
        return hasDotSegments(result[...]) ? removingDotSegments(result)[...] : result[...]
    }

    /// Returns the text after the first `#` in the form of a URL; nil without one, and for one with a control
    /// character, which is refused later.
    static func fragment(of bytes: ArraySlice<UInt8>) -> String? {
        guard let hash = bytes.firstIndex(of: hash), !bytes[hash...].contains(where: \.isASCIIControl) else {
            return nil
        }
        var result: [UInt8] = []
        for byte in bytes[(hash + 1)...] {
            let stays = ByteSet.urlTail.contains(byte) || byte == percent
            if stays { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns whether the path contains a segment `.` or `..`.
    private static func hasDotSegments(_ bytes: ArraySlice<UInt8>) -> Bool {
        var segmentIsDots = false
        var length = 0
        for byte in bytes {
            if byte == slash || byte == query {
                if segmentIsDots, length > 0 { return true }
                if byte == query { return false }
                segmentIsDots = true
                length = 0
            } else {
                length += 1
                if byte != dot || length > 2 { segmentIsDots = false }
            }
        }
        return segmentIsDots && length > 0
    }

    /// Applies `remove_dot_segments` (RFC 3986 §5.2.4) to a path that begins with `/`. The query stays unchanged.
    private static func removingDotSegments(_ bytes: [UInt8]) -> [UInt8] {
        let pathEnd = bytes.firstIndex(of: query) ?? bytes.endIndex
        var segments: [ArraySlice<UInt8>] = []
        let parts = bytes[..<pathEnd].dropFirst().split(separator: slash, omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            if part.elementsEqual("..".utf8) {
                if !segments.isEmpty { segments.removeLast() }
                if isLast { segments.append([]) }
            } else if part.elementsEqual(".".utf8) {
                if isLast { segments.append([]) }
            } else {
                segments.append(part)
            }
        }
        return [slash] + segments.joined(separator: [slash]) + bytes[pathEnd...]
    }

    /// Replaces each `%XX` by its byte. A single `%` stays.
    static func percentDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == percent, index + 2 < bytes.endIndex, let high = bytes[index + 1].hexValue,
                let low = bytes[index + 2].hexValue
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}

/// The URL against which relative references are resolved (RFC 3986 §5.2).
///
/// A base with a path gets a trailing slash, so that `users` under `https://host/v1` is `https://host/v1/users`. Its
/// own query and fragment are dropped. A reference with a leading slash starts at the host, and an absolute URL
/// replaces the base. A class, because each request of a client uses it, and a copy has several references.
package final class BaseURL: Sendable {
    /// The result for the empty reference: the base with its trailing slash.
    package let root: Target

    /// Creates a base from a URL.
    package convenience init(_ url: URL) throws(Target.Problem) { try self.init(absolute: url.absoluteString) }

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
        switch ReferenceKind(reference) {
        case .plainRelative: return Target(string: root.string + reference, authority: root.authority)
        case .plainAbsolutePath: return Target(string: root.authority.root + reference, authority: root.authority)
        case .other: return try resolveFully(reference)
        }
    }

    /// Applies RFC 3986 §5.2.2 in full.
    private func resolveFully(_ reference: String) throws(Target.Problem) -> Target {
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
    /// The base in the form for errors and logs.
    package var description: String { root.description }
}

/// The kind of a reference, found in one pass.
private enum ReferenceKind {
    /// A path that can be appended to the base unchanged.
    case plainRelative
    /// A path that can be appended to the host unchanged.
    case plainAbsolutePath
    /// A reference that needs the whole algorithm.
    case other

    init(_ reference: String) {
        self = reference.withUTF8Span { Self.of($0) }
    }

    private static func of(_ bytes: Span<UInt8>) -> ReferenceKind {
        let isAbsolute = bytes.count > 0 && bytes[0] == Reference.slash
        var index = isAbsolute ? 1 : 0
        // `//host`. A later empty segment has no special meaning.
        if isAbsolute, bytes.count > 1, bytes[1] == Reference.slash { return .other }
        var isFirstSegment = !isAbsolute
        var isAtSegmentStart = true
        while index < bytes.count, bytes[index] != Reference.query {
            let byte = bytes[index]
            if byte == Reference.slash {
                isAtSegmentStart = true
                isFirstSegment = false
            } else {
                // A dot at a segment's start can begin a dot segment, and a colon in the first segment can end a
                // scheme.
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
    /// Creates a target from an absolute URL.
    package init(_ url: URL) throws(Problem) { try self.init(absolute: url.absoluteString) }

    /// The same URL as a Foundation value. It is parsed on each access, so do not use it on the hot path.
    package var url: URL? { URL(string: string) }
}
