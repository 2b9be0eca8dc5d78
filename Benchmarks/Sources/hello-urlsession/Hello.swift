import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The smallest program: one GET, whose body is printed.
@main
struct Hello {
    static func main() async throws {
        guard let url = URL(string: CommandLine.arguments[1]) else { throw URLError(.badURL) }
        let (data, _) = try await URLSession.shared.data(from: url)
        print(String(decoding: data, as: UTF8.self))
    }
}
