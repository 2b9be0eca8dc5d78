#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Where files wait whose destination is not known yet: `TMPDIR`, or the system's folder. Read once: the environment
/// may not be read while another thread changes it.
enum TemporaryFolder {
    static let path: String = {
        guard let value = unsafe getenv("TMPDIR") else { return "/tmp" }
        let path = unsafe String(cString: value)
        return path.isEmpty ? "/tmp" : path
    }()
}
