import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The options of all commands that send requests.
struct ConnectionOptions: ParsableArguments {
    @OptionGroup var header: HeaderOptions

    @Option(
        name: [.customShort("u"), .long],
        help: ArgumentHelp(
            "User and password for the server, on which all URLs must be. They are sent to no other server, and never shown.",
            valueName: "user:password"))
    var user: String?

    @Option(
        name: [.customLong("max-time")],
        help: ArgumentHelp("End a transfer after this time, with its retries.", valueName: "seconds"))
    var maximumTime: Double?

    @Option(
        help: ArgumentHelp(
            "Try again this often after a failure that may pass. 9 in a row without a new byte for downloads, 0 otherwise.",
            valueName: "number"))
    var retry: Int?

    @Flag(name: .shortAndLong, help: "Write each request and response, without secrets, to standard error.")
    var verbose = false

    func validate() throws {
        if let user, !user.contains(":") { throw ValidationError("-u takes user:password") }
        if let maximumTime, !(maximumTime > 0 && maximumTime < 1e9) {
            throw ValidationError("--max-time takes a number of seconds above 0")
        }
        if let retry, retry < 0 { throw ValidationError("--retry takes a number of 0 or more") }
    }

    /// The time limit; nil for none.
    var timeLimit: Duration? { maximumTime.map { .seconds($0) } }

    /// Returns the configuration of a session for these URLs.
    func configuration(for urls: [String], _ terminal: Terminal) throws -> Session.Configuration {
        var configuration = Session.Configuration()
        if user != nil, Set(urls.map(URLText.origin)).count > 1 {
            throw ValidationError("-u works with one server, and the URLs name several")
        }
        if let user, let colon = user.firstIndex(of: ":") {
            let credential = Credential.user(
                String(user[..<colon]), password: String(user[user.index(after: colon)...]))
            let credentials = Dictionary(urls.map { ($0, credential) }) { first, _ in first }
            configuration.credentials = try FixedCredentials(credentials, isPreemptive: true)
        }
        if verbose {
            configuration.interceptors.append(LoggingInterceptor(.headers) { terminal.writeLine($0) })
        }
        return configuration
    }

    /// Returns a session for requests that are tried again as often as `--retry` says.
    func session(
        for url: String, _ terminal: Terminal, change: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Session {
        var configuration = try configuration(for: [url], terminal)
        change(&configuration)
        if let retry, retry > 0 {
            var policy = RetryPolicy()
            policy.limit = retry
            configuration.interceptors.insert(RetryInterceptor(policy), at: 0)
        }
        return Session(configuration: configuration)
    }
}

/// The option `-d` of commands that can send a body.
enum BodyText {
    /// Returns a body: the text itself, the bytes of a file for `@FILE`, and those of standard input for `@-`.
    static func body(_ text: String, contentType: String) throws -> Request.Body {
        guard text.hasPrefix("@") else { return .data(Data(text.utf8), contentType: contentType) }
        return .data(try FileText.bytes(of: String(text.dropFirst())), contentType: contentType)
    }
}
