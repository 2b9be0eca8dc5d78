/// Which variants of a picture were put into memory, so that one can be made of another. Pure; what has left memory since is
/// found out by looking, and bounded here.
struct Ancestry: Sendable {
    private var variants: [SourceKey: [ImageKey]] = [:]
    private var count = 0
    private let limit: Int

    init(limit: Int = 20_000) { self.limit = limit }

    func keys(of source: SourceKey) -> [ImageKey] { variants[source] ?? [] }

    mutating func insert(_ key: ImageKey) {
        guard variants[key.source]?.contains(key) != true else { return }
        // It only helps to find: beginning anew loses nothing but a shortcut.
        if count >= limit { self = Ancestry(limit: limit) }
        variants[key.source, default: []].append(key)
        count += 1
    }

    mutating func remove(_ source: SourceKey) -> [ImageKey] {
        let removed = variants.removeValue(forKey: source) ?? []
        count -= removed.count
        return removed
    }
}
