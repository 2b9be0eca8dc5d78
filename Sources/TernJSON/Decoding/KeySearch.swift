/// Finds the values of keys.
extension UnsafeMutablePointer where Pointee == KeyedState {
    /// Returns the index of a key's value; -1 if there is none.
    ///
    /// - Parameter advances: Whether the search for the next key begins after this one.
    @unsafe @inline(__always)
    func find<Key: CodingKey>(_ key: Key, advances: Bool) -> Int {
        if unsafe pointee.mode == .name { return unsafe find(name: key.stringValue, advances: advances) }
        let number = MemoryLayout<Key>.size == 1 ? unsafe Int(unsafeBitCast(key, to: UInt8.self)) : 0
        if unsafe number >= pointee.table.pointee.capacity || pointee.table.pointee.entries[number].bytes == nil {
            unsafe pointee.table.pointee.fill(number, with: key.stringValue)
        }
        let entry = unsafe pointee.table.pointee.entries[number]
        guard let bytes = unsafe entry.bytes else { return -1 }
        if unsafe pointee.mode == .snake {
            return unsafe findSnake(key.stringValue, number: number, advances: advances)
        }
        return unsafe find(UnsafePointer(bytes), word: entry.word, advances: advances)
    }

    /// Searches for the key that was converted to this one the last time, then for any other that is.
    @unsafe @inline(never)
    private func findSnake(_ name: String, number: Int, advances: Bool) -> Int {
        let entry = unsafe pointee.table.pointee.entries[number]
        if let bytes = unsafe entry.snakeBytes {
            let index = unsafe find(UnsafePointer(bytes), word: entry.snakeWord, advances: advances)
            if index >= 0 { return index }
        }
        let core = unsafe pointee.core
        if unsafe pointee.comparisonsLeft < 0 {
            unsafe core.useIndex(self, at: pointee.object)
            return unsafe find(name: name, advances: advances)
        }
        guard let bytes = unsafe entry.bytes else { return -1 }
        let letters = unsafe SnakeCase.hash(bytes, count: Int(truncatingIfNeeded: entry.word & 0xFFFF_FFFF))
        var place = unsafe pointee.object &+ 1
        while unsafe place < pointee.end {
            let token = core.token(place)
            if unsafe SnakeCase.hash(core.bytes + Int(token.start), count: token.length) == letters {
                let text = core.string(token)
                if SnakeCase.camelCase(of: text).utf8.elementsEqual(name.utf8) {
                    unsafe pointee.table.pointee.learn(text, for: number)
                    unsafe pointee.cursor = advances ? core.skip(place &+ 1) : place
                    return place &+ 1
                }
            }
            unsafe pointee.comparisonsLeft &-= 4
            place = core.skip(place &+ 1)
        }
        return -1
    }

    /// Returns the index of the value of a key by its name; -1 if there is none.
    @unsafe @inline(never)
    func find(name: String, advances: Bool) -> Int {
        var name = name
        return name.withUTF8 { utf8 in
            let hash = unsafe utf8.baseAddress.map { unsafe ByteWords.keyHash($0, count: utf8.count) }
            let word = Token.halves(utf8.count, Int(truncatingIfNeeded: hash ?? 0))
            return unsafe find(utf8.baseAddress ?? pointee.core.bytes, word: word, advances: advances)
        }
    }

    @unsafe @inline(__always)
    private func find(_ key: UnsafePointer<UInt8>, word: UInt64, advances: Bool) -> Int {
        let cursor = unsafe pointee.cursor
        if unsafe cursor < pointee.end {
            let core = unsafe pointee.core
            let token = core.token(cursor)
            if token.payload == word && token.flags & Token.Flags.hasEscapes == 0,
                unsafe ByteWords.areEqual(core.bytes + Int(token.start), key, count: token.length)
            {
                if advances { unsafe pointee.cursor = core.skip(cursor &+ 1) }
                return cursor &+ 1
            }
        }
        return unsafe findElsewhere(key, word: word, advances: advances)
    }

    /// Searches from the cursor to the end, then from the beginning; after many comparisons, with an index.
    @unsafe @inline(never)
    private func findElsewhere(_ key: UnsafePointer<UInt8>, word: UInt64, advances: Bool) -> Int {
        let core = unsafe pointee.core
        if unsafe pointee.comparisonsLeft < 0 && pointee.index == nil && pointee.mode != .snake {
            unsafe pointee.index = core.keyIndex(for: pointee.object)
        }
        if let index = unsafe pointee.index {
            let count = Int(truncatingIfNeeded: word & 0xFFFF_FFFF)
            let name = unsafe String(decoding: UnsafeBufferPointer(start: key, count: count), as: UTF8.self)
            return index.value(of: name) ?? -1
        }
        let start = unsafe pointee.cursor
        var place = start
        var stop = unsafe pointee.end
        var comparisons = 0
        for _ in 0..<2 {
            while place < stop {
                let token = core.token(place)
                if token.payload == word,
                    unsafe ByteWords.areEqual(core.bytes + Int(token.start), key, count: token.length)
                {
                    unsafe pointee.comparisonsLeft &-= comparisons
                    unsafe pointee.cursor = advances ? core.skip(place &+ 1) : place
                    return place &+ 1
                }
                comparisons &+= 1
                place = core.skip(place &+ 1)
            }
            place = unsafe pointee.object &+ 1
            stop = start
        }
        unsafe pointee.comparisonsLeft &-= comparisons
        return -1
    }
}

