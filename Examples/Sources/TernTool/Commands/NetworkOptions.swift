import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options of all commands that connect: the servers that are trusted, and the way to them.
struct NetworkOptions: ParsableArguments {
    @Flag(
        name: [.customShort("k"), .long],
        help: "Trust every server, without a look at its certificate. Others can then read and change everything.")
    var insecure = false

    @Option(
        name: .customLong("cacert"),
        help: ArgumentHelp(
            "Trust the authorities in this PEM file, in place of the system's.", valueName: "file"),
        completion: .file())
    var authorities: String?

    @Option(
        help: ArgumentHelp(
            "As in HTTPie: 'no' is -k, the path of a PEM file is --cacert, and 'yes' changes nothing.",
            valueName: "yes|no|file"),
        completion: .file())
    var verify: String?

    @Option(
        name: [.customShort("x"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Connect through a proxy: [http|https|socks5|socks5h://][user:password@]host[:port], with the port 1080 by default. An empty text: through none. Without -x, http_proxy, https_proxy, all_proxy and no_proxy decide.",
            valueName: "proxy"))
    var proxy: String?

    @Flag(
        name: [.customLong("http3"), .customLong("http3-only")],
        help: "Ask servers of https URLs over HTTP/3 alone, which they must speak.")
    var http3 = false

    @Option(
        name: .customLong("keylog"),
        help: ArgumentHelp(
            "Append the secrets of TLS to this file, with which Wireshark decrypts a capture. Whoever has it can read everything.",
            valueName: "file"),
        completion: .file())
    var keyLog: String?

    func validate() throws {
        // Fails before anything is sent.
        if let keyLog { try PathText.checkFile(keyLog, of: "--keylog") }
        if let proxy { _ = try ProxyText.proxies(proxy) }
        // Seen by other users of the machine until here.
        if proxy?.contains("@") ?? false { ArgumentList.hide(proxy) }
    }

    /// Whether certificates are not checked.
    private var trustsAll: Bool { insecure || ["no", "false"].contains(verify?.lowercased()) }

    /// The path of the PEM file; nil for the system's authorities.
    private var authoritiesPath: String? {
        if let authorities { return authorities }
        guard let verify, !["yes", "true", "no", "false"].contains(verify.lowercased()) else { return nil }
        return verify
    }

    /// Sets what the options say.
    func apply(to configuration: inout Session.Configuration) throws {
        if let proxy { configuration.proxies = try ProxyText.proxies(proxy) }
        if http3 { configuration.http3 = .always }
        if let keyLog { configuration.keyLog = try TLSKeyLog(file: PathText.url(keyLog)) }
        if trustsAll {
            configuration.trust.standard = .unchecked
        } else if let path = authoritiesPath {
            let text = try FileText.bytes(of: path)
            do throws(NetworkError) {
                configuration.trust.standard = TrustPolicy(anchors: .only(try Certificate.load(pem: text)))
            } catch {
                throw ValidationError("--cacert \(Terminal.plain(path)): \(error.reason)")
            }
        }
    }

    /// Returns a session for one request.
    func session() throws -> Session {
        var configuration = Session.Configuration()
        try apply(to: &configuration)
        return ToolSession.make(configuration)
    }

    /// The same options of curl.
    var curlWords: [CurlText.Word] {
        var words: [CurlText.Word] = []
        if trustsAll { words.append(CurlText.Word("--insecure")) }
        if !trustsAll, let path = authoritiesPath { words.append(CurlText.Word("--cacert", path)) }
        if let proxy { words.append(CurlText.Word("--proxy", proxy, isSecret: proxy.contains("@"))) }
        return words
    }
}
