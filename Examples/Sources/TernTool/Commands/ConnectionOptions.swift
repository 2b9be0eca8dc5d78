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
    @OptionGroup var network: NetworkOptions

    @Option(
        name: [.customShort("u"), .customShort("a"), .long, .customLong("auth")], parsing: .unconditional,
        help: ArgumentHelp(
            "User and password for the server, on which all URLs must be. They are sent to no other server, and shown by --reveal alone.",
            valueName: "user:password"))
    var user: String?

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp("End a transfer after this time, with its retries.", valueName: "seconds"))
    var maximumTime: Double?

    @Option(
        name: .customLong("connect-timeout"),
        help: ArgumentHelp(
            "Give up a connection that is not made within this time; 15 by default.", valueName: "seconds"))
    var maximumConnectTime: Double?

    @Option(
        help: ArgumentHelp(
            "Try again this often after a failure that may pass. 9 in a row without a new byte for downloads, 0 otherwise.",
            valueName: "number"))
    var retry: Int?

    @Flag(
        name: [.customShort("L"), .customLong("location"), .customLong("follow")],
        help: "Follow redirects, which is so without this option, too.")
    var location = false

    @Flag(help: "Follow no redirect: the redirect is the response.")
    var noLocation = false

    @Flag(
        name: .shortAndLong,
        help: "Write each request, as a command for curl, and each response to standard error, without secrets.")
    var verbose = false

    @Flag(help: "With -v, show secrets in the command, so that it can be pasted; with --har, write them to the file.")
    var reveal = false

    @Flag(name: .shortAndLong, help: "Show neither progress nor errors; the exit code tells what happened.")
    var silent = false

    @Flag(name: [.customShort("S"), .long], help: "With -s, show errors.")
    var showError = false

    func validate() throws {
        // Seen by other users of the machine until here.
        ArgumentList.hide(user)
        if location, noLocation { throw ValidationError("-L and --no-location exclude each other") }
        if let maximumConnectTime, !(maximumConnectTime > 0 && maximumConnectTime < 1e9) {
            throw ValidationError("--connect-timeout takes a number of seconds above 0")
        }
        if let user, !user.contains(":") { throw ValidationError("-u takes user:password") }
        if let maximumTime, !(maximumTime > 0 && maximumTime < 1e9) {
            throw ValidationError("--max-time takes a number of seconds above 0")
        }
        if let retry, retry < 0 { throw ValidationError("--retry takes a number of 0 or more") }
    }

    /// Takes the user and password out of a URL. As in curl, they are then sent before the server asks for them, unless
    /// `-u` has others. Those of a list of URLs stay: it can name several users of one server.
    mutating func takeUser(from url: inout String) {
        guard let split = URLText.splittingUser(url) else { return }
        user = user ?? split.user
        url = split.url
    }

    /// The time limit; nil for none.
    var timeLimit: Duration? { maximumTime.map { .seconds($0) } }

    /// The messages that are shown.
    var messages: Terminal.Messages {
        Terminal.Messages(showsProgress: !silent, showsErrors: !silent || showError)
    }

    /// Returns the configuration of a session for these URLs.
    func configuration(for urls: [String], _ terminal: Terminal) throws -> Session.Configuration {
        var configuration = Session.Configuration()
        try network.apply(to: &configuration)
        if noLocation {
            configuration.redirects = .stop
            configuration.validation.statuses = { (200..<400).contains($0) }
        }
        if let maximumConnectTime { configuration.timeouts.connect = .seconds(maximumConnectTime) }
        // Servers say in the body why they refuse a request.
        configuration.quotedExplanations = .json
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

    /// Writes the command of curl for a request, with `-v`.
    func tell(_ request: Request, sending body: SentBody? = nil, _ words: [CurlText.Word] = [], on terminal: Terminal) {
        guard verbose else { return }
        terminal.writeLine(
            CurlText.command(for: request, sending: body, options: curlWords + words, isRevealed: reveal))
    }

    /// The same options of curl.
    private var curlWords: [CurlText.Word] {
        var words: [CurlText.Word] = []
        if !noLocation { words.append(CurlText.Word("--location")) }
        words += network.curlWords
        if let user { words.append(CurlText.Word("--user", user, isSecret: true)) }
        if let maximumTime { words.append(CurlText.Word("--max-time", "\(maximumTime)")) }
        return words
    }

    /// Returns a session for requests that are tried again as often as `--retry` says.
    ///
    /// - Parameter makeSession: Returns the session of the complete configuration.
    func session(
        for url: String, _ terminal: Terminal, change: (inout Session.Configuration) -> Void = { _ in },
        makeSession: (Session.Configuration) -> Session = { Session(configuration: $0) }
    ) throws -> Session {
        var configuration = try configuration(for: [url], terminal)
        change(&configuration)
        if let retry, retry > 0 {
            var policy = RetryPolicy()
            policy.limit = retry
            configuration.interceptors.insert(RetryInterceptor(policy), at: 0)
        }
        return ToolSession.make(configuration, by: makeSession)
    }
}
