import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Trust policies")
struct TrustPolicyTests {
    /// A self-signed certificate of 2026 for 127.0.0.1 (P-256), and the SHA-256 of its public key as computed by
    /// openssl.
    static let pem = """
        -----BEGIN CERTIFICATE-----
        MIIBhDCCASqgAwIBAgIUXAosv8T+gJGhmDGbihEjqatrcq0wCgYIKoZIzj0EAwIw
        DzENMAsGA1UEAwwEdGVybjAeFw0yNjExMjEwNjQ3MDNaFw0zNjExMTgwNjQ3MDNa
        MA8xDTALBgNVBAMMBHRlcm4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASwbn/t
        RVBEpfAXkS+B8sbQHMQj5F29PCqt60S3UTJMDV5r3tokTph7pzQC6dSRdauaVa6m
        kiaaUF5MtANgnANzo2QwYjAdBgNVHQ4EFgQU8M5eSafmLzkjLj/ueYcJOV3ARUww
        HwYDVR0jBBgwFoAU8M5eSafmLzkjLj/ueYcJOV3ARUwwDwYDVR0TAQH/BAUwAwEB
        /zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIQCa03QS8aGrc2RA
        t9Z7po0Io0dYy3HHhPvDGxrZG6T9WAIgGLWBvGs5ozCCAf0QXvx0kCzUNxb403mN
        oYSfIc9EV7A=
        -----END CERTIFICATE-----
        """
    static let pin = "BVuWPbfs8NPkfS0meNeMdOjJ0G+OHKXxtlNEVRlkoWY="

    private func certificate() throws -> Certificate {
        try #require(try Certificate.load(pem: Data(Self.pem.utf8)).first)
    }

    @Test func hashOfTheKeyMatchesOpenSSL() throws {
        #expect(try certificate().keyHash.base64EncodedString() == Self.pin)
        #expect("\(try certificate())" == "sha256/\(Self.pin)")
        #expect(try Pin(key: Self.pin) == .key(of: certificate()))
        #expect(try Pin(key: "sha256/" + Self.pin).fits(certificate()))
    }

    @Test func invalidCertificateIsRefused() throws {
        let der = try certificate().der
        for count in [0, 1, 2, 10, der.count - 1] {
            #expect(throws: NetworkError.self) { try Certificate(der: der.prefix(count)) }
        }
        #expect(throws: NetworkError.self) { try Certificate(der: der + [0]) }
        #expect(throws: NetworkError.self) { try Certificate.load(pem: Data("none".utf8)) }
        // Bytes with wrong lengths are refused, and are not read beyond their end.
        var state: UInt64 = 3
        for _ in 0..<5_000 {
            var bytes = der
            for _ in 0..<3 {
                state = state &* 6_364_136_223_846_793_005 &+ 1
                bytes[Int(state >> 33) % 120] = UInt8(truncatingIfNeeded: state >> 56)
            }
            _ = try? Certificate(der: bytes)  // Either is right: it must not trap.
        }
    }

    @Test func fileCanHoldSeveralCertificates() throws {
        let text = "subject=x\n" + Self.pem + "\n\n" + Self.pem.replacing("\n", with: "\r\n")
        #expect(try Certificate.load(pem: Data(text.utf8)) == [certificate(), certificate()])
        // A backup pin that is silently left out is missed only when it is needed.
        let end = "-----END CERTIFICATE-----"
        for damaged in [Self.pem.replacing(end, with: ""), Self.pem.replacing(end, with: "!\n" + end)] {
            for text in [damaged + "\n" + Self.pem, Self.pem + "\n" + damaged] {
                #expect(throws: NetworkError.self) { try Certificate.load(pem: Data(text.utf8)) }
            }
        }
    }

    @Test(arguments: ["", "sha256/", "abc", "sha1/AAAA", "AAAA"]) func pinsAreThirtyTwoBytes(text: String) {
        #expect(throws: NetworkError.self) { try Pin(key: text) }
    }

    // MARK: Verdicts

    private let other = String(repeating: "A", count: 43) + "="
    private let now = Date(timeIntervalSince1970: 1_000_000)

    private func verdict(_ policy: TrustPolicy) throws -> TrustVerdict {
        policy.verdict(on: [try certificate()], of: "api.example.com", now: now)
    }

    @Test func oneFittingPinAmongManyIsEnough() throws {
        #expect(try verdict(TrustPolicy()) == .accepted)
        #expect(try verdict(TrustPolicy(pins: [Pin(key: other), Pin(key: Self.pin)])) == .accepted)
        #expect(try verdict(TrustPolicy(pins: [.certificate(certificate())])) == .accepted)
        #expect(try verdict(.pinnedKeys(of: [certificate()])) == .accepted)
    }

