import Synchronization
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Cookie store", .timeLimit(.minutes(1)))
struct CookieStoreTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func makeStore(file path: String) throws -> CookieStore {
        try CookieStore(file: path, jar: CookieJar(suffixes: .singleLabels), now: { Self.now })
    }

    private func inFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryFolder.make()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder + "/cookies.json")
    }

    /// Makes a folder for each test.
    private enum NSTemporaryFolder {
        static func make() -> String {
            let path = FileManager.default.temporaryDirectory.path + "/tern-cookies-\(UInt64.random(in: 0 ... .max))"
            try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            return path
        }
    }

    @Test(arguments: [
        "", " ", "{", "{\"version\":1,\"cookies\":[{", "[]", "\u{0}\u{0}", "{\"version\":2,\"cookies\":[]}",
    ])
    func aDamagedFileIsKeptAsideIfWanted(content: String) async throws {
        try await inFolder { path in
            let target = try Target(absolute: "https://a.example/")
            try Data(content.utf8).write(to: URL(filePath: path))
            let error = #expect(throws: NetworkError.self) { try CookieStore(file: URL(filePath: path)) }
            #expect(error?.kind == .fileSystem)
            #expect(try Data(contentsOf: URL(filePath: path)) == Data(content.utf8))
            let store = try CookieStore(file: URL(filePath: path), opening: .startingOverIfDamaged)
            #expect(store.isEmpty)
            #expect(try Data(contentsOf: URL(filePath: path + ".damaged")) == Data(content.utf8))
            store.store(["a=b; Max-Age=60"], from: target)
            try await store.save()
            // A file that is whole is read, in both ways.
            #expect(try !CookieStore(file: URL(filePath: path), opening: .startingOverIfDamaged).isEmpty)
            #expect(try !CookieStore(file: URL(filePath: path)).isEmpty)
            #expect(try Data(contentsOf: URL(filePath: path + ".damaged")) == Data(content.utf8))
        }
    }

    @Test func aFileThatCannotBeReadIsNotDamaged() async throws {
        try await inFolder { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let error = #expect(throws: NetworkError.self) {
                try CookieStore(file: URL(filePath: path), opening: .startingOverIfDamaged)
            }
            #expect(error?.kind == .fileSystem)
            #expect(FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func anEmptyStoreAddsNothing() throws {
        let store = CookieStore()
        #expect(store.isEmpty)
        #expect(store.header(for: try Target(absolute: "https://a.example/"), method: .get) == nil)
        #expect(store.store([], from: try Target(absolute: "https://a.example/")).isEmpty)
        #expect(store.isEmpty)
    }

    @Test func storedCookiesAreSentUntilTheyAreRemoved() throws {
        let store = CookieStore(jar: CookieJar(suffixes: .singleLabels))
        let target = try Target(absolute: "https://www.a.example/")
        store.store(["a=1", "b=2; domain=a.example; max-age=60"], from: target)
        #expect(store.header(for: target, method: .get) == "a=1; b=2")
        #expect(!store.isEmpty)
        store.removeSessionCookies()
        #expect(store.header(for: target, method: .get) == "b=2")
        // The condition may use the store.
        #expect(store.removeAll { $0.name == "b" && store.cookies.count == 1 } == 1)
        #expect(store.isEmpty)
        #expect(store.header(for: target, method: .get) == nil)
    }

    @Test func redirectFromAnotherSiteExcludesStrictCookies() throws {
        let suffixes = PublicSuffixes(
            isSuffix: { $0 == "example" }, registrable: { $0.split(separator: ".").suffix(2).joined(separator: ".") })
        let store = CookieStore(jar: CookieJar(suffixes: suffixes))
        let target = try Target(absolute: "https://www.a.example/")
        store.store(["s=1; samesite=strict", "l=1; samesite=lax", "n=1; samesite=none; secure"], from: target)
        func cookieHeader(after redirects: String..., method: Request.Method = .get) throws -> String? {
            store.header(for: target, method: method, redirects: try redirects.map { try Target(absolute: $0) })
        }
        #expect(try cookieHeader() == "s=1; l=1; n=1")
        #expect(try cookieHeader(after: "https://login.a.example/") == "s=1; l=1; n=1")
        #expect(try cookieHeader(after: "https://b.example/") == "l=1; n=1")
        #expect(try cookieHeader(after: "https://b.example/", method: .post) == "n=1")
        #expect(try cookieHeader(after: "https://a.example/", "https://b.example/") == "l=1; n=1")
        // The scheme is part of a site.
        #expect(try cookieHeader(after: "http://www.a.example/") == "l=1; n=1")
    }

    @Test func systemListContainsSuffixes() throws {
        #if os(Linux)
        try #require(CookieStore.knowsPublicSuffixes, "libpsl.so.5 is missing (Debian package libpsl5)")
        let list = PublicSuffixes.system
        for suffix in ["com", "co.uk", "github.io", "ck", "no-such-tld", "xn--55qx5d.cn"] {
            #expect(list.contains(suffix), "\(suffix)")
        }
        for domain in ["example.com", "example.co.uk", "me.github.io", "www.ck", "127.0.0.1", "::1"] {
            #expect(!list.contains(domain), "\(domain)")
        }
        func areSame(_ left: String, _ right: String) throws -> Bool {
            list.areSameSite(try Target(absolute: left), try Target(absolute: right))
        }
        #expect(try areSame("https://a.b.co.uk/", "https://b.co.uk/"))
        #expect(try !areSame("https://a.co.uk/", "https://b.co.uk/"))
        #expect(try !areSame("https://1.2.3.4/", "https://9.2.3.4/"))
        #expect(try areSame("https://[::1]/", "https://[::1]:8443/"))
        #endif
    }

    @Test func singleLabelsAreSuffixesWithoutAList() throws {
        let list = PublicSuffixes.singleLabels
        #expect(list.contains("com") && !list.contains("co.uk") && !list.isComplete)
        let (a, b) = (try Target(absolute: "https://www.a.example/"), try Target(absolute: "https://a.example/"))
        #expect(list.areSameSite(a, b) && list.areSameSite(b, a))
        #expect(!list.areSameSite(a, try Target(absolute: "https://x.a.example/")))
    }

    @Test func manualCookiesAreChecked() throws {
        let store = CookieStore(jar: CookieJar(suffixes: .singleLabels))
        #expect(throws: Cookie.Refusal.malformed) {
            try store.insert(Cookie(name: "a", value: "b;c", domain: "a.example"))
        }
        try store.insert(Cookie(name: "a", value: "b", domain: "a.example", isHostOnly: false))
        let url = try #require(URL(string: "https://www.a.example/x"))
        #expect(store.cookies(for: url).map(\.value) == ["b"])
        #expect("\(store)" == "CookieStore(1 cookies)")
    }

    // MARK: Files

    /// The default path is that of the URL, which can hold characters that an attribute cannot hold.
    @Test func lastingCookiesOfPathsWithSemicolonsSurvive() async throws {
        try await inFolder { path in
            let target = try Target(absolute: "https://a.example/app;v=1/x")
            let store = try makeStore(file: path)
            store.store(["a=1; max-age=60"], from: target)
            try await store.save()
            let again = try makeStore(file: path)
            #expect(again.cookies.map(\.path) == ["/app;v=1"])
            #expect(again.header(for: target, method: .get) == "a=1")
        }
    }

    @Test func lastingCookiesSurvive() async throws {
        try await inFolder { path in
            let target = try Target(absolute: "https://www.a.example/x/y")
            let store = try makeStore(file: path)
            store.store(
                ["a=1; max-age=60; secure; httponly; samesite=lax", "s=2", "b=3; max-age=60; domain=a.example"],
                from: target)
            try await store.save()
            let again = try makeStore(file: path)
            #expect(again.cookies == store.cookies.filter { $0.expires != nil })
            #expect(again.cookies.map(\.name) == ["a", "b"])
            #expect(again.header(for: target, method: .get) == "a=1; b=3")
        }
    }

    @Test(arguments: [
        // The default path is that of the server's URL, which can hold characters that separate attributes.
        ("https://a.example/a;v=1/x", "a=1"), ("https://a.example/;/", "a=1"),
        ("https://a.example/a%3Bb/=/x", "a=1; Path="), ("https://a.example/a\u{E9} b/x", "a=1"),
        ("https://b\u{FC}cher.example/x", "a=1; Domain=xn--bcher-kva.example"), ("https://[::1]/", "a=1"),
        ("https://a.example/", "a=\tb\tc; Path=/\td"), ("https://a.example/", "a=1; Path=/\u{E9};b"),
        ("https://a.example/", "=a=b"), ("https://a.example/", "__Host-a=1; Secure; Path=/"),
    ])
    func cookiesOfServersSurvive(url: String, field: String) async throws {
        try await inFolder { path in
            let target = try Target(absolute: url)
            let store = try makeStore(file: path)
            store.store([field + "; Max-Age=60"], from: target)
            try await store.save()
            let again = try makeStore(file: path)
            #expect(again.cookies == store.cookies)
            #expect(again.cookies.count == 1)
            #expect(again.header(for: target, method: .get) == store.header(for: target, method: .get))
        }
    }

    @Test func changesAreWrittenAutomatically() async throws {
        try await inFolder { path in
            let target = try Target(absolute: "https://a.example/")
            var store: CookieStore? = try makeStore(file: path)
            store?.store(["a=1; max-age=60"], from: target)
            // The write is queued before the store is released; the write of another store waits behind it.
            store = nil
            try await makeStore(file: path + ".other").save()
            #expect(try makeStore(file: path).cookies.map(\.value) == ["1"])
        }
    }

    @Test func fileIsReadableByItsOwnerOnlyAndNoOtherFileRemains() async throws {
        try await inFolder { path in
            let store = try makeStore(file: path)
            for number in 0..<20 {
                store.store(["a=\(number); max-age=60"], from: try Target(absolute: "https://a.example/"))
                try await store.save()
            }
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions].map { "\($0)" } == "\(0o600)")
            let folder = FilePath.folder(of: path)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["cookies.json"])
        }
    }

    /// The name of a temporary file, for which nobody asked, would mislead.
    @Test(arguments: ["/dev/null/cookies.json", "/proc/tern-no-folder/cookies.json"])
    func aFailureToSaveNamesTheFileOfTheStore(path: String) async throws {
        let store = try makeStore(file: path)
        store.store(["a=1; max-age=60"], from: try Target(absolute: "https://a.example/"))
        do {
            try await store.save()
            Issue.record("the store was saved")
        } catch {
            #expect("\(error)".contains("save \(path)"), "\(error)")
            #expect(!"\(error)".contains(".tmp"))
        }
    }

    @Test func expiredCookieIsNotReadBack() async throws {
        try await inFolder { path in
            let store = try makeStore(file: path)
            store.store(["a=1; max-age=60"], from: try Target(absolute: "https://a.example/"))
            try await store.save()
            let later = try CookieStore(
                file: path, jar: CookieJar(suffixes: .singleLabels), now: { Self.now.addingTimeInterval(61) })
            #expect(later.isEmpty)
        }
    }

    @Test(arguments: [
        "", "{", "[]", "{\"version\":2,\"cookies\":[]}", "{\"version\":1,\"cookies\":[{\"name\":\"s3cret\"}]}",
    ])
    func fileOfAnotherFormatIsAnErrorAndIsKept(text: String) async throws {
        try await inFolder { path in
            try Data(text.utf8).write(to: URL(filePath: path))
            let error = #expect(throws: NetworkError.self) { try makeStore(file: path) }
            #expect(error?.kind == .fileSystem)
            #expect(error?.reason.contains(path) ?? false)
            #expect(!(error?.reason.contains("s3cret") ?? true))
            #expect(try Data(contentsOf: URL(filePath: path)) == Data(text.utf8))
        }
    }

    @Test func invalidCookiesOfAnEditedFileAreSkipped() async throws {
        try await inFolder { path in
            let store = try makeStore(file: path)
            store.store(["a=marker; max-age=60", "b=2; max-age=60"], from: try Target(absolute: "https://a.example/"))
            try await store.save()
            let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
            let edited = text.replacing("marker", with: "x\\r\\nEvil: y")
            try Data(edited.utf8).write(to: URL(filePath: path))
            #expect(try makeStore(file: path).cookies.map(\.name) == ["b"])
        }
    }

    @Test func failedWriteIsReportedAndKeepsTheOldFile() async throws {
        let store = try makeStore(file: "/no-such-folder/cookies.json")
        store.store(["a=1; max-age=60"], from: try Target(absolute: "https://a.example/"))
        let error = await #expect(throws: NetworkError.self) { try await store.save() }
        #expect(error?.kind == .fileSystem)
        #expect(error?.reason.contains("/no-such-folder") ?? false)
    }

    @Test func threadsCanShareOneStore() async throws {
        let store = CookieStore(jar: CookieJar(suffixes: .singleLabels))
        let target = try Target(absolute: "https://a.example/")
        await withTaskGroup { group in
            for task in 0..<4 {
                group.addTask {
                    for number in 0..<200 {
                        store.store(["t\(task)n\(number % 40)=\(number)"], from: target)
                        _ = store.header(for: target, method: .get)
                    }
                }
            }
        }
        #expect(store.cookies.count == 160)
    }
}
