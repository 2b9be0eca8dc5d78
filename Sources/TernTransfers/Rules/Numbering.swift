/// Gives each name in use a number, from 0 on, and counts its uses. A number that is free is given to the next name, so
/// a queue that lives for years keeps no more of them than it needs at a time. Pure.
struct Numbering<Name: Hashable & Sendable>: Sendable {
    private var numbers: [Name: Int] = [:]
    private var uses: [(name: Name, count: Int)?] = []
    private var free: [Int] = []

    /// The number of names that are in use.
    var count: Int { numbers.count }

    /// Returns the number of a name that is in use; nil for any other.
    subscript(_ name: Name) -> Int? { numbers[name] }

    /// Begins a use of a name. Returns its number.
    mutating func take(_ name: Name) -> Int {
        if let number = numbers[name] {
            uses[number]?.count += 1
            return number
        }
        let number = free.popLast() ?? uses.count
        if number == uses.count { uses.append(nil) }
        uses[number] = (name, 1)
        numbers[name] = number
        return number
    }

    /// Ends a use of the name with this number. Returns whether it was the last one.
    mutating func release(_ number: Int) -> Bool {
        guard let use = uses[number] else { return false }
        guard use.count == 1 else {
            uses[number]?.count -= 1
            return false
        }
        uses[number] = nil
        numbers[use.name] = nil
        free.append(number)
        return true
    }
}
