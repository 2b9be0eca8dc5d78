extension Request {
    /// Where the parameters of a request go, and in what form.
    public enum ParameterEncoding: Sendable {
        /// Names and values: the query of a request whose method has no body, the form of any other.
        case form(FormEncoder)
        /// JSON, by the session's encoder.
        case json
        /// A property list.
        case propertyList

        /// A form by the default encoder.
        public static var form: Self { .form(FormEncoder()) }
    }

    /// Puts parameters where the method has a place for them: GET, HEAD and DELETE in the query, behind what the URL has
    /// there already, and all others in the body. The `Content-Type` is set only if the request has none.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the values do not fit into a query. A body is encoded when
    ///   the request is sent.
    public mutating func setParameters(
        _ parameters: some Encodable & Sendable, as encoding: ParameterEncoding = .form
    ) throws(NetworkError) {
        if method == .get || method == .head || method == .delete {
            var encoder = FormEncoder()
            if case .form(let given) = encoding { encoder = given }
            target = target.appending(try Query(encoding: parameters, with: encoder))
            return
        }
        switch encoding {
        case .form(let encoder): body = .form(parameters, encoder: encoder)
        case .json: body = .json(parameters)
        case .propertyList: body = .propertyList(parameters)
        }
    }
}
