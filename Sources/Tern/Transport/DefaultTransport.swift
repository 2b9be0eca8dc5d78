/// The transport of sessions that are made without one: libcurl on Linux, URLSession on Apple's systems.
enum DefaultTransport {
    static func make(_ configuration: Session.Configuration) -> any Transport {
        #if TERN_URLSESSION || !os(Linux)
        URLSessionTransport(configuration)
        #else
        CurlTransport(configuration)
        #endif
    }
}
