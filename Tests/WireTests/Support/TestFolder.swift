import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A folder for one test, which is removed after it.
struct TestFolder: Sendable {
    let path: String

    /// The names of all files in the folder, including hidden files and the content of its folders.
    var names: [String] {
        get throws { try FileManager.default.subpathsOfDirectory(atPath: path).sorted() }
    }

    func url(_ name: String) -> URL { URL(filePath: "\(path)/\(name)") }

    func write(_ bytes: some Sequence<UInt8>, to name: String) throws { try Data(bytes).write(to: url(name)) }

    func write(_ text: String, to name: String) throws { try write(text.utf8, to: name) }

    func bytes(_ name: String) throws -> Data { try Data(contentsOf: url(name)) }

    func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }
}

func inTestFolder(_ test: (TestFolder) async throws -> Void) async throws {
    let path = "/tmp/tern-test-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    // A folder that cannot be removed disturbs no other test.
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await test(TestFolder(path: path))
}

/// The file system, with failures where a test requests them.
struct FaultyFiles: FileSystem {
    private let system = PosixFileSystem()
    /// Called before bytes of a pipe are written, with their number.
    var willWriteFromPipe: @Sendable (Int) -> Void = { _ in }
    /// Returns `errno` for a call on a path, or nil to perform it. Calls on a descriptor have no path.
    let fault: @Sendable (_ call: String, _ path: String) -> Int32?

    private func check(_ call: String, _ path: String = "") throws(FileFailure) {
        if let code = fault(call, path) { throw FileFailure(call, path, code: code) }
    }

    func open(_ path: String, _ mode: FileMode) throws(FileFailure) -> Int32 {
        try check("open", path)
        return try system.open(path, mode)
    }

    func close(_ descriptor: Int32) throws(FileFailure) {
        try system.close(descriptor)
        try check("close")
    }

    func write(_ bytes: Data, to descriptor: Int32) throws(FileFailure) {
        try check("write")
        try system.write(bytes, to: descriptor)
    }

    /// Also asks for "write from a pipe", where EINVAL stands for a file system that takes no bytes out of a pipe.
    func write(_ count: Int, from pipe: BodyPipe, to descriptor: Int32) throws(FileFailure) {
        if let code = fault("write from a pipe", "") {
            guard code == EINVAL else { throw FileFailure("write", "", code: code) }
            return try write(try pipe.read(count), to: descriptor)
        }
        try check("write")
        willWriteFromPipe(count)
        try system.write(count, from: pipe, to: descriptor)
    }

    func read(_ descriptor: Int32, at offset: Int64, count: Int) throws(FileFailure) -> Data {
        try check("read")
        return try system.read(descriptor, at: offset, count: count)
    }

    func readInMemory(
        _ descriptor: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
    ) -> Int? {
        if fault("readInMemory", "") != nil { return nil }
        return unsafe system.readInMemory(descriptor, at: offset, into: buffer)
    }

    func countInMemory(_ descriptor: Int32, at offset: Int64, count: Int) -> Int {
        fault("countInMemory", "") == nil ? system.countInMemory(descriptor, at: offset, count: count) : 0
    }

    func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure) {
        try check("truncate")
        try system.truncate(descriptor, to: length)
    }

    func length(of path: String) throws(FileFailure) -> Int64 {
        try check("length", path)
        return try system.length(of: path)
    }

    func exists(_ path: String) -> Bool { system.exists(path) }

    func makeFolders(_ path: String) throws(FileFailure) {
        try check("makeFolders", path)
        try system.makeFolders(path)
    }

    func rename(_ path: String, to destination: String) throws(FileFailure) {
        try check("rename", path)
        try system.rename(path, to: destination)
    }

    func renameIfAbsent(_ path: String, to destination: String) throws(FileFailure) {
        try check("rename", path)
        try system.renameIfAbsent(path, to: destination)
    }

    func remove(_ path: String) throws(FileFailure) { try system.remove(path) }
}

/// Values seen by the threads of a server or by the closures of a task, for the test to read.
final class Log<Element: Sendable>: Sendable {
    private let shared = Lock<[Element]>([])

    var all: [Element] { shared.withLock { $0 } }

    func add(_ element: Element) { shared.withLock { $0.append(element) } }
}
