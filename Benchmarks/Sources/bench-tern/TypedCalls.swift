import BenchShapes
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
