import GalleryChecks
import GalleryWeb
import GtkBridge
import Tern
import TernViewModels

/// Checks the web view on WebKit's widget. Scripts read the text of a page, and the server's record shows who requested
/// it.
@MainActor
struct WebSelfCheck {
    let checks: Checks
    let browser: Browser
    let site: WebSite
    var page: WebView { browser.page }

    func run() async {
        do {
            try await checkText()
            try await checkLinks()
            try await checkFragment()
            try await checkForms()
            try await checkPost()
            try await checkFailure()
            try await checkReplacing()
        } catch {
            checks.check("the checks come to their end", false, detail: "\(error)")
        }
    }

    // MARK: The checks

    private func checkText() async throws {
        let content = try await page.load(try Request(.get, site.url("/start"))).value
        let text = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
        checks.check("a page's text survives Shift_JIS", text == "日本語の頁", detail: text)
        let charset = try await page.evaluate("document.characterSet")
        let isTold = charset == "Shift_JIS" && content.textEncoding == "shift_jis"
        checks.check("the view gets the charset", isTold, detail: charset)
        let address = try await page.evaluate("location.href")
        checks.check("the base is the URL after redirects", address == site.url("/deep/japanese"), detail: address)
        let width = await value(of: "document.getElementById('dot').naturalWidth") { $0 == "1" }
        let picture = site.visits.first { $0.target == "/deep/dot.gif" }
        checks.check(
            "a relative picture is found, by WebKit itself", width == "1" && picture?.isByTern == false,
            detail: picture?.userAgent ?? "not asked for")
        let isAtRest = await MainLoop.wait { browser.bar.fraction == 1 && !browser.spinner.isSpinning }
        checks.check("the bar is full, and the spinner stands", isAtRest)
        await expectSteps(back: false, forward: false, "no step is possible")
    }

    private func checkPost() async throws {
        site.forgetVisits()
        let request = try Request(.post, site.url("/posted"), body: .text("値"))
        _ = try await page.load(request).value
        await expectText("POST 値", "a posted page is shown")
        checks.check("and was posted by Tern", site.pages.map(\.isByTern) == [true])
    }

    private func checkFailure() async throws {
        let load = page.load(try Request(.get, site.url("/missing")))
        do throws(NetworkError) {
            _ = try await load.value
            checks.check("a refused status is a failure", false)
        } catch {
            checks.check("a refused status is a failure", error.status == 404, detail: error.shortDescription)
        }
        await MainLoop.wait { page.alert != nil }
        let title = page.alert?.title ?? "no alert"
        let text = await value(of: "document.querySelector('h1')?.textContent") { $0 == title }
        checks.check("and is shown as one", text == title, detail: text)
        checks.check("it is in no history", page.canGoBack && !page.canGoForward)
    }

    private func checkReplacing() async throws {
        let slow = page.load(try Request(.get, site.url("/slow")))
        await MainLoop.wait { site.visits.contains { $0.target == "/slow" } }
        checks.check("the spinner turns while a page loads", browser.spinner.isSpinning)
        _ = try await page.load(try Request(.get, site.url("/quick"))).value
        await expect("/quick", "a load takes the place of another")
        try await site.letSlowGo()
        await MainLoop.pause(300)
        let text = try await page.evaluate("document.body.innerText")
        checks.check("which never lands", text == "page /quick" && !slow.isActive && page.alert == nil, detail: text)
    }

    // MARK: Queries

    func loadStart() async throws {
        _ = try await page.load(try Request(.get, site.url("/start"))).value
        _ = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
    }

    /// Waits for the expected buttons, which change at the end of a page, possibly after its content is shown.
    func expectSteps(back: Bool, forward: Bool, _ what: String) async {
        let areRight = await MainLoop.wait { browser.back.isEnabled == back && browser.forward.isEnabled == forward }
        checks.check(what, areRight)
    }

    func expect(_ path: String, _ what: String) async { await expectText("page \(path)", what) }

    func expectText(_ expected: String, _ what: String) async {
        let text = await value(of: "document.body?.innerText") { $0 == expected }
        checks.check(what, text == expected, detail: text)
    }

    /// Returns the value of a script as soon as it is the expected one, or the last value.
    func value(of script: String, _ isExpected: (String) -> Bool) async -> String {
        let end = ContinuousClock.now + .seconds(20)
        while true {
            // `try?`: the page may change under the script; the expected value must come in any case.
            let value = (try? await page.evaluate(script)) ?? "no value"
            if isExpected(value) || ContinuousClock.now > end { return value }
            await MainLoop.pause(10)
        }
    }
}

/// The checks of links, forms and history.
extension WebSelfCheck {
    func checkLinks() async throws {
        site.forgetVisits()
        _ = try await page.evaluate("document.getElementById('part').click()")
        let hash = await value(of: "location.hash") { $0 == "#below" }
        checks.check(
            "a jump within the page sends no request", hash == "#below" && site.pages.isEmpty, detail: site.summary)
        _ = try await page.evaluate("document.getElementById('next').click()")
        await expect("/deep/next", "a tapped link is shown")
        let visit = site.pages.first
        checks.check(
            "and was loaded through Tern, once",
            site.pages.map(\.line) == ["GET /deep/next"] && visit?.isByTern == true, detail: site.summary)
        let referrer = visit?.referrer ?? "no Referer"
        checks.check("it tells where it stood", referrer == site.url("/deep/japanese"), detail: referrer)
        await expectSteps(back: true, forward: false, "back is possible, forward is not")
        browser.back.click()
        let text = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
        checks.check("back shows the page before, in its charset", text == "日本語の頁", detail: text)
        await expectSteps(back: false, forward: true, "forward is possible, back is not")
        browser.forward.click()
        await expect("/deep/next", "forward shows the page after")
        let lines = ["GET /deep/next", "GET /start", "GET /deep/japanese", "GET /deep/next"]
        let isOurs = site.pages.map(\.line) == lines && site.pages.allSatisfy(\.isByTern)
        checks.check("each step was loaded through Tern", isOurs, detail: site.summary)
        browser.reload.click()
        let isReloaded = await MainLoop.wait { site.pages.count == 5 && page.webLoad == nil }
        checks.check("reload asks anew", isReloaded && site.pages.last?.line == "GET /deep/next", detail: site.summary)
        checks.check("and the history stays", page.canGoBack && !page.canGoForward)
    }

    func checkFragment() async throws {
        _ = try await page.load(try Request(.get, site.url("/long#end"))).value
        let place = await value(of: "String(window.scrollY > 1000)") { $0 == "true" }
        checks.check("a page opens at the place that its fragment names", place == "true")
    }

    func checkForms() async throws {
        try await loadStart()
        site.forgetVisits()
        _ = try await page.evaluate("document.getElementById('get').submit()")
        await expect("/deep/found for tern", "a form is shown")
        checks.check(
            "and was sent through Tern",
            site.pages.map(\.line) == ["GET /deep/found?q=tern"] && site.pages.allSatisfy(\.isByTern))
        try await loadStart()
        site.forgetVisits()
        _ = try await page.evaluate("document.getElementById('post').submit()")
        await expectText("POST q=tern", "a form whose body WebKit does not tell is sent by WebKit, whole")
        checks.check("not by Tern", site.pages.map(\.isByTern) == [false], detail: site.summary)
    }
}
