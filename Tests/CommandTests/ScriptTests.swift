import Testing

@Suite("Commands, as scripts")
struct ScriptTests {
  @Test("every script", arguments: Script.all)
  func script(_ script: Script) async throws {
    try await ScriptRun.with { run in
      for step in script.steps { try await check(step, of: script, run.run(step)) }
    }
  }

  private func check(_ step: Script.Step, of script: Script, _ outcome: ScriptRun.Outcome) throws {
    let said =
      "\(script.name).txt:\(step.line): \(step.command)\n" + (outcome.output + outcome.errors).joined(separator: "\n")
    try #require(outcome.status == step.status, "exit code \(outcome.status)\n\(said)")
    try #require(Pattern.matches(outcome.output[...], step.output[...]), "other output\n\(said)")
    for error in step.errors {
      try #require(outcome.errors.contains { Pattern.matches($0, error) }, "no error \(error)\n\(said)")
    }
  }

  @Test func thereAreScripts_andEachHasSteps() {
    #expect(Script.all.count >= 10)
    for script in Script.all { #expect(!script.steps.isEmpty, "\(script.name)") }
  }

  @Test func aPatternMatchesWhatItSays_andNothingElse() {
    #expect(Pattern.matches("sent 3 nodes (12 B)", "sent * nodes (*)"))
    #expect(!Pattern.matches("sent 3 nodes", "sent * nodes (*)"))
    #expect(!Pattern.matches("resent 3", "sent *"))
    #expect(Pattern.matches(["a", "b", "c"], ["a", "...", "c"]))
    #expect(Pattern.matches(["a", "c"], ["a", "...", "c"]))
    #expect(!Pattern.matches(["a", "b"], ["a"]))
    #expect(!Pattern.matches(["a"], ["a", "b"]))
  }
}
