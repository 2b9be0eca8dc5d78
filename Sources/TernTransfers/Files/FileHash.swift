import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if os(Linux)
import CTernOpenSSL
#elseif canImport(CryptoKit)
import CryptoKit
#endif

/// The hash of a file that is read or written in pieces: by OpenSSL on Linux, by CryptoKit on Apple's systems.
final class FileHash: Sendable {
    private struct State {
        #if os(Linux)
        /// The address of OpenSSL's context; 0 after the end. Freed at the end, or with the object.
        var context: UInt
        #else
        var function: any HashFunction
        #endif
        var count: Int64 = 0
    }

    let algorithm: FileDigest.Algorithm
    private let state: Lock<State>

    /// Creates the hash of no bytes; nil for a function that the system's configuration forbids.
    init?(_ algorithm: FileDigest.Algorithm) {
        self.algorithm = algorithm
        #if os(Linux)
        let function =
            switch algorithm {
            case .md5: TERN_HASH_MD5
            case .sha1: TERN_HASH_SHA1
            case .sha256: TERN_HASH_SHA256
            case .sha512: TERN_HASH_SHA512
            }
        guard let context = unsafe tern_hash_create(function) else { return nil }
        state = Lock(State(context: UInt(bitPattern: context)))
        #else
        let function: any HashFunction =
            switch algorithm {
            case .md5: Insecure.MD5()
            case .sha1: Insecure.SHA1()
            case .sha256: SHA256()
            case .sha512: SHA512()
            }
        state = Lock(State(function: function))
        #endif
    }

    #if os(Linux)
    deinit {
        let context = state.withLock { $0.context }
        unsafe tern_hash_free(OpaquePointer(bitPattern: context))
    }
    #endif

    /// The number of bytes so far.
    var count: Int64 { state.withLock { $0.count } }

    /// Adds the next bytes.
    func update(_ bytes: Data) {
        state.withLock { state in
            state.count += Int64(bytes.count)
            #if os(Linux)
            let context = unsafe OpaquePointer(bitPattern: state.context)
            unsafe bytes.withUnsafeBytes { bytes in
                _ = unsafe tern_hash_update(context, bytes.baseAddress, bytes.count)
            }
            #else
            state.function.update(data: bytes)
            #endif
        }
    }

    /// Returns the digest of all bytes. The hash must not be used afterwards.
    func finalize() -> FileDigest {
        let bytes = state.withLock { state -> Data in
            #if os(Linux)
            var digest = [UInt8](repeating: 0, count: 64)
            let context = unsafe OpaquePointer(bitPattern: state.context)
            let count = unsafe digest.withUnsafeMutableBufferPointer { digest in
                unsafe tern_hash_finish(context, digest.baseAddress)
            }
            return Data(digest.prefix(count))
            #else
            return Data(state.function.finalize())
            #endif
        }
        return FileDigest(algorithm, bytes: bytes)
    }
}

extension DurableAttempts {
    /// Returns the hash of no bytes. Throws for a function that the system's configuration forbids.
    func newHash(_ algorithm: FileDigest.Algorithm) throws(NetworkError) -> FileHash {
        if let hash = FileHash(algorithm) { return hash }
        throw error(.unsupported, "the system's configuration forbids \(algorithm.rawValue)")
    }
}
