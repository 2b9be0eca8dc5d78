/// A version of HTTP on the wire.
package enum WireVersion: Sendable, Equatable {
    case http10, http11, http2, http3
}

/// The head of a response as it was received and checked.
package struct ReceivedHead: Sendable, Equatable {
    /// The status code, from 100 to 999.
    package var status: Int
    package var version: WireVersion
    /// The status line and the field lines, each with CRLF at its end, and the empty line after them. Folded lines are
    /// joined by a blank. Over HTTP/2 and HTTP/3, the same form is built from the fields of the response.
    package var bytes: [UInt8]
    /// Whether the head has a Set-Cookie field.
    package var setsCookies = false
    /// Whether the head has a Content-Encoding field.
    package var isEncoded = false
    /// The number of bytes of the body that the head states; nil if it states none. The body of a response to HEAD, and
    /// of a 304 response, has no bytes whatever the head states.
    package var contentLength: Int64?
}

extension ReceivedHead {
    package init(status: Int, version: WireVersion, bytes: [UInt8]) {
        self.init(status: status, version: version, bytes: bytes, setsCookies: false)
    }

    /// Returns whether the Upgrade fields name this protocol and no other (RFC 9110 §7.8), without regard to case.
    func upgrades(to name: String) -> Bool {
        let expected = name.lowercased()
        var names: [String] = []
        for line in bytes.split(separator: HTTPBytes.lineFeed) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            guard String(decoding: line[..<colon], as: UTF8.self).lowercased() == "upgrade" else { continue }
            let value = line[(colon + 1)...].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            for element in value {
                let element = element.filter { !HTTPBytes.isBlank($0) && $0 != HTTPBytes.carriageReturn }
                names.append(String(decoding: element, as: UTF8.self).lowercased())
            }
        }
        return names == [expected]
    }
}

/// The limits for the head and the trailers of a response.
package struct HeadLimits: Sendable, Equatable {
    /// The number of bytes of the head, including the heads of all interim responses before it; also the number of
    /// bytes of the trailers.
    package var bytes: Int
    /// The number of fields of the head; also the number of fields of the trailers.
    package var fields = 1_000
    /// The number of interim responses (1xx) before the response.
    package var interimResponses = 100

    package init(bytes: Int) { self.bytes = bytes }
}
