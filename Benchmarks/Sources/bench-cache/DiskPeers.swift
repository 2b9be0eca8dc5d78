#if canImport(CTernSQLite)
import CTernSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

enum DiskPeerError: Error {
    case sqlite(Int32)
    case system(Int32)
    case missing
}

/// YYCache's design, written anew: one table of everything, values up to 20 KB in it, the rest in files without a
/// temporary name, WAL with `synchronous = NORMAL`, one lock around all, an UPDATE of the access time for each read.
@safe final class YYDesign {
    private var database: OpaquePointer?
    private let folder: String
    private var insert: OpaquePointer?
    private var select: OpaquePointer?
    private var update: OpaquePointer?

    init(_ folder: String) throws {
        self.folder = folder
        try check(unsafe sqlite3_open(folder + "/manifest.sqlite", &database))
        let schema = """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
            CREATE TABLE manifest(key TEXT PRIMARY KEY, filename TEXT, size INTEGER, inline_data BLOB,
                modification_time INTEGER, last_access_time INTEGER, extended_data BLOB);
            CREATE INDEX last_access_time_idx ON manifest(last_access_time);
            """
        try check(unsafe sqlite3_exec(database, schema, nil, nil, nil))
        unsafe insert = try prepare("INSERT OR REPLACE INTO manifest VALUES(?1, ?2, ?3, ?4, ?5, ?5, NULL)")
        unsafe select = try prepare("SELECT filename, inline_data FROM manifest WHERE key = ?1")
        unsafe update = try prepare("UPDATE manifest SET last_access_time = ?1 WHERE key = ?2")
    }

    deinit {
        unsafe sqlite3_finalize(insert)
        unsafe sqlite3_finalize(select)
        unsafe sqlite3_finalize(update)
        unsafe sqlite3_close(database)
    }

    func insert(_ value: Data, _ key: String) throws {
        let isInline = value.count <= 20_480
        let name = FilePerKey.name(key)
        if !isInline { try FilePerKey.write(value, folder + "/" + name) }
        unsafe bind(insert, 1, key)
        if isInline { unsafe sqlite3_bind_null(insert, 2) } else { unsafe bind(insert, 2, name) }
        unsafe sqlite3_bind_int64(insert, 3, Int64(value.count))
        unsafe value.withUnsafeBytes { bytes in
            _ = unsafe tern_sqlite_bind_copy(insert, 4, bytes.baseAddress, isInline ? bytes.count : 0)
        }
        unsafe sqlite3_bind_int64(insert, 5, Int64(time(nil)))
        defer { unsafe sqlite3_reset(insert) }
        try check(unsafe sqlite3_step(insert), SQLITE_DONE)
    }

    func value(_ key: String, touching: Bool) throws -> Data? {
        unsafe bind(select, 1, key)
        defer { unsafe sqlite3_reset(select) }
        guard unsafe sqlite3_step(select) == SQLITE_ROW else { return nil }
        var value: Data
        if let name = unsafe sqlite3_column_text(select, 0) {
            value = try unsafe FilePerKey.read(folder + "/" + String(cString: name))
        } else {
            let count = unsafe Int(sqlite3_column_bytes(select, 1))
            guard let bytes = unsafe sqlite3_column_blob(select, 1) else { return nil }
            value = unsafe Data(bytes: bytes, count: count)
        }
        if touching {
            unsafe sqlite3_reset(select)
            unsafe sqlite3_bind_int64(update, 1, Int64(time(nil)))
            unsafe bind(update, 2, key)
            defer { unsafe sqlite3_reset(update) }
            try check(unsafe sqlite3_step(update), SQLITE_DONE)
        }
        return value
    }

    private func bind(_ statement: OpaquePointer?, _ index: Int32, _ text: String) {
        unsafe sqlite3_bind_text(statement, index, text, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
    }

    private func prepare(_ sql: String) throws -> OpaquePointer? {
        var statement: OpaquePointer?
        try check(unsafe sqlite3_prepare_v2(database, sql, -1, &statement, nil))
        return unsafe statement
    }

    private func check(_ code: Int32, _ expected: Int32 = SQLITE_OK) throws {
        guard code == expected else { throw DiskPeerError.sqlite(code) }
    }
}

/// A file for each key, named by a hash of it, written under a temporary name and renamed.
final class FilePerKey {
    private let folder: String

    init(_ folder: String) throws {
        self.folder = folder
        guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw DiskPeerError.system(errno) }
    }

    static func name(_ key: String) -> String {
        var first: UInt64 = 14_695_981_039_346_656_037
        for byte in key.utf8 { first = (first ^ UInt64(byte)) &* 1_099_511_628_211 }
        return String(first, radix: 16)
    }

    func insert(_ value: Data, _ key: String) throws {
        let path = folder + "/" + Self.name(key)
        try Self.write(value, path + ".tmp")
        guard unsafe rename(path + ".tmp", path) == 0 else { throw DiskPeerError.system(errno) }
    }

    private let buffer = UnsafeMutableRawBuffer(2 << 20)

    /// Opens, reads into one buffer, and closes: the limit of what a read can cost.
    func touch(_ key: String, _ size: Int) throws {
        let descriptor = unsafe open(folder + "/" + Self.name(key), O_RDONLY)
        defer { close(descriptor) }
        guard unsafe systemRead(descriptor, buffer.address, size) == size else { throw DiskPeerError.missing }
    }

    static func write(_ value: Data, _ path: String) throws {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        let count = unsafe value.withUnsafeBytes { unsafe systemWrite(descriptor, $0.baseAddress, $0.count) }
        guard count == value.count else { throw DiskPeerError.system(errno) }
    }

    static func read(_ path: String) throws -> Data {
        let descriptor = unsafe open(path, O_RDONLY)
        guard descriptor >= 0 else { throw DiskPeerError.system(errno) }
        defer { close(descriptor) }
        var status = stat()
        unsafe fstat(descriptor, &status)
        guard let memory = unsafe malloc(Int(status.st_size)) else { throw DiskPeerError.system(ENOMEM) }
        let count = unsafe systemRead(descriptor, memory, Int(status.st_size))
        return unsafe Data(bytesNoCopy: memory, count: max(0, count), deallocator: .free)
    }
}

@safe private final class UnsafeMutableRawBuffer {
    let address: UnsafeMutableRawPointer
    init(_ count: Int) { unsafe address = .allocate(byteCount: count, alignment: 4_096) }
    deinit { unsafe address.deallocate() }
}

// The methods above have the names of the calls.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, bytes, count)
}
private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    unsafe read(descriptor, bytes, count)
}
#endif
