import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZeroDarkCloud

/// The requests of the diagnosis, and their errors.
struct DiagnosisRequestTests {
  private func diagnosis(_ device: NetworkDevice) async throws -> ConnectionDiagnosis {
    let user = try await device.users.createAccount().localUser
    let api = try await device.users.serverAPI(for: ZDCLocalUserManager.userID(user.uuid))
    return ConnectionDiagnosis(api: api, now: { 0 }, eventTimeout: .zero)
  }

  @Test("M17: the large body gets as much time as an upload of its size")
  func largeBody_hasTimeForItsSize() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let diagnosis = try await diagnosis(device)
      let sent = Mutex<[(bytes: UInt64, timeout: Duration)]>([])
      device.transport.set(
        .init(before: { request in
          guard request.path.hasPrefix("/v1/blobs/") else { return }
          sent.withLock { $0.append((request.body.byteCount, request.timeout)) }
        }))
      let checks = try await diagnosis.run()
      #expect(checks.first { $0.step == .bodySize }?.verdict == .passed)
      let (bytes, timeout) = try #require(sent.withLock { $0.first })
      #expect(bytes >= 8 << 20 && timeout == TransferPace.headDeadline(sending: bytes))
    }
  }

  @Test func serverOfAnotherProtocol_isNamedWithARemedy() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let diagnosis = try await diagnosis(device)
      device.transport.set(
        .init(after: { request, response in
          guard request.path == Routes.info else { return response }
          let body = #"{"name":"x","version":"9","protocols":[2],"registration":"open","timeMs":1}"#
          return TransportResponse(status: 200, headers: [:], body: TransportBody(bytes: Array(body.utf8)))
        }))
      let check = try #require(try await diagnosis.run().first)
      #expect(check.step == .server && check.verdict == .failed)
      #expect(check.finding.contains("unsupportedProtocol") && check.advice?.contains("update") == true)
    }
  }
}
