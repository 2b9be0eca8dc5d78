import Tern

/// Prints the body of an address, if there is one among the arguments.
@main
enum Linkage {
    static func main() async throws {
        print("linked:", Client.self, Session.self)
        for address in CommandLine.arguments.dropFirst() {
            print(try await Client().get(address, as: String.self))
        }
    }
}
