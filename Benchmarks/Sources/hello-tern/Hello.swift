import Tern

/// The smallest program: one GET, whose body is printed.
@main
struct Hello {
    static func main() async throws {
        print(try await Client().get(CommandLine.arguments[1], as: String.self))
    }
}
