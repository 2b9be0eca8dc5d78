#if os(Linux)
import TernEngine
#endif

/// Creates the transport of a session: the engine on Linux, URLSession on Apple's systems.
enum DefaultTransport {
    static func make(_ configuration: Session.Configuration) -> any Transport {
        #if TERN_URLSESSION || !os(Linux)
        URLSessionTransport(configuration)
        #else
        EngineTransport(configuration)
        #endif
    }

    static var eventLoopCount: Int {
        #if os(Linux) && !TERN_URLSESSION
        EventLoops.count
        #else
        0
        #endif
    }

    /// Sets the number of event loops. Returns the reason why that is not possible; nil if it is done.
    static func setEventLoopCount(_ count: Int) -> String? {
        #if os(Linux) && !TERN_URLSESSION
        guard 1...EventLoops.maximumCount ~= count else {
            return "\(count) event loops are not possible: the number is from 1 to \(EventLoops.maximumCount)"
        }
        return EventLoops.setCount(count) ? nil : "the number of event loops cannot change after the first session"
        #else
        return "this transport has no event loops"
        #endif
    }
}
