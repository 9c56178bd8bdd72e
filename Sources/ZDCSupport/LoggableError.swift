/// An error whose description holds no name, key or content.
package protocol LoggableError: Error {}

extension ZDCError: LoggableError {}
