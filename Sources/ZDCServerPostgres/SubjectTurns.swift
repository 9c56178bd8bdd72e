internal import ZDCServer

/// Decides which writes may run: those of one subject run one after the other, in the order in which they were added.
///
/// So a busy zone occupies one connection, not all. A value without effects.
struct SubjectTurns<Job> {
  private struct Entry {
    var job: Job
    var subjects: Set<WriteSubject>
    /// The number of subjects whose turn the write still waits for.
    var missing: Int
  }

  private var entries: [UInt64: Entry] = [:]
  private var queues: [WriteSubject: [UInt64]] = [:]
  private var last: UInt64 = 0

  /// Adds a write; returns the number to end it with, and the job if it may run at once.
  mutating func add(_ job: Job, _ subjects: Set<WriteSubject>) -> (number: UInt64, ready: Job?) {
    last += 1
    var missing = 0
    for subject in subjects {
      if !queues[subject, default: []].isEmpty { missing += 1 }
      queues[subject, default: []].append(last)
    }
    entries[last] = Entry(job: job, subjects: subjects, missing: missing)
    return (last, missing == 0 ? job : nil)
  }

  /// Ends a write that ran; returns those that may run now.
  mutating func end(_ number: UInt64) -> [(number: UInt64, job: Job)] {
    guard let entry = entries.removeValue(forKey: number) else { return [] }
    var ready: [UInt64] = []
    for subject in entry.subjects {
      queues[subject]?.removeFirst()
      guard let next = queues[subject]?.first else {
        queues[subject] = nil
        continue
      }
      entries[next]?.missing -= 1
      if entries[next]?.missing == 0 { ready.append(next) }
    }
    return ready.sorted().compactMap { number in entries[number].map { (number, $0.job) } }
  }
}
