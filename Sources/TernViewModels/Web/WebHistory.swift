public import Tern

/// A navigation that a web view is about to make, such as a link, a form or a reload.
public struct WebNavigation: Sendable {
    /// The cause of a navigation.
    public enum Kind: Sendable, Hashable {
        /// The user activated a link.
        case link
        /// The user submitted a form.
        case formSubmission
        /// The page is loaded again.
        case reload
        /// A step back in the history.
        case back
        /// A step forward in the history.
        case forward
        /// Any other cause: content that was passed to the view, scripts or frames.
        case other
    }

    /// The party that performs a navigation.
    public enum Decision: Sendable, Hashable {
        /// Tern loads the page, and the view shows the result.
        case loadThroughTern
        /// The view performs the navigation itself.
        case loadInView
        /// The navigation does not happen.
        case ignore
    }

    /// The cause of the navigation.
    public let kind: Kind
    /// The request with method, headers and body, as far as the toolkit provides them.
    public let request: Request
    /// A Boolean value that indicates whether the whole page changes, rather than a frame. True by default.
    public let isMainFrame: Bool

    /// Creates a navigation from the report of a toolkit's delegate.
    public init(_ kind: Kind, _ request: Request, isMainFrame: Bool = true) {
        self.kind = kind
        self.request = request
        self.isMainFrame = isMainFrame
    }

    /// Returns the decision if the view's own hook makes none.
    ///
    /// The view itself handles frames, content passed to it, jumps within the current page, and steps to pages that
    /// Tern has not loaded.
    func decision(loadsLinks: Bool, history: WebHistory) -> Decision {
        guard loadsLinks, isMainFrame else { return .loadInView }
        let isOurs =
            switch kind {
            case .other: false
            case .link: request.fragment == nil || request.urlString != history.current?.urlString
            case .formSubmission: true
            case .reload: history.current != nil
            case .back: history.entry(.back) != nil
            case .forward: history.entry(.forward) != nil
            }
        return isOurs ? .loadThroughTern : .loadInView
    }
}

/// The pages that a web view has shown through Tern, with a browser's back and forward. Pure.
struct WebHistory: Sendable {
    struct Entry: Sendable, Identifiable {
        let id: UInt64
        let request: Request
        let options: WebOptions
        /// The URL of the response.
        let urlString: String
    }

    /// The effect of a successful load on the history.
    enum Placement: Sendable, Hashable {
        /// Adds a new page and removes the pages ahead.
        case append
        /// Makes the page with this number current and keeps its place: back, forward or a reload.
        case visit(UInt64)
    }

    enum Step: Int, Sendable {
        case back = -1
        case none = 0
        case forward = 1
    }

    /// The maximum number of pages; the oldest is removed first.
    static let limit = 100

    private(set) var entries: [Entry] = []
    private var position: Int?
    private var lastID: UInt64 = 0

    var current: Entry? { position.map { entries[$0] } }

    /// Returns the page one step from the current page, or from the page that a pending load will make current.
    func entry(_ step: Step, pending: Placement? = nil) -> Entry? {
        var start = position
        if case .visit(let id) = pending, let index = entries.firstIndex(where: { $0.id == id }) { start = index }
        // The page before the pending page is the current one.
        if pending == .append { start = position.map { $0 + 1 } }
        guard let index = start.map({ $0 + step.rawValue }), entries.indices.contains(index) else { return nil }
        if pending == .append, step != .back { return nil }
        return entries[index]
    }

    /// Records a successful load.
    mutating func commit(_ placement: Placement, request: Request, options: WebOptions, head: ResponseHead) {
        if case .visit(let id) = placement, let index = entries.firstIndex(where: { $0.id == id }) {
            position = index
            return
        }
        if let position { entries.removeSubrange((position + 1)...) }
        lastID += 1
        var options = options
        options.startsImmediately = true
        let repeated = Self.repeated(request, after: head)
        entries.append(Entry(id: lastID, request: repeated, options: options, urlString: head.urlString))
        if entries.count > Self.limit { entries.removeFirst() }
        position = entries.count - 1
    }

    /// Returns the request that shows the page again. A POST that was answered by a redirect to a page is not sent
    /// again; the page is requested instead (RFC 9110 §15.4.4).
    static func repeated(_ request: Request, after head: ResponseHead) -> Request {
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
