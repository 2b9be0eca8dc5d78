import GRPCCore
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TernGRPCTransport {
    /// The server of a transport.
    struct Server {
        /// The URL without a slash at its end.
        var url: String
        /// The host as `hostAddresses` names it: without brackets.
        var host: String
        var port: Int

        /// The description of the server for `ClientContext`.
        func peer(unixSocketPath: String?) -> String {
            if let unixSocketPath { return "unix:\(unixSocketPath)" }
            if host.contains(":") { return "ipv6:[\(host)]:\(port)" }
            let isIPv4 = host.split(separator: ".").count == 4 && host.allSatisfy { $0.isNumber || $0 == "." }
            return "\(isIPv4 ? "ipv4" : "dns"):\(host):\(port)"
        }
    }

    /// Checks the URL of a server.
    static func server(of text: String) throws(RPCError) -> Server {
        let url: URL
        do {
            guard let given = try Request(.post, text).url else {
                throw RPCError(code: .invalidArgument, message: "\(text.debugDescription) is no URL of a server")
            }
            url = given
        } catch let error as NetworkError {
            throw RPCError(code: .invalidArgument, message: error.reason, cause: error)
        } catch {
            throw RPCError(code: .invalidArgument, message: "\(text.debugDescription) is no URL of a server")
        }
        guard url.query == nil, let host = url.host() else {
            throw RPCError(code: .invalidArgument, message: "the URL of a server has no query")
        }
        var trimmed = url.absoluteString
        while trimmed.last == "/" { trimmed.removeLast() }
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return Server(url: trimmed, host: bare, port: url.port ?? (url.scheme == "https" ? 443 : 80))
    }
}
