// The framework's rows in this transaction. One store for each transaction: they remember what they derived.

extension ZDCReadTransaction {
  final var nodes: NodeStore {
    cached { NodeStore(db: database, sealer: context.sealer) }
  }

  final var operations: OperationStore {
    cached { OperationStore(db: database, sealer: context.sealer) }
  }

  final var zones: ZoneStore {
    cached { ZoneStore(db: database, sealer: context.sealer) }
  }
}
