#if TERN_URLSESSION || !os(Linux)
import Foundation

/// The head of a response, and what it says of the body.
struct URLSessionResponse {
    let head: ResponseHead
    /// Bytes of the body as it will be handed over; nil when that is not known.
    let expected: Int64?
    let isCompressed: Bool

    init(_ response: SystemResponse, _ target: Target, _ method: Request.Method) {
        // URLSession joins the values of a name, and does not keep the order: sorted, so that equal heads are equal.
        let headers = Headers(response.fields)
        // The version is known from the metrics alone, at the end.
        head = ResponseHead(status: response.status, version: .http11, target: target, headers: headers)
        let coding = headers["Content-Encoding"]?.lowercased()
        isCompressed = coding != nil && coding != "identity"
        let hasNoBody = method == .head || response.status == 204 || response.status == 304
        let length = headers["Content-Length"].flatMap { Int64($0) }
        expected = isCompressed || hasNoBody ? nil : length.flatMap { $0 >= 0 ? $0 : nil }
    }
}

extension ResponseHead {
    /// The same head, come over another version of HTTP.
    func over(_ version: HTTPVersion?) -> ResponseHead {
        guard let version, version != self.version else { return self }
        return ResponseHead(status: status, version: version, target: target, headers: headers)
    }
}
#endif
