/// What the allocator does with the addresses of objects that have ended.
enum Addresses {
    private final class Something {}

    /// Whether one is handed out again soon. The address sanitizer's allocator does not, on purpose.
    static let areUsedAgain: Bool = {
        var seen: Set<ObjectIdentifier> = []
        for _ in 0..<1_000 {
            let object = Something()
            if !seen.insert(ObjectIdentifier(object)).inserted { return true }
        }
        return false
    }()
}
