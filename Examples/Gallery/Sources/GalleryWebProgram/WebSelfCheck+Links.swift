import GalleryChecks
import GalleryWeb
import GtkBridge
import Tern
import TernViewModels

/// What is tapped, sent, and gone back to.
extension WebSelfCheck {
    func checkLinks() async throws {
        site.forgetVisits()
        _ = try await page.evaluate("document.getElementById('part').click()")
        let hash = await value(of: "location.hash") { $0 == "#below" }
        checks.check("a jump within the page asks nobody", hash == "#below" && site.pages.isEmpty, site.summary)
        _ = try await page.evaluate("document.getElementById('next').click()")
        await expect("/deep/next", "a tapped link is shown")
        let visit = site.pages.first
        checks.check(
            "and was loaded through Tern, once",
            site.pages.map(\.line) == ["GET /deep/next"] && visit?.isByTern == true, site.summary)
        let referrer = visit?.referrer ?? "no Referer"
        checks.check("it tells where it stood", referrer == site.url("/deep/japanese"), referrer)
        await expectSteps(back: true, forward: false, "back is possible, forward is not")
        browser.back.click()
        let text = await value(of: "document.getElementById('text')?.textContent") { $0 == "日本語の頁" }
        checks.check("back shows the page before, in its charset", text == "日本語の頁", text)
        await expectSteps(back: false, forward: true, "forward is possible, back is not")
        browser.forward.click()
        await expect("/deep/next", "forward shows the page after")
        let lines = ["GET /deep/next", "GET /start", "GET /deep/japanese", "GET /deep/next"]
        let isOurs = site.pages.map(\.line) == lines && site.pages.allSatisfy(\.isByTern)
        checks.check("each step was loaded through Tern", isOurs, site.summary)
        browser.reload.click()
        let isReloaded = await MainLoop.wait { site.pages.count == 5 && page.webLoad == nil }
        checks.check("reload asks anew", isReloaded && site.pages.last?.line == "GET /deep/next", site.summary)
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
        checks.check("not by Tern", site.pages.map(\.isByTern) == [false], site.summary)
    }
}
