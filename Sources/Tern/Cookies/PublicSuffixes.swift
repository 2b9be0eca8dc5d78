#if canImport(Glibc)
import Glibc
#endif

/// The public suffix list: domains under which strangers register, so that no cookie may be for all of one.
///
/// On Linux that of `libpsl.so.5`, opened when it is first needed; Debian's libcurl depends on it. Without it, and on
/// Apple's systems, only domains of a single label (`com`) are known for suffixes, and a site is a host with the hosts
/// below it.
package struct PublicSuffixes: Sendable {
    /// Whether a whole list is at hand.
    package let isComplete: Bool
    private let isSuffix: @Sendable (String) -> Bool
    private let registrable: @Sendable (String) -> String?

    package init(
        isComplete: Bool = true, isSuffix: @escaping @Sendable (String) -> Bool,
        registrable: @escaping @Sendable (String) -> String?
    ) {
        self.isComplete = isComplete
        self.isSuffix = isSuffix
        self.registrable = registrable
    }

    /// The system's list.
    package static let system: PublicSuffixes = {
        #if canImport(Glibc)
        if let library = SuffixLibrary() {
            return PublicSuffixes(isSuffix: { library.isSuffix($0) }, registrable: { library.registrable($0) })
        }
        #endif
        return singleLabels
    }()

    /// What is known without a list.
    package static let singleLabels = PublicSuffixes(
        isComplete: false, isSuffix: { !$0.utf8.contains(UInt8(ascii: ".")) }, registrable: { _ in nil })

    /// Whether the domain, in lower case, is one under which strangers register.
    package func contains(_ domain: String) -> Bool {
        !CookieMatching.isAddress(domain.utf8) && isSuffix(domain)
    }

    /// Whether two URLs belong to one site: the same scheme and the same registrable domain (RFC 6265bis §5.2).
    package func areSameSite(_ left: Target, _ right: Target) -> Bool {
        if left.isSecure != right.isSecure { return false }
        if left.host == right.host { return true }
        if !isComplete {
            return CookieMatching.host(left.host, isWithin: right.host)
                || CookieMatching.host(right.host, isWithin: left.host)
        }
        if CookieMatching.isAddress(left.host.utf8) || CookieMatching.isAddress(right.host.utf8) { return false }
        guard let domain = registrable(left.host) else { return false }
        return registrable(right.host) == domain
    }
}

#if canImport(Glibc)
/// `libpsl.so.5`, which is opened and never closed.
private struct SuffixLibrary: Sendable {
    private typealias Latest = @convention(c) (UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias IsSuffix = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> CInt
    private typealias Registrable = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafePointer<CChar>?

    // The list is never changed once it is made, so that any thread may read it; as a number it is Sendable.
    private let list: UInt
    private let isSuffixAddress: UInt
    private let registrableAddress: UInt

    init?() {
        guard let handle = unsafe dlopen("libpsl.so.5", RTLD_NOW | RTLD_LOCAL),
            let latest = unsafe dlsym(handle, "psl_latest"),
            let isSuffix = unsafe dlsym(handle, "psl_is_public_suffix"),
            let registrable = unsafe dlsym(handle, "psl_registrable_domain"),
            // The newer one of the system's file and the list that is built in.
            let list = unsafe unsafeBitCast(latest, to: Latest.self)(nil)
        else { return nil }
        self.list = UInt(bitPattern: list)
        isSuffixAddress = UInt(bitPattern: isSuffix)
        registrableAddress = UInt(bitPattern: registrable)
    }

    func isSuffix(_ domain: String) -> Bool {
        let function = unsafe unsafeBitCast(isSuffixAddress, to: IsSuffix.self)
        return unsafe domain.withCString { unsafe function(OpaquePointer(bitPattern: list), $0) } == 1
    }

    func registrable(_ domain: String) -> String? {
        let function = unsafe unsafeBitCast(registrableAddress, to: Registrable.self)
        return unsafe domain.withCString { domain in
            // The result points into the text that was given.
            guard let result = unsafe function(OpaquePointer(bitPattern: list), domain) else { return nil }
            return unsafe String(cString: result)
        }
    }
}
#endif
