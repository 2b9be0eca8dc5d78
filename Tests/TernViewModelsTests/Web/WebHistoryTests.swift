import Testing

@testable import Tern
@testable import TernViewModels

@Suite("Web history")
struct WebHistoryTests {
    private var history = WebHistory()

    private func request(_ path: String, _ method: Request.Method = .get) throws -> Request {
        try Request(method, "https://a.example/\(path)")
    }

    private func head(_ path: String, redirects: [Int] = []) throws -> ResponseHead {
        func head(_ status: Int, _ path: String) throws -> ResponseHead {
            let target = try Target(absolute: "https://a.example/\(path)")
            return ResponseHead(status: status, version: .http11, target: target, headers: [:])
        }
        return try head(200, path).redirected(by: redirects.map { try head($0, "from") })
    }

    private mutating func show(_ path: String, _ placement: WebHistory.Placement = .append) throws {
        history.commit(placement, request: try request(path), options: WebOptions(), head: try head(path))
    }

    private func url(_ step: WebHistory.Step, pending: WebHistory.Placement? = nil) -> String? {
        history.entry(step, pending: pending).map { String($0.urlString.suffix(1)) }
    }

    @Test mutating func theHistoryGoesBackAndForward() throws {
        #expect(history.current == nil && url(.back) == nil && url(.forward) == nil)
        for path in ["a", "b", "c"] { try show(path) }
        #expect(url(.none) == "c" && url(.back) == "b" && url(.forward) == nil)
        let back = try #require(history.entry(.back))
        try show("b", .visit(back.id))
        #expect(url(.back) == "a" && url(.none) == "b" && url(.forward) == "c")
    }

    @Test mutating func aNewPageRemovesThePagesAhead() throws {
        for path in ["a", "b"] { try show(path) }
        try show("a", .visit(try #require(history.entry(.back)).id))
        try show("d")
        #expect(history.entries.count == 2 && url(.back) == "a" && url(.none) == "d" && url(.forward) == nil)
    }

    @Test mutating func twoStepsInARowAreTwoPages() throws {
        for path in ["a", "b", "c"] { try show(path) }
        let back = WebHistory.Placement.visit(try #require(history.entry(.back)).id)
        #expect(url(.back, pending: back) == "a" && url(.forward, pending: back) == "c")
        #expect(url(.back, pending: .append) == "c" && url(.forward, pending: .append) == nil)
    }

    @Test mutating func theHistoryKeepsAHundredPages() throws {
        for number in 0..<150 { try show("\(number)") }
        #expect(history.entries.count == WebHistory.limit && history.current?.urlString.hasSuffix("/149") == true)
    }

    @Test(arguments: [
        ([303], "POST", "GET"), ([302], "POST", "GET"), ([301], "POST", "GET"), ([307], "POST", "POST"),
        ([], "POST", "POST"), ([303], "PUT", "GET"), ([302], "PUT", "PUT"), ([302], "GET", "GET"),
    ])
    func aFormIsSentAgainOnlyIfItsAnswerWasThePage(redirects: [Int], method: String, expected: String) throws {
        var request = try request("form", Request.Method(rawValue: method))
        request.body = .text("x")
        request.headers = ["Authorization": "secret", "Accept": "text/html"]
        let repeated = WebHistory.repeated(request, after: try head("page", redirects: redirects))
        #expect(repeated.method.rawValue == expected)
        if expected != method {
            #expect(repeated.urlString == "https://a.example/page" && repeated.body.isNone)
            #expect(repeated.headers["Authorization"] == nil && repeated.headers["Accept"] == "text/html")
        } else {
            #expect(repeated.urlString == "https://a.example/form")
        }
    }
}

@Suite("Web navigations")
struct WebNavigationTests {
    /// A history of three pages at the second one.
    private let history: WebHistory
    private let next: Request

    init() throws {
        var history = WebHistory()
        for path in ["a", "b", "c"] {
            let target = try Target(absolute: "https://a.example/\(path)")
            let head = ResponseHead(status: 200, version: .http11, target: target, headers: [:])
            history.commit(.append, request: Request(.get, target), options: WebOptions(), head: head)
        }
        let page = try #require(history.entry(.back))
        let target = try Target(absolute: page.urlString)
        let head = ResponseHead(status: 200, version: .http11, target: target, headers: [:])
        history.commit(.visit(page.id), request: page.request, options: WebOptions(), head: head)
        self.history = history
        next = try Request(.get, "https://a.example/next")
    }

    @Test(arguments: [WebNavigation.Kind.link, .formSubmission, .reload, .back, .forward])
    func navigationsAreLoadedThroughTernByChoice(kind: WebNavigation.Kind) {
        let navigation = WebNavigation(kind, next)
        #expect(navigation.decision(loadsLinks: false, history: history) == .loadInView)
        #expect(navigation.decision(loadsLinks: true, history: history) == .loadThroughTern)
        let frame = WebNavigation(kind, next, isMainFrame: false)
        #expect(frame.decision(loadsLinks: true, history: history) == .loadInView)
    }

    @Test func theViewHandlesContentPassedToItAndJumpsWithinThePage() throws {
        let other = WebNavigation(.other, try Request(.get, "https://a.example/b"))
        #expect(other.decision(loadsLinks: true, history: history) == .loadInView)
        let jump = WebNavigation(.link, try Request(.get, "https://a.example/b#end"))
        #expect(jump.decision(loadsLinks: true, history: history) == .loadInView)
        let away = WebNavigation(.link, try Request(.get, "https://a.example/c#end"))
        #expect(away.decision(loadsLinks: true, history: history) == .loadThroughTern)
    }

    @Test(arguments: [WebNavigation.Kind.reload, .back, .forward])
    func stepsToPagesThatTernHasNotLoadedAreTheViews(kind: WebNavigation.Kind) {
        #expect(WebNavigation(kind, next).decision(loadsLinks: true, history: WebHistory()) == .loadInView)
    }
}
