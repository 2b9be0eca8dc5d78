import Tern

/// The pages that a web view was shown through Tern, as a browser's back and forward go through them. Pure.
struct WebHistory: Sendable {
    struct Entry: Sendable, Identifiable {
        let id: UInt64
        let request: Request
        let options: WebOptions
        /// The URL that answered.
        let urlString: String
    }

    /// What a load that succeeds does to the history.
    enum Placement: Sendable, Hashable {
        /// A new page: what lies ahead is forgotten.
        case append
        /// Back, forward, or a reload: the page with this number is the current one, and keeps its place.
        case visit(UInt64)
    }

    enum Step: Int, Sendable {
        case back = -1
        case none = 0
        case forward = 1
    }

    /// Pages that are kept; the oldest goes first.
    static let limit = 100

    private(set) var entries: [Entry] = []
    private var position: Int?
    private var lastID: UInt64 = 0

    var current: Entry? { position.map { entries[$0] } }

    /// The page a step away from the current one, or from the one that a pending load will make current.
    func entry(_ step: Step, pending: Placement? = nil) -> Entry? {
        var start = position
        if case .visit(let id) = pending, let index = entries.firstIndex(where: { $0.id == id }) { start = index }
        // Before the page that comes is the one that is there.
        if pending == .append { start = position.map { $0 + 1 } }
        guard let index = start.map({ $0 + step.rawValue }), entries.indices.contains(index) else { return nil }
        if pending == .append, step != .back { return nil }
        return entries[index]
    }

    /// A load has succeeded.
    mutating func commit(_ placement: Placement, _ request: Request, _ options: WebOptions, _ head: ResponseHead) {
        if case .visit(let id) = placement, let index = entries.firstIndex(where: { $0.id == id }) {
            position = index
            return
        }
        if let position { entries.removeSubrange((position + 1)...) }
        lastID += 1
        var options = options
        options.startsImmediately = true
        let again = Self.again(request, head)
        entries.append(Entry(id: lastID, request: again, options: options, urlString: head.urlString))
        if entries.count > Self.limit { entries.removeFirst() }
        position = entries.count - 1
    }

    /// What shows the page once more. A POST that was answered by a redirect to a page is not sent again: the page is asked
    /// for (RFC 9110 §15.4.4).
    static func again(_ request: Request, _ head: ResponseHead) -> Request {
        let becameGet = head.redirects.contains { redirect in
            switch redirect.status {
            case 303: request.method != .get && request.method != .head
            case 301, 302: request.method == .post
            default: false
            }
        }
        guard becameGet else { return request }
        var headers: Headers = [:]
        for name in ["Accept", "Accept-Language"] { headers[name] = request.headers[name] }
        return Request(.get, head.target, headers: headers)
    }
}
