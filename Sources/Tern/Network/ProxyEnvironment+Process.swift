#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension ProxyEnvironment {
    /// The process's own, read once: `getenv` beside a thread that changes the environment is a data race.
    static let process: ProxyEnvironment = {
        let names = [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
        ]
        var found: [String: String] = [:]
        for name in names {
            if let value = unsafe getenv(name) { found[name] = unsafe String(cString: value) }
        }
        return ProxyEnvironment(found)
    }()
}
