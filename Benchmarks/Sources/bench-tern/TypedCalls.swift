import BenchSupport
import Tern

extension Peer {
    /// Performs a typed call, and returns the size of the JSON of the answer.
    ///
    /// Apart from the other scenarios, so that its values do not lie in their frames.
    @inline(never)
    func performTyped(_ scenario: Scenario) async throws -> Int {
        switch scenario {
        case .user:
            let user: User = try await client.get(path)
            return user.id > 0 ? size : -1
        case .page:
            let repositories: [Repository] = try await client.get(path)
            return repositories.count == count ? size : -1
        default:
            let user = try await client.post(path, body: .json(page), as: User.self)
            return user.id > 0 ? size : -1
        }
    }

    /// Performs a typed call once, and throws an error if the values are not those of the command line.
    func check(_ options: Options) async throws {
        guard let expected = options.expected else { return }
        let found: Decoded
        switch scenario {
        case .user, .post:
            let user: User =
                scenario == .user ? try await client.get(path) : try await client.post(path, body: .json(page))
            found = Decoded(count: 1, first: user.id, second: user.followers)
        case .page:
            let repositories: [Repository] = try await client.get(path)
            found = Decoded(
                count: repositories.count, first: repositories.reduce(0) { $0 + $1.stars },
                second: repositories.reduce(0) { $0 + $1.size })
        default:
            return
        }
        if found != expected { throw WrongValues(found: found) }
    }

    struct WrongValues: Error {
        let found: Decoded
    }
}

/// A user of the typed calls.
struct User: Codable, Sendable {
    var id: Int
    var login: String
    var name: String
    var email: String
    var avatarURL: String
    var followers: Int
    var isSiteAdmin: Bool
    var score: Double

    enum CodingKeys: String, CodingKey {
        case id, login, name, email
        case avatarURL = "avatar_url"
        case followers
        case isSiteAdmin = "site_admin"
        case score
    }
}

/// A repository of the typed calls.
struct Repository: Codable, Sendable {
    var id: Int
    var name: String
    var fullName: String
    var isPrivate: Bool
    var owner: Owner
    var url: String
    var description: String
    var isFork: Bool
    var createdAt: String
    var pushedAt: String
    var homepage: String?
    var size: Int
    var stars: Int
    var watchers: Int
    var language: String?
    var forks: Int
    var openIssues: Int
    var defaultBranch: String
    var topics: [String]
    var license: License?
    var score: Double

    enum CodingKeys: String, CodingKey {
        case id, name
        case fullName = "full_name"
        case isPrivate = "private"
        case owner
        case url = "html_url"
        case description
        case isFork = "fork"
        case createdAt = "created_at"
        case pushedAt = "pushed_at"
        case homepage, size
        case stars = "stargazers_count"
        case watchers = "watchers_count"
        case language
        case forks = "forks_count"
        case openIssues = "open_issues_count"
        case defaultBranch = "default_branch"
        case topics, license, score
    }

    struct Owner: Codable, Sendable {
        var login: String
        var id: Int
        var avatarURL: String
        var type: String

        enum CodingKeys: String, CodingKey {
            case login, id
            case avatarURL = "avatar_url"
            case type
        }
    }

    struct License: Codable, Sendable {
        var key: String
        var name: String
    }
}
