extension Session.Configuration: CustomStringConvertible, CustomReflectable {
    /// Headers, limits and ways to the network, without what is secret in them.
    public var description: String {
        customMirror.children.map { "\($0.label ?? ""): \($0.value)" }.joined(separator: ", ")
    }

    /// What ``description`` says, in parts: `dump` would show certificates, and what user's types hold.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = [
            "headers": headers.map(\.description), "secretHeaderOrigins": secretHeaderOrigins, "timeouts": timeouts,
            "maximumConnectionsPerHost": maximumConnectionsPerHost, "maximumConnections": maximumConnections,
            "allowsHTTP2": allowsHTTP2, "decompresses": decompresses,
            "maximumDecompressedSize": maximumDecompressedSize,
            "maximumDecompressionRatio": maximumDecompressionRatio, "maximumBodySize": maximumBodySize,
            "maximumHeadSize": maximumHeadSize, "maximumRedirects": maximumRedirects, "proxies": proxies,
            "hostAddresses": hostAddresses, "localEndpoint": localEndpoint, "unixSocketPath": unixSocketPath as Any,
            "interceptors": interceptors.count, "observers": observers.count,
        ]
        return Mirror(self, children: children)
    }
}
