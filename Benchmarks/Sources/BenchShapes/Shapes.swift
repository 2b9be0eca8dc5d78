/// A user of a code host.
package struct User: Codable, Sendable {
    package var id: Int
    package var login: String
    package var name: String
    package var email: String
    package var avatarURL: String
    package var followers: Int
    package var isSiteAdmin: Bool
    package var score: Double

    enum CodingKeys: String, CodingKey {
        case id, login, name, email
        case avatarURL = "avatar_url"
        case followers
        case isSiteAdmin = "site_admin"
        case score
    }
}

/// A repository of a code host.
package struct Repository: Codable, Sendable {
    package var id: Int
    package var name: String
    package var fullName: String
    package var isPrivate: Bool
    package var owner: Owner
    package var url: String
    package var description: String
    package var isFork: Bool
    package var createdAt: String
    package var pushedAt: String
    package var homepage: String?
    package var size: Int
    package var stars: Int
    package var watchers: Int
    package var language: String?
    package var forks: Int
    package var openIssues: Int
    package var defaultBranch: String
    package var topics: [String]
    package var license: License?
    package var score: Double

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

    package struct Owner: Codable, Sendable {
        package var login: String
        package var id: Int
        package var avatarURL: String
        package var type: String

        enum CodingKeys: String, CodingKey {
            case login, id
            case avatarURL = "avatar_url"
            case type
        }
    }

    package struct License: Codable, Sendable {
        package var key: String
        package var name: String
    }
}

/// A text with an author.
package struct Article: Codable, Sendable {
    package var id: Int
    package var title: String
    package var author: String
    package var body: String
    package var tags: [String]
}

/// An object of which most members are absent.
package struct Sparse: Codable, Sendable {
    package var id: Int
    package var text1, text2, text3, text4, text5, text6: String?
    package var count1, count2, count3, count4, count5, count6: Int?
    package var ratio1, ratio2, ratio3, ratio4, ratio5, ratio6: Double?
    package var flag1, flag2, flag3, flag4, flag5, flag6: Bool?
}
