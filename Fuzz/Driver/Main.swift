internal import ZDCFuzzTargets

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

// Built only with ZDC_FUZZ=1 (see Scripts/fuzz).

@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ run: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt

// libFuzzer's own main function stays unused: the package manager renames an executable's main to the name of its
// module.
/// Starts libFuzzer with the arguments of the process. It returns when the fuzzer ends.
@_cdecl("zdc_fuzz_main")
public func fuzzMain(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
  var (count, arguments) = (count, arguments)
  return runFuzzer(&count, &arguments) { fuzzOneInput($0, $1) }
}

private let target: FuzzTarget = {
  guard let name = getenv("ZDC_FUZZ_TARGET"), let target = FuzzTarget.named(String(cString: name)) else {
    let text = "ZDC_FUZZ_TARGET must be one of: \(FuzzTarget.all.map(\.name).joined(separator: ", "))\n"
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    exit(2)
  }
  return target
}()

/// Runs the chosen target over one input of the fuzzer. A failed property traps, which libFuzzer records as a crash.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  do { try target.run(bytes) } catch { preconditionFailure("\(target.name): \(error)") }
  return 0
}
