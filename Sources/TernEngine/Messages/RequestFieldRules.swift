/// Decides whether and how a header field of a caller is sent. The table is in the description of `RequestFields`.
enum RequestFieldRules {
    enum Verdict {
        case kept(RequestFields.Role, RequestFields.Summary)
        /// A Content-Length, which the engine compares with its own and does not send.
        case length(Int64)
        /// Transfer-Encoding: chunked, which the engine compares with its own framing and does not send.
        case chunked
        case refused(StaticString)
    }

    /// Returns the treatment of a field. The value has no blanks at its ends.
    @unsafe
    static func verdict(_ base: UnsafeRawPointer, name: Range<Int>, value: Range<Int>) -> Verdict {
        if name.isEmpty { return .refused("a header field has no name (RFC 9110 §5.1)") }
        for index in name where unsafe !HTTPBytes.isToken(base.load(fromByteOffset: index, as: UInt8.self)) {
            return .refused("the name of a header field is not a token (RFC 9110 §5.1)")
        }
        if unsafe HTTPBytes.firstControl(base, in: value) != nil {
            return .refused("the value of a header field has a control character (RFC 9110 §5.5)")
        }
        // The names below have these lengths; most others are passed at once.
        switch name.count {
        case 2, 4, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 19: break
        default: return .kept(.ordinary, [])
        }
        func isNamed(_ text: StaticString) -> Bool { unsafe HTTPBytes.equals(base, in: name, to: text) }
        func isValue(_ text: StaticString) -> Bool { unsafe HTTPBytes.equals(base, in: value, to: text) }
        if isNamed("host") { return unsafe host(base, value) }
        if isNamed("content-length") {
            guard let length = unsafe HTTPBytes.number(base, in: value) else {
                return .refused("the Content-Length of the request is not a number (RFC 9110 §8.6)")
            }
            return .length(length)
        }
        if isNamed("transfer-encoding") {
            return isValue("chunked")
                ? .chunked : .refused("a request can have no Transfer-Encoding other than chunked (RFC 9112 §6.1)")
        }
        if isNamed("connection") { return unsafe connection(base, value) }
        if isNamed("keep-alive") || isNamed("proxy-connection") { return .kept(.connection, []) }
        if isNamed("te") {
            return isValue("trailers")
                ? .kept(.te, .te)
                : .refused("TE can only be 'trailers', because the engine decodes no other coding (RFC 9110 §10.1.4)")
        }
        if isNamed("trailer") {
            return unsafe hasForbiddenName(base, value)
                ? .refused("Trailer names a field that trailers cannot have (RFC 9110 §6.5.1)") : .kept(.trailer, [])
        }
        if isNamed("upgrade") {
            return .refused("Upgrade asks for a protocol that only the engine takes over (RFC 9110 §7.8)")
        }
        if isNamed("expect") {
            return isValue("100-continue")
                ? .kept(.expect, .expectsContinue) : .refused("Expect can only be '100-continue' (RFC 9110 §10.1.1)")
        }
        if isNamed("http2-settings") { return .refused("HTTP/2 is not reached by Upgrade (RFC 9113 §3.1)") }
        if isNamed("proxy-authorization") { return .kept(.proxyAuthorization, .proxyAuthorization) }
        if isNamed("priority") { return .kept(.ordinary, .priority) }
        if isNamed("accept") { return .kept(.ordinary, .accept) }
        if isNamed("accept-encoding") { return .kept(.ordinary, .acceptEncoding) }
        if isNamed("user-agent") { return .kept(.ordinary, .userAgent) }
        if isNamed("content-type") { return .kept(.ordinary, .contentType) }
        if isNamed("cookie") { return .kept(.cookie, .cookie) }
        if isNamed("authorization") { return .kept(.ordinary, .authorization) }
        return .kept(.ordinary, [])
    }

    private static func host(_ base: UnsafeRawPointer, _ value: Range<Int>) -> Verdict {
        for index in value {
            switch unsafe base.load(fromByteOffset: index, as: UInt8.self) {
            case 0x09, 0x20, UInt8(ascii: ","), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"),
                UInt8(ascii: "@"), UInt8(ascii: "\\"):
                return .refused("the Host of the request is not a host and a port (RFC 9112 §3.2)")
            default: break
            }
        }
        return .kept(.host, .host)
    }

    private static func connection(_ base: UnsafeRawPointer, _ value: Range<Int>) -> Verdict {
        var facts = RequestFields.Summary()
        var position = value.lowerBound
        while let option = unsafe HTTPBytes.nextElement(base, from: &position, to: value.upperBound) {
            for index in option where unsafe !HTTPBytes.isToken(base.load(fromByteOffset: index, as: UInt8.self)) {
                return .refused("an option of Connection is not a token (RFC 9110 §7.6.1)")
            }
            if unsafe HTTPBytes.equals(base, in: option, to: "close") { facts.insert(.asksToClose) }
            if unsafe HTTPBytes.equals(base, in: option, to: "upgrade") { facts.insert(.namesUpgrade) }
            if unsafe HTTPBytes.equals(base, in: option, to: "te") { facts.insert(.namesTE) }
        }
        return unsafe hasForbiddenName(base, value)
            ? .refused("Connection names a field that every recipient needs (RFC 9110 §7.6.1)")
            : .kept(.connection, facts)
    }

    /// Returns whether a list has the name of a field that frames, routes or describes the message.
    private static func hasForbiddenName(_ base: UnsafeRawPointer, _ value: Range<Int>) -> Bool {
        var position = value.lowerBound
        while let name = unsafe HTTPBytes.nextElement(base, from: &position, to: value.upperBound) {
            let isForbidden =
                switch name.count {
                case 4: unsafe HTTPBytes.equals(base, in: name, to: "host")
                case 6: unsafe HTTPBytes.equals(base, in: name, to: "expect")
                case 7: unsafe HTTPBytes.equals(base, in: name, to: "trailer")
                case 10: unsafe HTTPBytes.equals(base, in: name, to: "connection")
                case 12: unsafe HTTPBytes.equals(base, in: name, to: "content-type")
                case 13: unsafe HTTPBytes.equals(base, in: name, to: "content-range")
                case 14: unsafe HTTPBytes.equals(base, in: name, to: "content-length")
                case 16: unsafe HTTPBytes.equals(base, in: name, to: "content-encoding")
                case 17: unsafe HTTPBytes.equals(base, in: name, to: "transfer-encoding")
                default: false
                }
            if isForbidden { return true }
        }
        return false
    }
}
