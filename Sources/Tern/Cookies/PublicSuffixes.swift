#if canImport(Glibc)
import Glibc
#endif

/// The public suffix list: domains under which anybody can register, so that no cookie may be for all of one.
///
/// On Linux it comes from `libpsl.so.5`, which is opened when it is first needed (Debian package `libpsl5`). Without
/// it, and on Apple's systems, only domains of one label (`com`) count as suffixes, and a site is a host with
/// the hosts below it.
package struct PublicSuffixes: Sendable {
    /// Whether the whole list is available.
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

    /// The list of the system.
    package static let system: PublicSuffixes = {
        #if canImport(Glibc)
        if let library = SuffixLibrary() {
            return PublicSuffixes(isSuffix: { library.isSuffix($0) }, registrable: { library.registrable($0) })
        }
        #endif
        return singleLabels
    }()

    /// The rules that hold without a list.
    package static let singleLabels = PublicSuffixes(
        isComplete: false, isSuffix: { !$0.utf8.contains(UInt8(ascii: ".")) }, registrable: { _ in nil })

    /// Returns whether the domain, in lower case, is a public suffix.
    package func contains(_ domain: String) -> Bool {
        !CookieMatching.isAddress(domain.utf8) && isSuffix(domain)
    }

    /// Returns whether two URLs belong to one site: the same scheme and the same registrable domain (RFC 6265bis §5.2).
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
/// The library `libpsl.so.5`. It is opened and never closed.
private struct SuffixLibrary: Sendable {
    private typealias Latest = @convention(c) (UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias IsSuffix = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> CInt
    private typealias Registrable = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafePointer<CChar>?

    // The list never changes once it is loaded, so any thread can read it. As a number it is Sendable.
    private let list: UInt
    private let isSuffixAddress: UInt
    private let registrableAddress: UInt

    init?() {
        guard let handle = unsafe dlopen("libpsl.so.5", RTLD_NOW | RTLD_LOCAL),
            let latest = unsafe dlsym(handle, "psl_latest"),
            let isSuffix = unsafe dlsym(handle, "psl_is_public_suffix"),
            let registrable = unsafe dlsym(handle, "psl_registrable_domain"),
            // Returns the newer of the system's file and the built-in list.
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
            // The result points into the argument.
            guard let result = unsafe function(OpaquePointer(bitPattern: list), domain) else { return nil }
            return unsafe String(cString: result)
        }
    }
}
#endif
