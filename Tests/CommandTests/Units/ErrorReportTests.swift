import Testing
import ZDCCommands
import ZDCProtocol
import ZeroDarkCloud

@Suite("Errors and exit codes")
struct ErrorReportTests {
  @Test func everyErrorOfTheFramework_hasACodeAMessageAndADocumentedExit() {
    for code in ZDCError.Code.allCases {
      let report = ErrorReport(ZDCError(code))
      #expect(report.code == code.rawValue)
      #expect(report.status != .success)
      #expect(report.message.count > 10, "\(code)")
    }
    for code in ZDCSecurityError.Code.allCases {
      #expect(ErrorReport(ZDCSecurityError(code)).status == .security)
    }
    for code in TransportError.Code.allCases {
      #expect([.unavailable, .usage, .noPermission, .security].contains(ErrorReport(TransportError(code)).status))
    }
  }

  @Test func theHelpListsEveryExitCode() {
    for status in ExitStatus.allCases { #expect(ExitStatus.help.contains("\n  \(status.rawValue) ")) }
  }

  @Test func theTextHasAHintLine_andTheJSONItsFields() throws {
    let report = ErrorReport(CommandError(.usage, "invalidPath", "not a path", hint: "write home:/a"))
    #expect(report.text == "zdc: not a path\nhint: write home:/a")
    #expect(
      try Output.json(report.json)
        == #"{"error":{"code":"invalidPath","exit":64,"hint":"write home:/a","message":"not a path"}}"#)
  }

  @Test func anUnknownError_isAnInternalError() {
    struct Surprise: Error {}
    #expect(ErrorReport(Surprise()).status == .software)
  }

  @Test("F10: a server's answer is never reported as an error inside zdc", arguments: ServerError.Code.allCases)
  func everyAnswerOfAServer_hasItsOwnCode(code: ServerError.Code) {
    let report = ErrorReport(ServerError(code, "no"))
    #expect(report.status != .software && report.status != .success)
    #expect(report.code == code.rawValue)
  }

  @Test("M15: errors of the tree are reported in plain words", arguments: ZDCCloudError.Code.allCases)
  func errorsOfTheTree_showNoInnerWords(code: ZDCCloudError.Code) {
    #expect(!ErrorReport(ZDCCloudError(code)).message.contains(code.rawValue))
    #expect(ErrorReport(ZDCCloudError(code, detail: "too deep")).message == "too deep")
  }

  @Test("M15: a server without room is asked again", arguments: [ServerError.Code.storageFull, .quotaExceeded])
  func noRoomOnTheServer_isForLater(code: ServerError.Code) {
    #expect(ErrorReport(ServerError(code, "full")).status == .tryAgain)
  }
}
