import TernStreaming
import Testing

@testable import TernTool

@Suite struct EventTextTests {
    private let event = ServerSentEvent(type: "add", data: "a\n\u{1B}[2Jb", id: "7")

    @Test func aPipeReceivesTheDataAsItIs() {
        #expect(EventText(isColored: false, hasFields: false).text(event) == "a\n\u{1B}[2Jb\n")
        #expect(EventText(isColored: false, hasFields: true).text(event) == "add #7\na\n\u{1B}[2Jb\n")
    }

    @Test func aTerminalReceivesColoursAndNoControlCharactersOfTheServer() {
        let text = EventText(isColored: true, hasFields: true).text(event)
        #expect(text == "\u{1B}[1;36madd\u{1B}[0m \u{1B}[2m#7\u{1B}[0m\na\n\u{FFFD}[2Jb\n")
        let plain = EventText(isColored: true, hasFields: true).text(ServerSentEvent(data: ""))
        #expect(plain == "\u{1B}[1;36mmessage\u{1B}[0m\n\n")
    }
}
