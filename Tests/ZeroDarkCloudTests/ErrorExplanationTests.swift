import Testing
import ZDCProtocol
import ZDCSupport
import ZDCTreesystem

@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Every code says what failed, and not only its name.
@Suite struct ErrorExplanationTests {
  private func check(_ name: String, _ explanation: String, _ description: String) {
    #expect(explanation.count > 15 && !explanation.hasSuffix("."), "\(name)")
    #expect(explanation != name, "\(name)")
    #expect(description.contains(explanation), "\(name)")
  }

  /// What failed, and after a semicolon what to do about it.
  private func checkAdvice(_ name: String, _ explanation: String, _ description: String) {
    check(name, explanation, description)
    #expect(explanation.contains(/\w; \w/), "\(name)")
  }

  @Test func everyCodeSaysWhatFailed_andWhatToDo() {
    for code in ZDCError.Code.allCases { checkAdvice("\(code)", code.explanation, "\(ZDCError(code))") }
    for code in ServerError.Code.allCases { checkAdvice("\(code)", code.explanation, "\(ServerError(code, ""))") }
    for code in ZDCCloudError.Code.allCases { checkAdvice("\(code)", code.explanation, "\(ZDCCloudError(code))") }
    for code in ZDCSyncableError.Code.allCases { checkAdvice("\(code)", code.explanation, "\(ZDCSyncableError(code))") }
    for code in ZDCSecurityError.Code.allCases { check("\(code)", code.explanation, "\(ZDCSecurityError(code))") }
    for code in TransportError.Code.allCases {
      let description = TransportError(code, origin: "https://example.com", status: 502).description
      checkAdvice("\(code)", description, description)
    }
  }

  @Test func descriptionsHoldNothingOfTheApp_orOfTheServer() {
    let canary = "CANARY"
    #expect(!"\(ServerError(.conflict, canary))".contains(canary))
    let path = ZDCTreesystemPath(pathComponents: [canary])
    #expect(!"\(ZDCCloudError(.conflict, path: path, detail: "the name is taken"))".contains(canary))
  }
}
