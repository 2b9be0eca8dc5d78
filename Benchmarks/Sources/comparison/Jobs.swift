import Foundation

// The ten jobs of Documentation/Comparison.md in Tern, AsyncHTTPClient and URLSession, word for word. They are compiled
// and not run; `scripts/checks/articles` compares them with the article.

struct Book: Codable, Sendable {
    var title: String
}

struct Problem: Decodable, Sendable {
    var title: String
}

struct Refused: Error {
    var status: Int
}

let base = "https://api.example.com"

@main
struct Comparison {
    static func main() {
        print("the programs of Documentation/Comparison.md; they are compiled only")
    }
}
