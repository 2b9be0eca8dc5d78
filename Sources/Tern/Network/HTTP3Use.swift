extension Session.Configuration {
    /// The use of HTTP/3 (RFC 9114).
    public enum HTTP3Use: Sendable, Hashable {
        /// HTTP/3 is not used. URLSession, on other systems than Linux, uses it where a server offers it.
        case never
        /// HTTP/3 is used for servers that offer it in an `Alt-Svc` field (RFC 7838) of an earlier response to this
        /// session, over TLS with a certificate that was checked.
        ///
        /// A new connection to such a server tries HTTP/3. TCP starts 200 ms later, or at once after an error, and the
        /// first connection that is verified carries the requests; so HTTP/3 is never the reason of an error while TCP
        /// works. An alternative that fails is not tried for 5 minutes, and with each further failure for twice the
        /// time, up to 2 hours. Connections over TCP that are open serve requests until one over HTTP/3 is, and take
        /// none afterwards.
        ///
        /// A session keeps the offers in its memory, for at most 256 servers and 30 days, and until the network changes
        /// unless the server wants them to persist. Sessions share none of them.
        /// Where a library is missing, and for servers with a ``ClientIdentity`` or a policy that does not check
        /// the host, requests go over TCP. URLSession, on other systems than Linux, does the like by itself.
        case whenOffered
        /// Servers are asked over HTTP/3 alone, because they are known to speak it: there is no fall-back to TCP.
        ///
        /// Without a server that answers by UDP, requests fail with `.connectionRefused`, `.connectionFailed` or
        /// `.connectTimedOut`. Where a library is missing, they fail with `.connectionFailed`, and the reason names its
        /// package. URLSession, on other systems than Linux, tries HTTP/3 first (`assumesHTTP3Capable`), and falls back.
        case always
    }
}
