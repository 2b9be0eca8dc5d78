/// The settings of a decoder. They never change, so that a decoding takes them over with one reference.
final class DecodingSettings: Sendable {
    struct Values {
        var dates = TernJSONDecoder.DateDecodingStrategy.deferredToDate
        var data = TernJSONDecoder.DataDecodingStrategy.base64
        var keys = TernJSONDecoder.KeyDecodingStrategy.useDefaultKeys
        var floats = TernJSONDecoder.NonConformingFloatDecodingStrategy.throw
        var userInfo: [CodingUserInfoKey: any Sendable] = [:]
        var depthLimit = 512
    }

    static let initial = DecodingSettings(Values())

    let values: Values
    /// Whether keys in the text differ from those of the types.
    let convertsKeys: Bool

    private init(_ values: Values) {
        self.values = values
        convertsKeys = if case .useDefaultKeys = values.keys { false } else { true }
    }

    func changed(_ change: (inout Values) -> Void) -> DecodingSettings {
        var values = values
        change(&values)
        return DecodingSettings(values)
    }
}
