import Tern

/// Prints the bodies of the addresses among the arguments, or why there are none.
@main
enum Linkage {
    static func main() async {
        print("linked:", Client.self, Session.self)
        for address in CommandLine.arguments.dropFirst() {
            do throws(NetworkError) {
                print(try await Client().get(address, as: String.self))
            } catch {
                print("failed:", error.kind)
            }
        }
    }
}
