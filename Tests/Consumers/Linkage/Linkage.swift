import Tern

@main
enum Linkage {
    static func main() {
        print("linked:", Client.self, Session.self)
    }
}
