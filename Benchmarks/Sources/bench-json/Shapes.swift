import BenchShapes

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
