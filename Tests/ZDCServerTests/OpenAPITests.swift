import Foundation
import Testing
import ZDCProtocol

@testable import ZDCServer

/// docs/openapi.json describes this server: its routes, their limits, and its errors.
@Suite struct OpenAPITests {
  private struct Document: Decodable {
    struct Operation: Decodable {
      var security: [[String: [String]]]
      var parameters: [Parameter]?
      var requestBody: Ignored?
      var responses: [String: Ignored]
      var bodyLimit: Int?
      var isLimited: Bool?

      enum CodingKeys: String, CodingKey {
        case security, parameters, requestBody, responses
        case bodyLimit = "x-body-limit"
        case isLimited = "x-limited"
      }

      var auth: String {
        if security.contains(where: { $0.keys.contains("session") }) { return "session" }
        return isLimited == true ? "limited" : "open"
      }
    }

    struct Parameter: Decodable {
      var reference: String?
      var name: String?

      enum CodingKeys: String, CodingKey {
        case name
        case reference = "$ref"
      }
    }

    struct Ignored: Decodable {}

    struct Components: Decodable {
      struct Schema: Decodable {
        var names: [String]?
        private enum CodingKeys: String, CodingKey { case names = "enum" }
      }

      struct Response: Decodable {
        struct Content: Decodable {
          var schema: Body
        }

        struct Body: Decodable {
          var allOf: [Part]
        }

        struct Part: Decodable {
          var properties: [String: Schema]?
        }

        var content: [String: Content]

        var codes: [String] {
          content["application/json"]?.schema.allOf.compactMap { $0.properties?["code"]?.names }.first ?? []
        }
      }

      var schemas: [String: Schema]
      var responses: [String: Response]
    }

    var paths: [String: [String: Operation]]
    var components: Components
  }

  private let document: Document

  init() throws {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { root.deleteLastPathComponent() }
    document = try JSONDecoder().decode(
      Document.self, from: try Data(contentsOf: root.appendingPathComponent("docs/openapi.json")))
  }

  private var operations: [(name: String, path: String, operation: Document.Operation)] {
    document.paths.flatMap { path, methods in
      methods.map { (name: "\($0.key.uppercased()) \(path)", path: path, operation: $0.value) }
    }
  }

  @Test func itHasTheServersRoutesAndNoOthers() {
    let described = operations.map { "\($0.name) \($0.operation.auth) \($0.operation.bodyLimit ?? 0)" }
    let served = RouteTable.all.map { "\($0.method) \($0.path) \($0.auth) \($0.bodyLimit)" }
    #expect(described.sorted() == served.sorted())
  }

  @Test func everyPathHasItsParameters() {
    for (name, path, operation) in operations {
      let stated = (operation.parameters ?? []).compactMap { $0.reference?.split(separator: "/").last.map(String.init) }
      let inPath = path.split(separator: "/").filter { $0.first == "{" }.map { String($0.dropFirst().dropLast()) }
      #expect(Set(inPath).isSubset(of: stated), "\(name)")
    }
  }

  @Test func aRouteWithALimitHasABodyAndARefusalOfLongerOnes() {
    for (name, _, operation) in operations where operation.bodyLimit != nil {
      #expect(operation.requestBody != nil, "\(name)")
      #expect(operation.responses.keys.contains("413"), "\(name)")
    }
  }

  @Test func aRouteWithASessionHasItsRefusals() {
    for (name, _, operation) in operations where operation.auth == "session" {
      #expect(Set(["400", "401", "429", "500", "503"]).isSubset(of: operation.responses.keys), "\(name)")
    }
  }

  @Test func itHasTheErrorsOfTheProtocol() {
    let schemas = document.components.schemas
    #expect(schemas["ErrorCode"]?.names == ServerError.Code.allCases.map(\.rawValue))
    #expect(schemas["SecurityCode"]?.names == ZDCSecurityError.Code.allCases.map(\.rawValue))
    let described = Set(document.components.responses.values.map { $0.codes.sorted() })
    let stated = Dictionary(grouping: ServerError.Code.allCases) { ServerError($0, "").status }
    #expect(described == Set(stated.values.map { $0.map(\.rawValue).sorted() }))
  }
}
