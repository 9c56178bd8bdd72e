/// The executor of all actors of one local user's engine.
///
/// The actors often call each other for short work, and a thread switch per call would cost more than the work itself.
/// Transactions and requests run elsewhere.
package actor EngineExecutor {}