    @Test func aRefusalNamesHostFoundAndExpected() throws {
        guard case .refused(let reason) = try verdict(TrustPolicy(pins: [Pin(key: other)])) else {
            Issue.record("was taken")
            return
        }
        #expect(
            reason.contains("api.example.com") && reason.contains("found sha256/\(Self.pin)")
                && reason.contains("expected sha256/\(other)"))
    }

    @Test func emptyPinsMatchNothing() throws {
        guard case .refused = try verdict(TrustPolicy(pins: [])) else {
            Issue.record("was taken")
            return
        }
    }

    @Test func reportsAreDeliveredAndTaken() throws {
        var policy = TrustPolicy(pins: [try Pin(key: other)])
        policy.isReportOnly = true
        guard case .reported = try verdict(policy) else {
            Issue.record("not reported")
            return
        }
    }

    @Test func expiredPinsDoNotCount() throws {
        var policy = TrustPolicy(pins: [try Pin(key: other)])
        policy.pinsExpire = now
        #expect(try verdict(policy) == .accepted)
        policy.pinsExpire = now + 1
        #expect(try verdict(policy) != .accepted)
    }

    @Test func pinCanApplyToTheLeafOnly() throws {
        let leaf = try certificate()
        var policy = TrustPolicy(pins: [.key(of: leaf)])
        policy.pinScope = .leaf
        #expect(policy.verdict(on: [leaf], of: "h", now: now) == .accepted)
        #expect(policy.verdict(on: [], of: "h", now: now) != .accepted)
    }

    // MARK: Hosts

    @Test func hostsAreMatchedByNameThenByTheLongestWildcard() {
        var policies = TrustPolicies()
        func policy(_ number: Int) -> TrustPolicy {
            var policy = TrustPolicy(pins: [])
            policy.pinsExpire = Date(timeIntervalSince1970: Double(number))
            return policy
        }
        policies.hosts = [
            "api.example.com": policy(1), "*.example.com": policy(2), "*.eu.example.com": policy(3), "::1": policy(4),
            "UPPER.test": policy(5),
        ]
        #expect(policies.policy(for: "API.example.com") == policy(1))
        #expect(policies.policy(for: "www.example.com") == policy(2))
        #expect(policies.policy(for: "a.b.example.com") == policy(2))
        #expect(policies.policy(for: "a.eu.example.com") == policy(3))
        #expect(policies.policy(for: "eu.example.com") == policy(2))
        #expect(policies.policy(for: "::1") == policy(4))
        #expect(policies.policy(for: "upper.test") == policy(5))
        #expect(policies.policy(for: "api.example.com.") == policy(1))
        policies.hosts["dot.test."] = policy(6)
        #expect(policies.policy(for: "dot.test") == policy(6))
        for host in ["example.com", "evilexample.com", "example.com.evil.test", "com"] {
            #expect(policies.policy(for: host) == TrustPolicy())
        }
        policies.standard = nil
        #expect(policies.policy(for: "example.com") == nil)
    }

    /// To a resolver, `ａpi.example.com`, in full-width letters, is `api.example.com`: it must not find the standard
    /// policy.
    @Test func everySpellingOfAHostFindsItsPolicy() {
        var policies = TrustPolicies()
        #expect(policies.policy(for: "no host") == TrustPolicy())
        let strict = TrustPolicy(pins: [])
        policies.hosts = [
            "api.example.com": strict, "*.b\u{FC}cher.example": strict, "127.1": strict, "[0:0:0:0:0:0:0:1]": strict,
            "fe80::1%eth0": strict,
        ]
        #expect(policies.problem == nil)
        for host in [
            "\u{FF41}pi.example.com", "API.example.com.", "a.xn--bcher-kva.example", "a.B\u{DC}CHER.example",
            "127.0.0.1",
            "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "::1", "[::1]", "::0.0.0.1", "[fe80::1%25eth0]",
            "fe80:0:0:0::1%eth0",
        ] { #expect(policies.policy(for: host) == strict, "\(host)") }
        for host in ["b\u{FC}cher.example", "127.0.0.2", "::2", "fe80::1", "fe80::1%eth1"] {
            #expect(policies.policy(for: host) == TrustPolicy(), "\(host)")
        }
        for host in ["", "a b", "[::1", "::1%1", "1.2.3.256"] { #expect(policies.policy(for: host) == nil, "\(host)") }
    }

    @Test func oneHostHasOnePolicy() {
        for other in ["API.example.com", "api.example.com.", "\u{FF41}pi.example.com"] {
            var policies = TrustPolicies()
            policies.hosts = ["api.example.com": TrustPolicy(), other: TrustPolicy(pins: [])]
            #expect(policies.problem != nil)
        }
    }

    @Test func requestWithItsOwnPolicySharesNoResponse() throws {
        var request = try Request(.get, "https://api.example.com/")
        #expect(CoalescingKey(request, headers: Headers()) != nil)
        request.trust = TrustPolicy(pins: [])
        #expect(CoalescingKey(request, headers: Headers()) == nil)
    }

    @Test(arguments: [
        "", ".", "*.", "*", "a*.example.com", "https://example.com", "a b", "::1%1", "*.0.0.1", "*.[::1]",
    ])
    func invalidHostIsAProblem(host: String) {
        var policies = TrustPolicies()
        policies.hosts = [host: TrustPolicy()]
        #expect(policies.problem != nil)
    }

    @Test func secretsAreNotInDescriptions() {
        let identity = ClientIdentity.pem(certificates: Data("c".utf8), key: Data("hunter2".utf8), password: "hunter2")
        var text = "\(identity)"
        dump(identity, to: &text)
        var policy = TrustPolicy()
        policy.identity = identity
        dump(policy, to: &text)
        #expect(!text.contains("hunter2") && !text.contains("aHVudGVyMg"))
    }
}
