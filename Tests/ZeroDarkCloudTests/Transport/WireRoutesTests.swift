import Testing
import ZeroDarkCloudTesting

@testable import ZDCServer

@Suite struct WireRoutesTests {
  /// Tests disturb and count requests by these routes: one that is missing here would be left out without a word.
  @Test func theyAreThoseOfTheServer() {
    let served = RouteTable.all.map { "\($0.method) \($0.path)" }
    #expect(WireRoutes.all.map(\.description).sorted() == served.sorted())
  }
}
