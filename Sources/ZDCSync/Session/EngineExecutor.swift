/// The executor of all actors of one local user's engine.
///
/// They call each other often, for short work, and a change of threads for each call would cost more than the work.
/// Transactions and requests run elsewhere.
package actor EngineExecutor {}
