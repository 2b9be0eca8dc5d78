#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Resolves names by `getaddrinfo`, which blocks the thread.
enum SystemResolver {
    /// The maximum number of addresses of each family. A name server can send thousands.
    static let addressLimit = 16

    /// Returns the addresses of a name, with the port 0, in the order of preference (RFC 6724).
    ///
    /// The flag AI_ADDRCONFIG is not set: with it, a host without other addresses than loopback would not find names
    /// of its hosts file. Addresses of a family that the host does not have come last, and fail at once.
    static func addresses(of name: String) -> Result<[SocketAddress], EngineError> {
        if name.isEmpty || name.utf8.contains(0) { return .failure(failure(name, text: nil)) }
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(name, nil, &hints, &list)
        let code = errno
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        guard result == 0 else { return .failure(failure(name, result: result, code: code)) }
        var addresses: [SocketAddress] = []
        var counts = (v4: 0, v6: 0)
        var next = unsafe list
        while let entry = unsafe next {
            unsafe next = entry.pointee.ai_next
            guard let form = unsafe entry.pointee.ai_addr,
                let address = unsafe SocketAddress(form, length: Int(entry.pointee.ai_addrlen)),
                !addresses.contains(address)
            else { continue }
            switch address.family {
            case .ipv4 where counts.v4 < addressLimit: counts.v4 += 1
            case .ipv6 where counts.v6 < addressLimit: counts.v6 += 1
            default: continue
            }
            addresses.append(address)
        }
        return addresses.isEmpty ? .failure(failure(name, text: "it has no address")) : .success(addresses)
    }

    private static func failure(_ name: String, result: Int32, code: Int32) -> EngineError {
        // The resolver also returns EAI_AGAIN or EAI_NONAME when it can open no socket.
        let error = SystemError(result == EAI_SYSTEM ? code : 0)
        if let problem = error.isOutOfDescriptors ? error : SystemError.lackOfDescriptors {
            return EngineError(.outOfDescriptors, failure(name, text: problem.text).reason, code: problem.code)
        }
        if result == EAI_SYSTEM {
            var failure = failure(name, text: SystemError(code).text)
            failure.code = code
            return failure
        }
        return unsafe failure(name, text: gai_strerror(result).map { unsafe String(cString: $0) })
    }

    private static func failure(_ name: String, text: String?) -> EngineError {
        EngineError(.dns, "the name '\(name)' could not be resolved" + (text.map { ": \($0)" } ?? ""))
    }
}

extension SystemError {
    /// The error with which no descriptor can be opened now; nil if one can be opened. Libraries report the call that
    /// failed, but not this reason.
    static var lackOfDescriptors: SystemError? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        if descriptor < 0 {
            let error = SystemError.last
            return error.isOutOfDescriptors ? error : nil
        }
        close(descriptor)
        return nil
    }
}
#endif
