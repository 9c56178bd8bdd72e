/// The executor of all actors of one local user's engine.
///
/// They hand small steps to each other, and a change of threads for each would cost more than the step. Transactions and
/// requests run elsewhere.
actor EngineExecutor {}
