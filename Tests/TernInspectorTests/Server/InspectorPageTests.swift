import Testing

@testable import TernInspector

@Suite("Inspector: page") struct InspectorPageTests {
    private let page = InspectorPage.text(nonce: "0123456789abcdef")

    @Test func stylesAndScriptsHaveTheNonce() {
        #expect(page.ranges(of: "nonce=\"0123456789abcdef\"").count == 2)
        #expect(page.ranges(of: "<script").count == 1 && page.ranges(of: "<style").count == 1)
        let policy = InspectorPage.policy(nonce: "0123456789abcdef")
        #expect(policy.hasPrefix("default-src 'none'; ") && !policy.contains("unsafe"))
        #expect(policy.contains("script-src 'nonce-0123456789abcdef'") && policy.contains("frame-ancestors 'none'"))
        #expect(!policy.contains("\n"))
    }

    @Test func nothingIsLoadedFromElsewhere() {
        for word in ["src=", "url(", "@import", "http://", "https://fonts", "//cdn", "importScripts", "WebSocket"] {
            #expect(!page.contains(word), "\(word)")
        }
        // Only an empty icon, and the export of the page's own server.
        #expect(page.ranges(of: "href=").count == 2)
        // Attributes with a style or a script would need an exception of the policy.
        #expect(!page.contains(" style=\"") && !page.contains(" onclick="))
    }

    @Test func nothingOfARequestBecomesMarkup() {
        let script = InspectorPage.script
        for word in [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser",
            "createContextualFragment", "setHTML", "srcdoc", "javascript:",
        ] {
            #expect(!script.contains(word), "\(word)")
        }
        #expect(script.contains("textContent"))
    }

    @Test func identifiersOfTheScriptAreInThePage() throws {
        let names = InspectorPage.script.split(separator: "byId(\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        for name in Set(names) where !name.hasSuffix("-") {
            #expect(page.contains("id=\"\(name)\""), "\(name)")
        }
    }
}