extension DecodingCore {
    /// The largest number of keys that are compared one by one.
    private static var largestSearch: Int { 256 }

    /// Returns whether the keys of an object are known to be different, so that the first one that is found is the
    /// right one.
    ///
    /// A table holds a mark for the hash of each key. Only keys with the same mark are compared. False for an object
    /// with escaped or with many keys, which get an index.
    ///
    /// - Parameter converted: Whether they are different in their letters, so that they also are after the conversion
    ///   from snake case. Then keys beyond ASCII get an index, too: words of other letters can change their length.
    func keysAreDifferent(in object: Int, converted: Bool) -> Bool {
        let token = token(object)
        if token.count > Self.largestSearch { return false }
        unsafe storage.pointee.stamp &+= 1
        let stamps = unsafe storage.pointee.stamps
        if unsafe storage.pointee.stamp == 0 {
            unsafe stamps.update(repeating: 0, count: DecodingStorage.stampCount)
            unsafe storage.pointee.stamp = 1
        }
        let stamp = unsafe storage.pointee.stamp
        var place = object &+ 1
        while place < token.end {
            let key = self.token(place)
            if key.flags & Token.Flags.hasEscapes != 0 { return false }
            var hash = key.high
            if converted {
                if key.flags & Token.Flags.isNotASCII != 0 { return false }
                hash = unsafe Int(truncatingIfNeeded: SnakeCase.hash(bytes + Int(key.start), count: key.length))
            }
            let mark = hash & (DecodingStorage.stampCount &- 1)
            if unsafe stamps[mark] == stamp, converted || repeats(place, in: object) { return false }
            unsafe stamps[mark] = stamp
            place = skip(place &+ 1)
        }
        return true
    }

    /// Returns whether a key has occurred before in its object.
    @inline(never)
    private func repeats(_ place: Int, in object: Int) -> Bool {
        let key = token(place)
        var other = object &+ 1
        while other < place {
            let token = token(other)
            if token.payload == key.payload,
                unsafe ByteWords.areEqual(bytes + Int(token.start), bytes + Int(key.start), count: key.length)
            {
                return true
            }
            other = skip(other &+ 1)
        }
        return false
    }

    /// Returns the index of an object's keys, which is made once.
    func keyIndex(for object: Int) -> KeyIndex {
        if let index = unsafe storage.pointee.indexes[object] { return index }
        let index = newKeyIndex(for: object, convert: keyConversion(in: object))
        // Few are kept, for objects that are opened again, as by a superclass.
        if unsafe storage.pointee.indexedKeys > Self.largestIndexes {
            unsafe storage.pointee.indexes = [:]
            unsafe storage.pointee.indexedKeys = 0
        }
        unsafe storage.pointee.indexes[object] = index
        unsafe storage.pointee.indexedKeys += token(object).count
        return index
    }

    /// The number of keys of all indexes after which these are given up.
    private static var largestIndexes: Int { 4_096 }

    func newKeyIndex(for object: Int, convert: (String) -> String) -> KeyIndex {
        var index = KeyIndex()
        let end = token(object).end
        var place = object &+ 1
        while place < end {
            index.add(convert(string(token(place))), value: place &+ 1)
            place = skip(place &+ 1)
        }
        return index
    }
}

/// The keys of an object with the last value of each, after the conversion of keys.
struct KeyIndex {
    /// A key that is compared by its bytes, as in the text, and not by canonical equivalence. The hash is seeded.
    private struct Name: Hashable {
        let text: String

        static func == (left: Name, right: Name) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

        func hash(into hasher: inout Hasher) {
            let isDone: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { utf8 in
                unsafe hasher.combine(bytes: UnsafeRawBufferPointer(utf8))
            }
            if isDone == nil { for byte in text.utf8 { hasher.combine(byte) } }
        }
    }

    private var values: [Name: Int] = [:]
    /// Each key once, in the order in which they occur first.
    private(set) var names: [String] = []

    mutating func add(_ name: String, value: Int) {
        if values.updateValue(value, forKey: Name(text: name)) == nil { names.append(name) }
    }

    func value(of name: String) -> Int? { values[Name(text: name)] }
}
