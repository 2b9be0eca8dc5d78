/// Which cookies a session or a request sends and stores.
public enum CookieUse: Sendable {
    /// Those of ``CookieStore/shared``.
    case shared
    /// Those of a store that belongs to the session alone, and ends with it.
    case separate
    /// Those of a store of the caller's, as one with a file.
    case store(CookieStore)
    /// None: no `Cookie` is sent but one that the request itself has, and no `Set-Cookie` is stored.
    case none

    /// The store that a session uses all its life; nil for none. `.separate` makes a new one.
    package func makeStore() -> CookieStore? {
        switch self {
        case .shared: .shared
        case .separate: CookieStore()
        case .store(let store): store
        case .none: nil
        }
    }
}
