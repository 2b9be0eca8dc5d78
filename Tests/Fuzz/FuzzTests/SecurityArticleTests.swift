import Foundation
import Testing

@testable import TernFuzz

/// The table of `Documentation/Security.md` of the parsers that are not ours.
struct SecurityArticleTests {
    @Test func everyFuzzTargetOfTheTableExists() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let article = try String(contentsOf: root.appending(path: "Documentation/Security.md"), encoding: .utf8)
        let start = try #require(article.range(of: "## Parsers that are not ours")?.upperBound)
        let section = article[start...].prefix(
            upTo: article[start...].range(of: "\n## ")?.lowerBound ?? article.endIndex)
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("|") }.dropFirst(2)
        #expect(rows.count >= 15)
        let targets = Set(FuzzTarget.all.map(\.name))
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 5, "\(row)")
            if cells[4].hasPrefix("– ") { continue }
            // Every second piece is in backticks. Words that are no targets name types.
            let names = cells[4].split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .compactMap { $0.offset % 2 == 1 && $0.element.first?.isLowercase ?? false ? String($0.element) : nil }
            #expect(!names.isEmpty, "\(row)")
            for name in names { #expect(targets.contains(name), "\(name)") }
        }
    }
}
