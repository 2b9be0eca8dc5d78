/// The subject of a run.
public enum Scenario: String, Sendable, CaseIterable {
    /// Small GETs over kept-alive HTTP/1.1 connections.
    case get
    /// Small GETs over kept-alive HTTP/1.1 connections with TLS.
    case https
    /// Small GETs as concurrent HTTP/2 streams over TLS.
    case h2
    /// Bodies of 64 KiB, collected in memory.
    case body64k
    /// Large downloads into a file.
    case downloadFile = "download-file"
    /// Large downloads, read chunk by chunk and thrown away.
    case downloadStream = "download-stream"
    /// Large uploads from a file.
    case upload
    /// GETs of a user, decoded from JSON. Of the peers in Swift, only Tern's supports this scenario, `page` and `post`.
    case user
    /// GETs of a page of repositories, decoded from JSON.
    case page
    /// POSTs of a page of repositories, encoded as JSON for each call, which are answered with a user.
    case post

    /// A Boolean value that indicates whether a request moves so much that the result is bytes a second.
    public var isTransfer: Bool {
        switch self {
        case .get, .https, .h2, .body64k, .user, .page, .post: false
        case .downloadFile, .downloadStream, .upload: true
        }
    }
}

/// The command line, the same for every peer: `SCENARIO --url URL --connections N --requests M …`.
public struct Options: Sendable {
    /// The scenario to measure.
    public var scenario = Scenario.get
    /// The resource that is fetched, or that takes the upload.
    public var url = ""
    /// A small resource, fetched before the clock of a transfer starts.
    public var warmUpURL: String?
    /// A PEM file with the only certificate authority to trust.
    public var caFile: String?
    /// Where a download goes, where an upload comes from, or the JSON of the values that are posted.
    public var file = ""
    /// The limit of connections.
    public var connections = 1
    /// Requests in flight at a time; nil: as many as connections.
    public var atOnce: Int?
    /// Requests that are measured.
    public var requests = 1
    /// Requests before the clock starts; nil: a tenth of `requests`, at most 2,000, at least twice the connections.
    public var warmUp: Int?
    /// Bytes that each body must have; nil: the scenario's own range.
    public var size: Int?
    /// The number of the values that are decoded and the sums of two of their numbers; nil: they are not checked.
    public var expected: Decoded?
    /// A Boolean value that indicates whether the progress of each request is read. Only Tern's program supports it.
    public var watches = false
    /// The additions to the session of each call, such as `cookie`. Only Tern's program supports any.
    public var additions: Set<String> = []
    /// A Boolean value that indicates whether the calls run on the executor of their session.
    public var usesExecutor = false
    /// The number of event loops; nil: the default. Only Tern's program supports this option, `origins` and `sessions`.
    public var loops: Int?
    /// The number of origins, on the port of `url` and those after it. The workers take turns.
    public var origins = 1
    /// The number of sessions. The workers take turns.
    public var sessions = 1

    /// How to call a peer.
    public static let usage = """
        usage: bench-X get|https|h2|body64k|download-file|download-stream|upload|user|page|post --url URL \
        --connections N --requests M [--cacert PEM] [--file PATH] [--warm-up-url URL] [--warm-up N] [--size BYTES] \
        [--at-once N] [--expect COUNT,SUM,SUM] \
        [--watch yes|no] [--with cookie,observer,inspector,retry,adapter,interceptor,handle] \
        [--executor yes|no] [--loops N] [--origins N] [--sessions N]
        """

    /// Reads the arguments after the program's name; nil when they make no sense.
    public init?(_ arguments: [String]) {
        guard let name = arguments.first, let scenario = Scenario(rawValue: name) else { return nil }
        self.scenario = scenario
        var rest = arguments.dropFirst()
        while let key = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch key {
            case "--url": url = value
            case "--warm-up-url": warmUpURL = value
            case "--cacert": caFile = value
            case "--file": file = value
            case "--connections": connections = Int(value) ?? 0
            case "--at-once": atOnce = Int(value)
            case "--requests": requests = Int(value) ?? 0
            case "--warm-up": warmUp = Int(value)
            case "--size": size = Int(value)
            case "--expect": expected = Decoded(value)
            case "--watch": watches = value == "yes"
            case "--with": additions = Set(value.split(separator: ",").map(String.init))
            case "--executor": usesExecutor = value == "yes"
            case "--loops": loops = Int(value)
            case "--origins": origins = Int(value) ?? 0
            case "--sessions": sessions = Int(value) ?? 0
            default: return nil
            }
        }
        let needsFile = scenario == .downloadFile || scenario == .upload || scenario == .post
        guard !url.isEmpty, connections > 0, requests > 0, !needsFile || !file.isEmpty else { return nil }
        guard origins > 0, sessions > 0 else { return nil }
    }

    /// Returns whether the scenario expects a body of so many bytes.
    public func accepts(_ bytes: Int) -> Bool {
        if let size { return bytes == size }
        switch scenario {
        case .get, .https, .h2: return (64...100).contains(bytes)
        case .body64k: return bytes == 65_536
        case .downloadFile, .downloadStream, .upload: return bytes == 1 << 30
        case .user, .page, .post: return bytes >= 0
        }
    }

    /// Requests before the clock starts.
    var warmUpCount: Int { warmUp ?? max(min(requests / 10, 2_000), 2 * connections) }
}

/// The number of decoded values, and the sums of two of their numbers.
public struct Decoded: Sendable, Equatable {
    /// The number of values.
    public var count: Int
    /// The sum of one number of each.
    public var first: Int
    /// The sum of another number of each.
    public var second: Int

    /// Creates the figures.
    public init(count: Int, first: Int, second: Int) {
        self.count = count
        self.first = first
        self.second = second
    }

    /// Reads `COUNT,SUM,SUM`.
    init?(_ text: String) {
        let numbers = text.split(separator: ",").compactMap { Int($0) }
        guard numbers.count == 3 else { return nil }
        self.init(count: numbers[0], first: numbers[1], second: numbers[2])
    }
}

/// The error of a scenario that a peer does not have.
public struct UnsupportedScenario: Error {
    /// Creates the error.
    public init() {}
}
