#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The shapes by their names in `runner/json_shapes.py`.
enum Shape: String {
    case user, repository, page30, page300, doubles, dictionaries, cjk, escapes, pretty, sparse, dates, sorted, base64

    /// Runs a job with the type of the shape.
    func run(_ job: Job, with coder: some Coder) throws {
        switch self {
        case .user: try job.run(User.self, with: coder)
        case .repository: try job.run(Repository.self, with: coder)
        case .page30, .page300, .pretty, .sorted: try job.run([Repository].self, with: coder)
        case .doubles: try job.run([Double].self, with: coder)
        case .dictionaries: try job.run([String: [String: Int]].self, with: coder)
        case .cjk: try job.run([Article].self, with: coder)
        case .escapes: try job.run([String].self, with: coder)
        case .sparse: try job.run([Sparse].self, with: coder)
        case .dates: try job.run([Date].self, with: coder)
        case .base64: try job.run([Data].self, with: coder)
        }
    }
}

struct User: Codable {
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

struct Repository: Codable {
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

    struct Owner: Codable {
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

    struct License: Codable {
        var key: String
        var name: String
    }
}

struct Article: Codable {
    var id: Int
    var title: String
    var author: String
    var body: String
    var tags: [String]
}

struct Sparse: Codable {
    var id: Int
    var text1, text2, text3, text4, text5, text6: String?
    var count1, count2, count3, count4, count5, count6: Int?
    var ratio1, ratio2, ratio3, ratio4, ratio5, ratio6: Double?
    var flag1, flag2, flag3, flag4, flag5, flag6: Bool?
}
