import GalleryChecks
import GalleryWeb
import GtkBridge
import Tern
import TernViewModels

/// Checks what the web view claims, on WebKit's own widget: what a page says is read out of it by script, and who asked for
/// it out of the server's record.
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
            checks.check("the checks come to their end", false, "\(error)")
        }
    }

    // MARK: The checks

    private func checkText() async throws {
        let content = try await page.load(try Request(.get, site.url("/start"))).value
        let text = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
        checks.check("a page's text survives Shift_JIS", text == "日本語の頁", text)
        let charset = try await page.evaluate("document.characterSet")
        let isTold = charset == "Shift_JIS" && content.textEncoding == "shift_jis"
        checks.check("the view is told the charset", isTold, charset)
        let address = try await page.evaluate("location.href")
        checks.check("the base is the URL after redirects", address == site.url("/deep/japanese"), address)
        let width = await value(of: "document.getElementById('dot').naturalWidth") { $0 == "1" }
        let picture = site.visits.first { $0.target == "/deep/dot.gif" }
        checks.check(
            "a relative picture is found, by WebKit itself", width == "1" && picture?.isByTern == false,
            picture?.userAgent ?? "not asked for")
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
            checks.check("a refused status is a failure", error.status == 404, error.shortDescription)
        }
        await MainLoop.wait { page.alert != nil }
        let title = page.alert?.title ?? "no alert"
        let text = await value(of: "document.querySelector('h1')?.textContent") { $0 == title }
        checks.check("and is shown as one", text == title, text)
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
        checks.check("which never lands", text == "page /quick" && !slow.isActive && page.alert == nil, text)
    }

    // MARK: Looking

    func loadStart() async throws {
        _ = try await page.load(try Request(.get, site.url("/start"))).value
        _ = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
    }

    /// The buttons are told of a page's end, which may come after what it shows.
    func expectSteps(back: Bool, forward: Bool, _ what: String) async {
        let areRight = await MainLoop.wait { browser.back.isEnabled == back && browser.forward.isEnabled == forward }
        checks.check(what, areRight)
    }

    func expect(_ path: String, _ what: String) async { await expectText("page \(path)", what) }

    func expectText(_ expected: String, _ what: String) async {
        let text = await value(of: "document.body?.innerText") { $0 == expected }
        checks.check(what, text == expected, text)
    }

    /// What a script says, as soon as that is what was expected, or at last.
    func value(of script: String, _ isExpected: (String) -> Bool) async -> String {
        let end = ContinuousClock.now + .seconds(20)
        while true {
            // `try?`: a page may change under the script; what is expected has to come all the same.
            let value = (try? await page.evaluate(script)) ?? "no value"
            if isExpected(value) || ContinuousClock.now > end { return value }
            await MainLoop.pause(10)
        }
    }
}
