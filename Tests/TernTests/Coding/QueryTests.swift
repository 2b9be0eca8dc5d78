import Tern
import Testing

@Suite("Query")
struct QueryTests {
    @Test func reservedCharactersAreEscapedByAFNetworkingsRule() {
        #expect(
            QueryEncoding.encode([(" :#[]@!$&'()*+,;=/?", nil)])
                == "%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?")
    }

    @Test func everyByteIsKeptOrEscaped() {
        let kept = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?".unicodeScalars)
        for byte in UInt8(0)..<128 {
            let scalar = Unicode.Scalar(byte)
            let code = String(byte, radix: 16, uppercase: true)
            let expected = kept.contains(scalar) ? String(scalar) : "%" + (byte < 16 ? "0" : "") + code
            #expect(QueryEncoding.encode([(String(scalar), nil)]) == expected)
        }
    }

    @Test(arguments: [
        ("", ""), ("%20", "%2520"), ("é", "%C3%A9"), ("e\u{301}", "e%CC%81"),
        ("👨‍👩‍👧", "%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7"), ("a\r\nb", "a%0D%0Ab"), ("\0", "%00"),
    ])
    func textIsEscapedAsUTF8(input: String, expected: String) {
        #expect(QueryEncoding.encode([(input, nil)]) == expected)
    }

    @Test func literalsKeepTheirOrderAndDescribeTheirValues() {
        let limit: Int? = 10
        let absent: String? = nil
        let query: Request.Query = [
            "z": 2, "tags": "a b", "flag": .null, "cursor": nil, "on": true, "ratio": 1.5, "limit": limit,
            "absent": absent, "z": "again",
        ]
        #expect(query.encoded == "z=2&tags=a%20b&flag&on=true&ratio=1.5&limit=10&z=again")
        #expect(query.items.count == 7)
    }

    @Test func itemsAreAddedAndNamesEscaped() {
        var query = Request.Query()
        #expect(query.isEmpty && query.encoded.isEmpty)
        query.append("a[]", 1)
        query.append("a[]", "x&y=z")
        query.append("e", "")
        query.append("n", .null)
        query.append("absent", nil)
        #expect(query.encoded == "a%5B%5D=1&a%5B%5D=x%26y%3Dz&e=&n")
        #expect(query == Request.Query(query.items))
    }

    @Test func dictionariesAreOrderedByName() {
        #expect(Request.Query(["b": "2", "a": "1 2", "c": ""]).encoded == "a=1%202&b=2&c=")
    }

    @Test func valuesAreNotDescribed() {
        #expect("\(["token": "s3cret", "flag": .null] as Request.Query)" == "token=<redacted>&flag")
    }
}
